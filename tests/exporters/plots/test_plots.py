"""Plots: the bars, lines and words of each picture; and the files."""

import functools
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from tests.maps_by_hand import IMAGES, MAPS
from tests.measurements_by_hand import measurement
from tests.pictures import caption, plain, title
from tests.records_by_hand import op_at_size, op_stats, op_total
from tflab.compare import saved_measurements
from tflab.exporters import plots
from tflab.exporters.plots import style
from tflab.measurements import contrast
from tflab.records.measured import Compared, Comparison, OpStats, Peaks, StepTimes
from tflab.records.timed import CriticalPath, Holder, LiveBytes, OpRun, Spread, StepTime
from tflab.records.trained import Epoch, History, TrainingStep

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
PEAKS = Peaks(gflops=100.0, gigabytes_per_s=10.0)


def row(key, ops, share, std=None, intensity=None, gflops=None) -> OpStats:
    ns = round(share * 1e6)
    return op_stats(
        key, ops=ops, nodes=(key,), calls=10, total_ns=10 * ns, self_ns=10 * ns, share=share,
        gflops=gflops, intensity=intensity, step_ns=ns, step_std_ns=std,
    )  # fmt: skip


LAYERS = (
    row("(runtime)", ("_Arg",), 0.01, 1e3),
    row("conv1", ("ReadVariableOp", "_MklNativeFusedConv2D"), 0.3, 3e4, 10, 20),
    row("pool1", ("_MklNativeMaxPool",), 0.04, 1e3, 0.2, 1),
    row("conv2", ("ReadVariableOp", "_FusedConv2D"), 0.6, 9e4, 20, 50),
    row("dense", ("MatMul",), 0.05, 1e3, 0.5, 4),
)


def total(name, op, ns, everything) -> OpStats:
    return op_total(name, op, 10, ns, ns, ns / 10, ns / everything)


OPS = tuple(total(f"layer{n}/Relu", "_FusedConv2D", 1000 * (n + 1), 78_000) for n in range(12))


