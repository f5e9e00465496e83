"""The pass over many images with torch and its profiler: times in seconds and bytes, as JSON.

    python -m benchmarks.torch_lenet images.npy

It needs only torch and NumPy, so it can run in a Python without TensorFlow. The network is that of
tflab/models/lenet.py, layer by layer.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from benchmarks import resident

WARMUP = 50  # steps of each kind before anything is measured


def lenet() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        nn.Flatten(),
        *(nn.Linear(400, 120), nn.ReLU()),
        *(nn.Linear(120, 84), nn.ReLU()),
        nn.Linear(84, 10),
    ).eval()


def traced(model: nn.Module, images: torch.Tensor) -> profile:
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        untraced(model, images)
    return profiler


def untraced(model: nn.Module, images: torch.Tensor) -> None:
    for image in images.split(1):
        model(image)


def one_pass(model: nn.Module, images: torch.Tensor) -> dict[str, float]:
    untraced(model, images[:WARMUP])
    traced(model, images[:WARMUP])
    numbers = {"untraced": seconds(lambda: untraced(model, images))}
    before = resident.now()
    resident.forget_peak()
    kept: list[profile] = []
    numbers["traced"] = seconds(lambda: kept.append(traced(model, images)))
    numbers["table"] = seconds(lambda: kept[0].key_averages().table("self_cpu_time_total", 10))
    return numbers | {"grown": resident.now() - before, "peak": resident.peak() - before}


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    data = np.load(sys.argv[1])  # [images, 32, 32, 1]
    with torch.inference_mode():
        print(json.dumps(one_pass(lenet(), torch.from_numpy(data).permute(0, 3, 1, 2))))
