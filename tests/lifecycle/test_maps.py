"""Maps: those of a recorded step of LeNet are what NumPy computes of its first digit."""

import numpy as np
import pytest

pytestmark = pytest.mark.tensorflow

ALIKE = {"rtol": 1e-4, "atol": 1e-5}


def by_name(stage):
    return {item.name: item for item in stage.maps.maps}


def convolution(image, kernel):
    """Without padding: [height, width, in] and [rows, columns, in, out]."""
    windows = np.lib.stride_tricks.sliding_window_view(image, kernel.shape[:2], axis=(0, 1))
    return np.einsum("hwirc,rcio->hwo", windows.astype(np.float64), kernel)


def pooled(image):
    high, wide, channels = image.shape
    return image.reshape(high // 2, 2, wide // 2, 2, channels).max(axis=(1, 3))


def test_the_maps_of_lenet_are_those_of_numpy(walked):
    stage = walked("lenet")["execution"]
    maps = by_name(stage)
    digit = stage.program.dataset("train").columns["images"][0]
    assert (maps["images"].array == digit).all()
    conv1 = np.maximum(convolution(digit, maps["conv1/kernel"].array), 0)  # biases begin with 0
    assert np.allclose(maps["conv1/Relu"].array, conv1, **ALIKE)
    assert np.allclose(maps["pool1/MaxPool"].array, pooled(conv1), **ALIKE)
    conv2 = np.maximum(convolution(pooled(conv1), maps["conv2/kernel"].array), 0)
    assert np.allclose(maps["conv2/Relu"].array, conv2, **ALIKE)
    assert np.allclose(maps["pool2/MaxPool"].array, pooled(conv2), **ALIKE)
    assert conv1.max() > 0.5 and conv2.max() > 0.5
    # What was fused away has its maps too; biases start at 0
    sums = convolution(digit, maps["conv1/kernel"].array)
    assert np.allclose(maps["conv1/Conv2D"].array, sums, **ALIKE)
    assert np.allclose(maps["conv1/BiasAdd"].array, sums, **ALIKE)
    assert maps["conv1/BiasAdd"].gradient is not None
    assert [(item.name, item.shape) for item in stage.maps.maps] == [
        ("images", (32, 32, 1)),
        ("conv1/kernel", (5, 5, 1, 6)),
        *((f"conv1/{op}", (28, 28, 6)) for op in ("Conv2D", "BiasAdd", "Relu")),
        ("pool1/MaxPool", (14, 14, 6)),
        ("conv2/kernel", (5, 5, 6, 16)),
        *((f"conv2/{op}", (10, 10, 16)) for op in ("Conv2D", "BiasAdd", "Relu")),
        ("pool2/MaxPool", (5, 5, 16)),
    ]
    assert stage.maps.left_out == 0


def test_the_gradient_by_the_scores_is_softmax_less_label(walked):
    stage = walked("lenet")["execution"]
    record, batch = stage.maps.probabilities, stage.batch_size
    assert (record.name, record.computed) == ("dense3/BiasAdd", False)
    assert record.label == stage.program.dataset("train").columns["labels"][0]
    assert record.array.sum() == pytest.approx(1)
    assert record.gradient == pytest.approx(
        (record.array - np.eye(10)[record.label]) / batch, rel=1e-4, abs=1e-7
    )


def test_the_gradient_of_a_map_goes_back_through_pool_and_relu(walked):
    maps = by_name(walked("lenet")["execution"])
    for conv, pool in (("conv1/Relu", "pool1/MaxPool"), ("conv2/Relu", "pool2/MaxPool")):
        # To the largest of each 2 x 2 goes all of the gradient of the pool.
        high, wide, channels = maps[conv].gradient.shape
        blocks = maps[conv].gradient.reshape(high // 2, 2, wide // 2, 2, channels)
        assert np.allclose(blocks.sum(axis=(1, 3)), maps[pool].gradient, **ALIKE)
        assert np.count_nonzero(maps[conv].gradient) <= maps[pool].gradient.size
        assert np.abs(maps[pool].gradient).max() > 1e-4


def test_a_kernel_has_the_gradient_that_the_step_subtracts(walked):
    stage = walked("lenet")["execution"]
    maps, rows = by_name(stage), {row.tensor: row for row in stage.values}
    for name in ("conv1/kernel", "conv2/kernel"):
        step = -0.05 * maps[name].gradient.mean()  # LeNet's learning rate
        assert rows[name].after.mean - rows[name].mean == pytest.approx(step, rel=1e-2)


def test_a_step_without_images_has_no_maps(walked):
    assert walked("toy")["execution"].maps is None
