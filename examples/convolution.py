"""A convolution is seven nested loops; how these run decides how fast it is.

There are three ways to compute the same sums: the loops themselves, im2col with a matrix product,
and the kernel of the framework. Look at how often each element is used, at what one multiply-add
costs in each way.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path
from statistics import median

import lesson
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from threadpoolctl import threadpool_limits  # comes with scikit-learn

from tflab.records.blocks import Block, Table
from tflab.records.options import Options
from tflab.records.timed import OpRun
from tflab.runtime import session
from tflab.units import percent, size, time

CHAPTER = "The chapter's example"
SHAPES = {  # images (image, row, column, channel), kernels (row, column, channel, output)
    CHAPTER: ((1, 32, 32, 3), (5, 5, 3, 2)),
    "LeNet's conv1": ((4, 32, 32, 1), (5, 5, 1, 6)),
    "LeNet's conv2": ((4, 14, 14, 6), (5, 5, 6, 16)),
}
TOLERANCE = 1e-5
SLOW_ROUNDS, FAST_ROUNDS = 3, 200
FLOAT32 = 4  # bytes
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")  # Linux


# Three ways to the same sums.


def seven_loops(images: np.ndarray, kernels: np.ndarray) -> np.ndarray:
    count, rows, columns, outputs = output_shape(images, kernels)
    kernel_rows, kernel_columns, channels = kernels.shape[:3]
    x, w = images.tolist(), kernels.tolist()  # plain Python floats
    y = np.zeros((count, rows, columns, outputs)).tolist()
    for image in range(count):
        for output in range(outputs):
            for channel in range(channels):
                for row in range(rows):
                    for column in range(columns):
                        for i in range(kernel_rows):
                            for j in range(kernel_columns):
                                pixel = x[image][row + i][column + j][channel]
                                y[image][row][column][output] += pixel * w[i][j][channel][output]
    return np.array(y, np.float32)


def matrix_product(images: np.ndarray, kernels: np.ndarray) -> np.ndarray:
    """All seven loops in one product: a row for each place of the kernel, a column an output."""
    sums = im2col(images, kernels) @ kernels.reshape(-1, kernels.shape[3])
    return sums.reshape(output_shape(images, kernels))


def im2col(images: np.ndarray, kernels: np.ndarray) -> np.ndarray:
    """A copy of every patch of the images that a kernel is laid on, each as a row."""
    patches = np.lib.stride_tricks.sliding_window_view(images, kernels.shape[:2], axis=(1, 2))
    return patches.transpose(0, 1, 2, 4, 5, 3).reshape(-1, prod(kernels.shape[:3]))


def framework(images: np.ndarray | tf.Tensor, kernels: np.ndarray | tf.Tensor) -> np.ndarray:
    return tf.nn.conv2d(images, kernels, strides=1, padding="VALID").numpy()


def output_shape(images: np.ndarray, kernels: np.ndarray) -> tuple[int, int, int, int]:
    """A kernel that is 5 pixels wide has 28 places in 32 pixels."""
    rows, columns = (images.shape[axis] - kernels.shape[axis - 1] + 1 for axis in (1, 2))
    return len(images), rows, columns, kernels.shape[3]


# What they touch.


def uses(images: np.ndarray, kernels: np.ndarray) -> dict[str, np.ndarray]:
    """How often each element of each tensor is used."""
    count, rows, columns, outputs = output_shape(images, kernels)
    places, patch = count * rows * columns, prod(kernels.shape[:3])
    of_images = np.zeros(images.shape, int)
    for i, j in np.ndindex(kernels.shape[:2]):
        of_images[:, i : i + rows, j : j + columns] += outputs
    return {
        "images": of_images,
        "kernels": np.full(kernels.shape, places),
        "sums": np.full((count, rows, columns, outputs), patch),
        "im2col's matrix": np.full((places, patch), outputs),
    }


def reuse(used: Mapping[str, np.ndarray]) -> Table:
    caches = tuple(data_caches())
    rows = []
    for name, counts in used.items():
        bytes_ = FLOAT32 * counts.size
        fits = next((cache for cache, room in caches if bytes_ <= room), "none")
        reads = (int(counts.min()), f"{counts.mean():,.1f}", int(counts.max()))
        shape = " x ".join(map(str, counts.shape))
        rows.append((name, shape, size(bytes_), fits if caches else "unknown", *reads))
    headers = ("tensor", "shape", "bytes", "fits in", "least", "mean", "most")
    return lesson.table("How often each element of a tensor is used", headers, rows)


def data_caches(folder: Path = CACHES) -> Iterator[tuple[str, int]]:
    """Each cache that the first processor has for data, and its bytes, the smallest first."""
    for file in sorted(folder.glob("index*/size")):
        room, kind, level = (
            file.with_name(fact).read_text().strip() for fact in ("size", "type", "level")
        )
        if kind != "Instruction":
            bytes_ = int(room.removesuffix("K")) * 1024
            yield f"L{level}, {size(bytes_)}", bytes_


def locality(images: np.ndarray, kernels: np.ndarray) -> Table:
    sums: np.ndarray = np.empty(output_shape(images, kernels), np.float32)
    x, w, y = images.strides, kernels.strides, sums.strides
    rows = (
        ("image", sums.shape[0], x[0], 0, y[0]),
        ("output channel", sums.shape[3], 0, w[3], y[3]),
        ("input channel", images.shape[3], x[3], w[2], 0),
        ("output row", sums.shape[1], x[1], 0, y[1]),
        ("output column", sums.shape[2], x[2], 0, y[2]),
        ("kernel row", kernels.shape[0], x[1], w[0], 0),
        ("kernel column", kernels.shape[1], x[2], w[1], 0),
    )
    headers = ("loop, outermost first", "turns", "in images", "in kernels", "in sums")
    title = f"{CHAPTER}: bytes from one turn of a loop to the next"
    return lesson.table(title, headers, rows)


# What they cost, on one processor each: what is compared is the order of the work.


def measure(images: np.ndarray, kernels: np.ndarray) -> tuple[dict[str, list[int]], OpRun]:
    """The times in ns of each way, and one run of the framework's kernel."""
    patches, flat = im2col(images, kernels), kernels.reshape(-1, kernels.shape[3])
    fed = tf.constant(images), tf.constant(kernels)
    loops = lesson.in_turn([partial(seven_loops, images, kernels)], SLOW_ROUNDS, warmup=0)
    fast = lesson.in_turn(
        [
            partial(matrix_product, images, kernels),
            partial(np.matmul, patches, flat),
            partial(framework, *fed),
        ],
        FAST_ROUNDS,
    )
    *_, run = runs = kernel_runs(images, kernels)
    names = (
        "seven loops in Python",
        "im2col + matrix product",
        "  the product without the copying",
        "the framework, called from Python",
        f"  its kernel alone, {run.op}",
    )
    return dict(
        zip(names, (*loops, *fast, [kernel_run.duration_ns for kernel_run in runs]), strict=True)
    ), run


