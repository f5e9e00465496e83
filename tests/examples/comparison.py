"""A comparison by hand. In the record no two numbers that could be mixed up agree: one step in four
was traced, so that traced steps, their images and all steps differ, and nothing is divided by 1."""

from tests.records_by_hand import LOAD, blank, config_times, op_at_size, op_row, step_times, verdict
from tflab.records.measured import Compared, Comparison, Diagnosis, Rounds

# 600 images are 150 steps of 4, 38 of 16 and 10 of 64, of which 38, 10 and 3 were traced.
POOL = Compared(
    *("MaxPool", ("MaxPool",), ()),
    {
        4: op_at_size(190, 11_400_000, 60_000, 70_000, 0.75, 2_048, 0.09, 38, 27_000),
        16: op_at_size(50, 6_000_000, 120_000, 35_500, 0.71, 8_192, 0.17, 10, 108_000),
        64: op_at_size(15, 3_600_000, 240_000, 17_500, 0.61, 32_768, 0.35, 3, 432_000),
    },
)
CONV = Compared(
    *("_FusedConv2D", ("_FusedConv2D", "Conv2D"), ("conv1/Conv2D", "conv1/BiasAdd")),
    {
        4: op_at_size(76, 3_040_000, 40_000, 19_000, 0.24, 1_024, 16.5, 38),
        16: op_at_size(20, 2_000_000, 100_000, 12_000, 0.28, 4_096, 26.4, 10),
        64: op_at_size(6, 2_040_000, 340_000, 9_500, 0.38, 16_384, 31.0, 3),
    },
)
SOFTMAX = Compared(
    *("Softmax", ("Softmax",), ()),
    {
        4: op_at_size(114, 102_600, 900, 640, 0.007, 160, None, 38),
        16: op_at_size(30, 24_000, 800, 140, 0.004, 640, None, 10),
        64: op_at_size(9, 6_300, 700, 32, 0.002, 2_560, None, 3),
    },
)
CONST = Compared(
    *("Const", ("Const",), ()),
    {
        4: op_at_size(228, 13_680, 60, 88, 0.003, 96, None, 38),
        64: op_at_size(18, 1_440, 80, 7, 0.001, 97, None, 3),
    },
)
STEPS = {
    4: step_times((38, 152, 150, 3_072), (800, 750, 890), (920, 880, 1_060), 4_812.3, ops_us=383),
    16: step_times(
        (10, 160, 38, 12_288), (1_050, 990, 1_200), (1_240, 1_190, 1_390), 14_436.9, ops_us=802
    ),
    64: step_times(
        (3, 192, 10, 49_152), (2_300, 2_210, 2_560), (2_740, 2_650, 2_980), 25_264.6, ops_us=1_882
    ),
}
POOL_AT_4 = op_row(
    *("MaxPool", "MaxPool", "pool1/MaxPool pool2/MaxPool", ""),
    *(190, 11_400_000, 60_000, 55_000, 0.74, 2_048, 26_000, 0.09, 300_000, 70_000.0),
)
CONV_AT_4 = op_row(
    *("_FusedConv2D", "_FusedConv2D Conv2D", "conv1/Relu conv2/Relu"),
    "conv1/Conv2D conv1/BiasAdd conv1/Relu conv2/Conv2D conv2/Relu",
    *(76, 3_040_000, 40_000, 38_000, 0.24, 1_024, 1_254_000, 16.5, 80_000, 19_000.0),
)
CONST_AT_4 = op_row(
    *("Const", "Const", "one", ""),
    *(228, 13_680, 60, 58, 0.003, 96, None, None, 360, 87.5),
)
CONV_AT_16 = op_row(
    *("_FusedConv2D", "_FusedConv2D", "conv1/Relu", "conv1/Conv2D conv1/BiasAdd"),
    *(20, 2_000_000, 100_000, 97_000, 0.28, 4_096, 5_016_000, 26.4, 200_000, 12_000.0),
)


def config(name: str, batch_size: int, median: int, ratio: float = 1, clear: bool = False):
    if name == "default":
        return config_times(name, batch_size, median)
    return config_times(name, batch_size, median, median - 1_000, verdict(ratio, clear))


CONFIGS = (
    config("default", 4, 810_000),
    config("xla", 4, 405_000, 0.51, True),
    config("no-onednn", 4, 910_000, 1.09, True),  # less than a tenth
    config("no-grappler", 4, 1_010_000, 1.22),  # by chance
    config("default", 64, 2_310_000),
    config("xla", 64, 2_420_000, 1.03),
    config("no-onednn", 64, 4_700_000, 2.04, True),
    config("no-grappler", 64, 2_350_000, 1.21, True),
)
COMPARISON = blank(
    Comparison,
    model="lenet",
    phase="inference",
    by="op",
    data="MNIST",
    unit="image",
    warmup=3,
    batch_sizes=(4, 16, 64),
    rows=(POOL, CONV, SOFTMAX, CONST),
    steps=STEPS,
    configs=CONFIGS,
    findings=("One finding.", "And another."),
    tables={4: (POOL_AT_4, CONV_AT_4, CONST_AT_4), 16: (CONV_AT_16,)},
    images=600,
    load=LOAD,
    rounds={4: Rounds((790_000.0, 800_000.0), {"MaxPool": (299_000.0, 301_000.0)})},
)
DIAGNOSIS = (
    Diagnosis("Transposes cost most.", 120_000, 0.15, 4, "movement"),
    Diagnosis("The session is next.", 250_000, 0.11, 64, "session"),
)
