"""A comparison by hand. In the record no two numbers that could be mixed up agree: one step in four
was traced, so that traced steps, their images and all steps differ, and nothing is divided by 1."""

from tests.records_by_hand import LOAD, config_times, op_at_size, op_stats, op_total, verdict
from tflab.records.measured import Compared, Comparison, Fit, Rounds, StepTimes
from tflab.records.timed import Holder, LiveBytes, Spread
from tflab.records.verdicts import Diagnosis

# 600 images are 150 steps of 4, 38 of 16 and 10 of 64, of which 38, 10 and 3 were traced.
POOL = Compared(
    key="MaxPool",
    ops=("MaxPool",),
    fused_from=(),
    cells={
        4: op_at_size(190, 11_400_000, 60_000, 70_000, 0.75, 2_048, 0.09),
        16: op_at_size(50, 6_000_000, 120_000, 35_500, 0.71, 8_192, 0.17),
        64: op_at_size(15, 3_600_000, 240_000, 17_500, 0.61, 32_768, 0.35),
    },
    # Its line is 1,680 / 33 + 105 n / 33; the relative errors are 2, -5 and 2 parts of 33.
    fit=Fit(50_909, 3_182, 0.152),
)
CONV = Compared(
    key="_FusedConv2D",
    ops=("_FusedConv2D", "Conv2D"),
    fused_from=("conv1/Conv2D", "conv1/BiasAdd"),
    cells={
        4: op_at_size(76, 3_040_000, 40_000, 19_000, 0.24, 1_024, 16.5),
        16: op_at_size(20, 2_000_000, 100_000, 12_000, 0.28, 4_096, 26.4),
        64: op_at_size(6, 2_040_000, 340_000, 9_500, 0.38, 16_384, 31.0),
    },
    fit=Fit(20_000, 5_000, 0.0),
)
SOFTMAX = Compared(
    key="Softmax",
    ops=("Softmax",),
    fused_from=(),
    cells={
        4: op_at_size(114, 102_600, 900, 640, 0.007, 160, None),
        16: op_at_size(30, 24_000, 800, 140, 0.004, 640, None),
        64: op_at_size(9, 6_300, 700, 32, 0.002, 2_560, None),
    },
    fit=None,
)
CONST = Compared(
    key="Const",
    ops=("Const",),
    fused_from=(),
    cells={
        4: op_at_size(228, 13_680, 60, 88, 0.003, 96, None),
        64: op_at_size(18, 1_440, 80, 7, 0.001, 97, None),
    },
    fit=None,
)
STEPS = {
    4: StepTimes(
        steps=38,
        images=152,
        untraced_ns=Spread(median=800_000, p10=750_000, p90=890_000),
        traced_ns=Spread(median=920_000, p10=880_000, p90=1_060_000),
        mean_images_per_second=4_812.3,
        ops_ns=383_000,
        untraced_steps=150,
        peak_bytes=3_072,
        curve=LiveBytes(
            step=7,
            points=((1_000, 2_000), (9_000, 0)),
            peak_bytes=2_001,
            peak_ns=1_001,
            holders=(Holder("a", "B", 5, running=True),),
        ),
    ),
    16: StepTimes(
        steps=10,
        images=160,
        untraced_ns=Spread(median=1_050_000, p10=990_000, p90=1_200_000),
        traced_ns=Spread(median=1_240_000, p10=1_190_000, p90=1_390_000),
        mean_images_per_second=14_436.9,
        ops_ns=802_000,
        untraced_steps=38,
        peak_bytes=12_288,
    ),
    64: StepTimes(
        steps=3,
        images=192,
        untraced_ns=Spread(median=2_300_000, p10=2_210_000, p90=2_560_000),
        traced_ns=Spread(median=2_740_000, p10=2_650_000, p90=2_980_000),
        mean_images_per_second=25_264.6,
        ops_ns=1_882_000,
        untraced_steps=10,
        peak_bytes=49_152,
    ),
}
POOL_AT_4 = op_stats(
    key="MaxPool",
    ops=("MaxPool",),
    nodes=("pool1/MaxPool", "pool2/MaxPool"),
    fused_from=(),
    calls=190,
    total_ns=11_400_000,
    self_ns=10_640_000,
    mean_ns=60_000,
    median_ns=55_000,
    p95_ns=91_000,
    share=0.74,
    cumulative_share=0.75,
    requested_bytes=2_048,
    flops=26_000,
    gflops=0.09,
    std_ns=7_000,
    step_ns=300_000,
    step_std_ns=21_000,
    step_median_ns=290_000,
    peak_bytes=1_536,
    image_ns=70_000.0,
)
CONV_AT_4 = op_stats(
    key="_FusedConv2D",
    ops=("_FusedConv2D", "Conv2D"),
    nodes=("conv1/Relu", "conv2/Relu"),
    fused_from=("conv1/Conv2D", "conv1/BiasAdd", "conv1/Relu", "conv2/Conv2D", "conv2/Relu"),
    calls=76,
    total_ns=3_040_000,
    self_ns=2_888_000,
    mean_ns=40_000,
    median_ns=38_000,
    p95_ns=47_000,
    share=0.24,
    cumulative_share=0.99,
    requested_bytes=1_024,
    flops=1_254_000,
    gflops=16.5,
    std_ns=3_000,
    step_ns=80_000,
    step_std_ns=4_500,
    step_median_ns=77_000,
    peak_bytes=768,
    image_ns=19_000.0,
)
CONST_AT_4 = op_stats(
    key="Const",
    ops=("Const",),
    nodes=("one",),
    fused_from=(),
    calls=228,
    total_ns=13_680,
    self_ns=13_300,
    mean_ns=60,
    median_ns=58,
    p95_ns=77,
    share=0.003,
    cumulative_share=1.0,
    requested_bytes=96,
    flops=None,
    gflops=None,
    std_ns=9,
    step_ns=360,
    step_std_ns=None,
    peak_bytes=None,
    image_ns=87.5,
)
CONV_AT_16 = op_stats(
    key="_FusedConv2D",
    ops=("_FusedConv2D",),
    nodes=("conv1/Relu",),
    fused_from=("conv1/Conv2D", "conv1/BiasAdd"),
    calls=20,
    total_ns=2_000_000,
    self_ns=1_920_000,
    mean_ns=100_000,
    median_ns=97_000,
    p95_ns=130_000,
    share=0.28,
    cumulative_share=0.98,
    requested_bytes=4_096,
    flops=5_016_000,
    gflops=26.4,
    std_ns=6_000,
    step_ns=200_000,
    step_std_ns=8_500,
    step_median_ns=198_000,
    peak_bytes=3_584,
    image_ns=12_000.0,
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
COMPARISON = Comparison(
    model="lenet",
    phase="inference",
    by="op",
    data="MNIST",
    warmup=3,
    batch_sizes=(4, 16, 64),
    rows=(POOL, CONV, SOFTMAX, CONST),
    steps=STEPS,
    configs=CONFIGS,
    findings=("One finding.", "And another."),
    cold=(
        op_total("conv1/Relu", "_FusedConv2D", 1, 990_000, 950_000, 991_000, 0.5),
        op_total("loop/Mul", "Mul", 4, 92_000, 80_000, 23_000, 0.1),
        op_total("loss/w", "VariableV2", 1, 7_000, 6_000, 7_001, 0.01),
    ),
    cold_step_ns=5_170_000,
    uncovered={"MaxPool": 1, "Softmax": 2},
    tables={4: (POOL_AT_4, CONV_AT_4, CONST_AT_4), 16: (CONV_AT_16,)},
    images=600,
    warm_ns={"conv1/Relu": 38_000, "loop/Mul": 2_000},
    load=LOAD,
    rounds={4: Rounds((790_000.0, 800_000.0), {"MaxPool": (299_000.0, 301_000.0)})},
)
DIAGNOSIS = (
    Diagnosis("Transposes cost most.", 120_000, 0.15, 4, "movement"),
    Diagnosis("The session is next.", 250_000, 0.11, 64, "session"),
)