def kernel_runs(images: np.ndarray, kernels: np.ndarray) -> list[OpRun]:
    """What the runtime itself notes of the op, in a graph."""
    with tf.Graph().as_default() as graph:
        fed = [tf1.placeholder(tf.float32, array.shape) for array in (images, kernels)]
        sums = tf.nn.conv2d(*fed, strides=1, padding="VALID", name="Conv2D")
    step = session.Step(tuple(tensor.name for tensor in fed), (sums.name,), ())
    config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with session.opened(graph, Options(), config=config) as live:
        steps = lesson.traced(live, step, [(images, kernels)] * (lesson.WARMUP + FAST_ROUNDS))
        return [ops["Conv2D"] for _, ops in steps][lesson.WARMUP :]


def costs(times: Mapping[str, Sequence[int]], flops: int) -> Table:
    rows = []
    for way, all_ns in times.items():
        gflops = flops / median(all_ns)
        each = 2 / gflops  # ns, of which the unit has no decimals
        rate = (time(each) if each >= 100 else f"{each:.3g} ns", f"{gflops:,.3g}")
        rows.append((way, *lesson.spread(all_ns), *rate))
    headers = ("", "median", "p10", "p90", "a multiply-add", "GFLOP/s")
    return lesson.table("What it costs", headers, rows)


def explanation(images: np.ndarray, kernels: np.ndarray) -> Iterator[Block]:
    """The tables of one shape, and what follows from them. A multiply-add is two FLOPs."""
    used = uses(images, kernels)
    work = int(used["kernels"].sum())
    result, copied = (FLOAT32 * used[name].size for name in ("sums", "im2col's matrix"))
    never = 2 / (2 * FLOAT32)  # FLOPs a byte
    once = 2 * work / (images.nbytes + kernels.nbytes + result)
    times, run = measure(images, kernels)
    loops, whole, product, _, alone = map(median, times.values())
    yield reuse(used)
    yield costs(times, 2 * work)
    yield (
        f"No interpreter: a turn of the innermost loop is {instructions_per_turn()} instructions "
        f"of Python's interpreter and takes {loops / work:.0f} ns. The matrix product does all "
        f"{work:,} turns in one call, {loops / product:,.0f} x as fast."
    )
    yield (
        f"Reuse: if nothing were kept, each multiply-add would fetch two numbers: {never:g} FLOPs "
        f"per byte. If each byte is fetched only once, there are {once:.1f} FLOPs per byte."
    )
    yield (
        f"The copy: im2col writes {size(copied)}, {copied / images.nbytes:.1f} x the images, and "
        f"that takes {percent(1 - product / whole)} of its time. The framework's kernel "
        f"({time(alone)}) requested {size(run.requested_bytes)} of memory, {size(result)} of it "
        "for its result."
    )


def instructions_per_turn() -> int:
    """How many instructions Python's interpreter runs in each turn of the innermost loop."""
    names = [instruction.opname for instruction in dis.get_instructions(seven_loops)]
    start = max(index for index, name in enumerate(names) if name == "FOR_ITER")
    end = next(index for index in range(start, len(names)) if names[index].startswith("JUMP"))
    return end - start + 1


def main() -> None:
    threadpool_limits(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    example = (np.empty(shape, np.float32) for shape in SHAPES[CHAPTER])
    lesson.show(
        locality(*example),
        "If a loop advances by 0 bytes, it uses the same element again.",
    )
    rng = np.random.default_rng(1)
    for name, (of_images, of_kernels) in SHAPES.items():
        images = rng.normal(size=of_images).astype(np.float32)
        deviation = prod(of_kernels[:3]) ** -0.5  # then the sums are about 1
        kernels = rng.normal(0, deviation, of_kernels).astype(np.float32)
        sums = [way(images, kernels) for way in (seven_loops, matrix_product, framework)]
        apart = max(np.abs(other - sums[0]).max() for other in sums[1:])
        verb = "agree" if apart < TOLERANCE else "do not agree"
        lesson.show(f"{name}. The three ways {verb}; the largest difference is {apart:.1e}.")
        lesson.show(*explanation(images, kernels))


if __name__ == "__main__":
    lesson.give(main)