def trained(steps=600, every=100) -> History:
    return History(
        "lenet",
        "MNIST",
        64,
        0,
        tuple(TrainingStep(n, 2.0 / n, 1 - 0.5 / n, 0.1) for n in range(1, steps + 1)),
        tuple(
            Epoch(n // every, n, 0.1, 0.9, 0.2, 0.9 + n / every / 100, 1.0, 1e4)
            for n in range(every, steps + 1, every)
        ),
    )


def compared(**cells) -> tuple[Compared, ...]:
    return tuple(
        Compared(key, (key,), (), {size: op_at_size(10, 10 * ns, ns, ns / size, share, 0, None)
                 for size, (ns, share) in by_size.items()}, None)
        for key, by_size in cells.items()
    )  # fmt: skip


def steps(size, ns) -> StepTimes:
    return StepTimes(10, 10 * size, Spread(ns, ns, ns), Spread(ns, ns, ns), 1e4, ns)


COMPARISON = Comparison(
    model="lenet",
    phase="inference",
    by="op",
    data="MNIST",
    warmup=3,
    batch_sizes=(1, 16),
    rows=compared(
        Pool={1: (1e5, 0.2), 16: (2e5, 0.1)},
        Conv={1: (4e5, 0.8), 16: (16e5, 0.8)},
        Never={1: (0, 0.0), 16: (0, 0.0)},
        Late={16: (1e5, 0.1)},
    ),
    steps={1: steps(1, 6e5), 16: steps(16, 24e5)},
    configs=(),
    findings=(),
    cold=(),
    cold_step_ns=0,
    uncovered={},
)
STEP = StepTime(1, 1_000_000, 1_000_000)
RUNS = (
    OpRun(0, "of/another/step", "Mul", CPU, 0, 500_000),
    OpRun(1, "conv1/Relu", "_FusedConv2D", CPU, 1_100_000, 500_000),
    OpRun(1, "side", "Mul", CPU, 1_200_000, 100_000),
    OpRun(1, "pool1/MaxPool", "MaxPool", CPU, 1_700_000, 200_000),
)
PATH = CriticalPath(("conv1/Relu", "pool1/MaxPool"), 7e5, 1.1)
CURVE = LiveBytes(
    1,
    ((-300, 1024), (100_000, 4096), (200_000, 512)),
    4096,
    100_000,
    (Holder("conv1/Relu", "_FusedConv2D", 3072, True), Holder("x", "Mul", 1024, False)),
)


def over_time_of(*made):
    measurements = dict(zip("ab", made, strict=False))
    return saved_measurements.lines(measurements, contrast.contrast(measurements))


OVER_TIME = over_time_of(measurement(), measurement(factor=1.5))

EXAMPLES = {
    "curves": (trained(),),
    "top_ops": (OPS,),
    "batch_sizes": (COMPARISON,),
    "timeline": (RUNS, STEP, PATH),
    "memory": (CURVE,),
    "roofline": (LAYERS, PEAKS),
    "layers": (LAYERS,),
    "feature_maps": (MAPS,),
    "over_time": (OVER_TIME,),
}
EMPTY = {
    "curves": (History("lenet", "MNIST", 64, 0, (), ()),),
    "top_ops": ((),),
    "batch_sizes": (replace(COMPARISON, rows=(), steps={}, batch_sizes=()),),
    "timeline": (RUNS[:1], STEP, PATH),
    "memory": (LiveBytes(1, (), 0, 0, ()),),
    "roofline": ((row("x", ("X",), 1.0),), PEAKS),
    "layers": ((),),
    "feature_maps": (replace(MAPS, maps=(), probabilities=None),),
    "over_time": (replace(OVER_TIME, lines=()),),
}
SMALLEST = {
    "curves": (trained(1),),
    "top_ops": (OPS[:1],),
    "batch_sizes": (
        replace(
            COMPARISON, rows=compared(Conv={1: (1, 1.0)}), steps={1: steps(1, 1)}, batch_sizes=(1,)
        ),
    ),
    "timeline": (RUNS[1:2], STEP, CriticalPath((), 0, 0)),
    "memory": (LiveBytes(1, ((0, 1),), 1, 0, ()),),
    "roofline": (LAYERS[1:2], PEAKS),
    "layers": (LAYERS[:1],),
    "feature_maps": (replace(MAPS, maps=(IMAGES,), probabilities=None),),
    "over_time": (over_time_of(measurement((100.0,))),),
}
every_picture = pytest.mark.parametrize("name", plots.PICTURES)


@functools.cache
def example(name) -> Figure:
    return plots.PICTURES[name](*EXAMPLES[name])


def drawn(name, *args) -> Figure:
    return plots.PICTURES[name](*args) if args else example(name)


# All pictures


def test_every_picture_has_a_module_of_its_name_and_stands_in_the_registry():
    folder = Path(plots.__file__).parent
    modules = {path.stem for path in folder.glob("*.py") if "def draw(" in path.read_text()}
    assert modules == set(plots.PICTURES) == set(EXAMPLES) == set(EMPTY) == set(SMALLEST)


@every_picture
def test_a_picture_has_a_title_a_caption_and_the_width_of_a_page(name):
    figure = drawn(name)
    assert title(figure) and caption(figure).endswith(".")
    assert figure.get_figwidth() == style.WIDTH


@every_picture
def test_where_there_is_nothing_to_draw_a_sentence_says_so(name):
    figure = drawn(name, *EMPTY[name])
    assert figure.axes == []
    assert title(figure) and caption(figure).endswith(".")
    assert plots.svg(figure).startswith("<svg ")


@every_picture
def test_the_smallest_that_can_be_drawn_is_drawn(name):
    figure = drawn(name, *SMALLEST[name])
    assert figure.axes
    assert plots.svg(figure).startswith("<svg ")


@every_picture
def test_no_text_of_a_picture_is_cut_off_by_its_edge(name):
    figure = drawn(name)
    edges = figure.bbox
    for box in [
        *(text.get_window_extent() for text in figure.texts),
        *(axes.get_tightbbox() for axes in figure.axes),
    ]:
        assert edges.x0 <= box.x0 and edges.y0 <= box.y0
        assert box.x1 <= edges.x1 and box.y1 <= edges.y1


@every_picture
def test_a_users_settings_change_no_picture_and_are_left_as_they_were(name):
    """Nor does what was drawn before: the same input gives the same bytes."""
    figure = drawn(name, *EXAMPLES[name])
    expected = plots.svg(figure)
    plots.png(figure)
    with matplotlib.rc_context({"font.size": 40, "axes.linewidth": 5, "svg.fonttype": "path"}):
        before = dict(matplotlib.rcParams)
        assert plots.svg(drawn(name, *EXAMPLES[name])) == expected
        assert dict(matplotlib.rcParams) == before


def test_neither_pyplot_nor_tensorflow_is_imported():
    code = (
        "import sys; from tflab.exporters import plots;"
        "print({'matplotlib.pyplot', 'tensorflow'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


HOSTILE = '$\\f{_$<b>&"]]>\x1b\ud800\u4f60'
SHOWN = '$\\f{_$<b>&"]]>\\x1b\\ud800\u4f60'
HOSTILE_EXAMPLES = {
    "curves": (replace(trained(), model=HOSTILE, data=HOSTILE),),
    "top_ops": ((total(HOSTILE, HOSTILE + "2", 1, 1),),),
    "batch_sizes": (replace(COMPARISON, model=HOSTILE, rows=compared(**{HOSTILE: {1: (1, 1)}})),),
    "timeline": (
        [replace(RUNS[1], name=HOSTILE, device=HOSTILE, duration_ns=10**6)],
        STEP,
        CriticalPath((HOSTILE,), 1, 1),
    ),
    "memory": (replace(CURVE, holders=(Holder(HOSTILE, "X", 1, False),)),),
    "roofline": ((row(HOSTILE, ("X",), 1.0, None, 1, 1),), PEAKS),
    "layers": ((row(HOSTILE, (HOSTILE,), 1.0),),),
    "feature_maps": (replace(MAPS, maps=(replace(IMAGES, name=HOSTILE),)),),
    "over_time": (
        replace(OVER_TIME, lines=(replace(OVER_TIME.lines[0], name=HOSTILE, verdict=None),)),
    ),
}


@every_picture
@pytest.mark.filterwarnings("error")
def test_names_can_hold_anything(name, tmp_path):
    figure = drawn(name, *HOSTILE_EXAMPLES[name])
    plots.save(figure, tmp_path / "picture")
    page = ElementTree.fromstring(plots.svg(figure))
    assert {part.tag for part in page.iter()} <= {f"{{{plots.SVG}}}{tag}" for tag in TAGS}
    assert SHOWN in plain("".join(page.itertext()))


TAGS = ("svg", "g", "path", "text", "tspan", "defs", "clipPath", "rect", "use", "pattern", "image")


# Roofline


def test_names_of_points_that_lie_together_do_not_overlap():
    rows = [row(f"scope/op{n}", ("X",), 0.1, None, 1 + n / 100, 1 + n / 100) for n in range(8)]
    (axes,) = drawn("roofline", rows, PEAKS).axes
    labels = [text for text in axes.texts if text.get_text().startswith("scope")]
    boxes = [label.get_window_extent() for label in labels]
    assert len(labels) == 8
    assert not any(first.overlaps(second) for first, second in combinations(boxes, 2))
    frame = axes.get_window_extent()
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in boxes)


def test_words_of_the_roof_stand_on_no_point_and_no_name_on_them():
    """Points on the roof and above it, where its words would stand otherwise."""
    work = {"a": (16, 170), "b": (42, 110), "c": (19, 123), "d": (18, 118), "e": (40, 140)}
    rows = [row(f"scope/{key}", ("X",), 0.2, None, *work[key]) for key in work]
    (axes,) = drawn("roofline", rows, Peaks(120, 40)).axes
    texts = {text.get_text(): text.get_window_extent() for text in axes.texts if text.get_text()}
    words = texts.pop("the processor does 120 GFLOP/s")
    slope = texts.pop("memory delivers 40 GB/s")
    assert len(texts) == 5
    assert not any(box.overlaps(words) or box.overlaps(slope) for box in texts.values())
    frame, (dots,) = axes.get_window_extent(), axes.collections
    assert frame.x0 <= slope.x0 < slope.x1 < words.x0 < words.x1 <= frame.x1
    assert words.y1 <= frame.y1
    radius = max(dots.get_sizes()) ** 0.5 / 2 * axes.figure.dpi / 72
    for x, y in axes.transData.transform(dots.get_offsets()):
        assert not words.overlaps(Bbox([(x - radius, y - radius), (x + radius, y + radius)]))


@pytest.mark.parametrize("intensity, gflops", [(0.001, 0.001), (1000, 5)])
def test_both_parts_of_the_roof_have_room_for_their_words(intensity, gflops):
    (axes,) = drawn("roofline", [row("x", ("X",), 1.0, None, intensity, gflops)], PEAKS).axes
    frame = axes.get_window_extent()
    boxes = [text.get_window_extent() for text in axes.texts if " does " in text.get_text()]
    boxes += [text.get_window_extent() for text in axes.texts if " delivers " in text.get_text()]
    assert len(boxes) == 2
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in boxes)


# SVG


def test_another_process_writes_the_same_bytes():
    code = (
        "from tflab.exporters import plots; from test_plots import example;"
        "print(plots.svg(example('batch_sizes')), end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == plots.svg(example("batch_sizes"))


def ids(svg: str) -> list[str]:
    return [part.attrib["id"] for part in ElementTree.fromstring(svg).iter() if "id" in part.attrib]


def test_ids_are_unique_in_a_page_of_all_pictures():
    all_ids = [id_ for name in plots.PICTURES for id_ in ids(plots.svg(drawn(name)))]
    assert len(all_ids) > 100
    assert len(set(all_ids)) == len(all_ids)


@every_picture
def test_every_reference_within_an_svg_leads_somewhere(name):
    svg = plots.svg(drawn(name))
    used = re.findall(r'(?:href="|url\()#([^")]+)', svg)
    assert set(used) <= set(ids(svg))
    assert used
