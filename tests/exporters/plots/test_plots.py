"""Plots: the bars, lines and words of each picture; and the files."""

import functools
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest
from matplotlib.figure import Figure

from tests.maps_by_hand import IMAGES, MAPS
from tests.pictures import caption, plain, title
from tests.records_by_hand import op_at_size, op_stats
from tflab.exporters import plots
from tflab.exporters.plots import style
from tflab.records.measured import Compared, Comparison, OpStats, StepTimes
from tflab.records.timed import CriticalPath, Holder, LiveBytes, OpRun, Spread, StepTime
from tflab.records.trained import Epoch, History, TrainingStep

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def total(name, op, ns, everything) -> OpStats:
    return op_stats(
        name, ops=(op,), self_ns=ns, step_ns=ns / 10, share=ns / everything, step_std_ns=1.0
    )


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


EXAMPLES = {
    "curves": (trained(),),
    "op_bars": (OPS, "node"),
    "batch_sizes": (COMPARISON,),
    "timeline": (RUNS, STEP, PATH),
    "memory": (CURVE,),
    "feature_maps": (MAPS,),
}
EMPTY = {
    "curves": (History("lenet", "MNIST", 64, 0, (), ()),),
    "op_bars": ((), "layer"),
    "batch_sizes": (replace(COMPARISON, rows=(), steps={}, batch_sizes=()),),
    "timeline": (RUNS[:1], STEP, PATH),
    "memory": (LiveBytes(1, (), 0, 0, ()),),
    "feature_maps": (replace(MAPS, maps=(), probabilities=None),),
}
SMALLEST = {
    "curves": (trained(1),),
    "op_bars": (OPS[:1], "node"),
    "batch_sizes": (
        replace(
            COMPARISON, rows=compared(Conv={1: (1, 1.0)}), steps={1: steps(1, 1)}, batch_sizes=(1,)
        ),
    ),
    "timeline": (RUNS[1:2], STEP, CriticalPath((), 0, 0)),
    "memory": (LiveBytes(1, ((0, 1),), 1, 0, ()),),
    "feature_maps": (replace(MAPS, maps=(IMAGES,), probabilities=None),),
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
    "op_bars": ((total(HOSTILE, HOSTILE + "2", 1, 1),), "node"),
    "batch_sizes": (replace(COMPARISON, model=HOSTILE, rows=compared(**{HOSTILE: {1: (1, 1)}})),),
    "timeline": (
        [RUNS[1]._replace(name=HOSTILE, device=HOSTILE, duration_ns=10**6)],
        STEP,
        CriticalPath((HOSTILE,), 1, 1),
    ),
    "memory": (replace(CURVE, holders=(Holder(HOSTILE, "X", 1, False),)),),
    "feature_maps": (replace(MAPS, maps=(replace(IMAGES, name=HOSTILE),)),),
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
