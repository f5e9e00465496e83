"""Values: those of the toy are what NumPy computes, and the first NaN is where it was planted."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs, planted
from tests.commands import run_here
from tflab import atomic
from tflab.datasets import Dataset
from tflab.errors import RefusedError
from tflab.lifecycle import __main__ as lifecycle
from tflab.lifecycle import backward, execution, frontend, placement, recorded_step, values
from tflab.models import toy
from tflab.records.options import Model, Options
from tflab.runtime import debugger
from tflab.views import flowed

pytestmark = pytest.mark.tensorflow

FEW = Options(steps=1, warmup=0, batch_size=8)
FEW16 = replace(FEW, batch_size=16)


def by_tensor(stage):
    rows = {row.tensor: row for row in stage.values}
    assert len(rows) == len(stage.values)
    return rows


def executed(build, options=FEW):
    """The execution of a model that is built by a function, walked without its dumps."""
    built = frontend.build(("mine", build), options)
    placed = placement.place(backward.differentiate(built, options), options)
    return execution.execute(placed, options)


# The toy, against NumPy


@pytest.fixture(scope="module")
def batch():
    """The first batch, and what the first step computes from it where y is 2 and z is 1."""
    columns = toy.line("train").columns
    x, targets = columns["x"][:16], columns["targets"][:16]
    output = np.float32(2) * x + np.float32(1)
    error = (output - targets) ** 2
    from_loss = 2 * (output - targets) / np.float32(16)
    return {
        "x:0": x,
        "targets:0": targets,
        "mul:0": 2 * x,
        "add:0": output,
        "error:0": error,
        "loss:0": error.mean(),
        "gradients/error_grad/mul_1:0": from_loss,
        "gradients/add_grad/Sum:0": from_loss.sum(),
        "gradients/mul_grad/Mul_1:0": from_loss * x,
        "gradients/mul_grad/Sum:0": (from_loss * x).sum(),
    }


def test_the_values_of_the_toy_are_those_of_numpy(walked, batch):
    rows = by_tensor(walked("toy")["execution"])
    for tensor, expected in batch.items():
        assert np.ravel(rows[tensor].values) == pytest.approx(np.ravel(expected), rel=1e-5)
        assert rows[tensor].mean == pytest.approx(np.mean(expected), rel=1e-5, abs=1e-6)
        assert rows[tensor].std == pytest.approx(np.std(expected), rel=1e-4, abs=1e-6)
        assert (rows[tensor].min, rows[tensor].max) == pytest.approx(
            (np.min(expected), np.max(expected)), rel=1e-5
        )
        assert rows[tensor].not_finite == 0


def test_a_step_moves_the_variables_against_the_gradient(walked, batch):
    rows = by_tensor(walked("toy")["execution"])
    for name, first, gradient in (
        ("y", 2.0, "gradients/mul_grad/Sum:0"),
        ("z", 1.0, "gradients/add_grad/Sum:0"),
    ):
        moved = -0.5 * batch[gradient]
        assert (rows[name].kind, rows[name].values) == ("variable", (first,))
        assert rows[name].after.values == pytest.approx((first + moved,), rel=1e-5)
        assert rows[name].moved == pytest.approx(abs(moved), rel=1e-5)


def test_the_variables_are_followed_for_ten_steps(walked):
    step = walked("toy")["execution"].recorded_step
    columns = toy.line("train").columns
    y, z = 2.0, 1.0
    for point in step.path:
        if point.step:
            rows = slice(16 * (point.step - 1), 16 * point.step)
            x, targets = columns["x"][rows].astype(float), columns["targets"][rows].astype(float)
            error = x * y + z - targets
            assert point.loss == pytest.approx((error**2).mean(), rel=1e-4)
            y, z = y - 0.5 * (2 * error * x).mean(), z - 0.5 * (2 * error).mean()
        assert point.variables == pytest.approx({"y": y, "z": z}, rel=1e-4, abs=1e-6)
    assert [point.step for point in step.path] == [*range(11)]
    assert step.path[0].loss is None
    assert step.answer == {"y": 3.0, "z": 2.0}


def test_values_stand_in_the_order_of_execution(walked):
    stage = walked("toy")["execution"]
    inputs = {node.name: node.inputs for node in stage.nodes}
    places = {row.node: place for place, row in enumerate(stage.values)}
    for node, place in places.items():
        for tensor in inputs[node]:
            assert places[tensor.partition(":")[0]] < place


# Every model


@pytest.mark.parametrize("name, devices", [("toy", 1), ("lenet", 1), ("toy", 2)])
def test_every_output_of_the_graph_that_ran_has_a_row(name, devices, walked):
    stage = walked(name, devices)["execution"]
    rows = {(row.node, row.op) for row in stage.values}
    expected = {(node.name, node.op) for node in stage.nodes if node.outputs}
    assert rows == expected
    assert stage.recorded_step.notes == ()
    assert stage.not_finite == ()
    assert stage.recorded_step.ns > 0


@pytest.mark.parametrize("name", ["toy", "lenet"])
def test_types_and_shapes_are_those_of_the_trace(name, walked):
    stage = walked(name)
    known = {}
    for node in stage["placement"].nodes:
        for number, output in enumerate(node.outputs):
            if output.dtype != "resource" and not debugger.is_scratch(node.op, number):
                known[node.name, number] = (output.dtype, output.shape)
    rows = {
        (row.node, int(row.tensor.rpartition(":")[2])): (row.dtype, row.shape)
        for row in stage["execution"].values
        if row.kind not in ("variable", "fed")
    }
    fed = {row.node for row in stage["execution"].values if row.kind == "fed"}
    assert rows == {key: value for key, value in known.items() if key[0] not in fed}


def test_of_lenet_all_is_said_but_large_tensors_are_not_kept(walked):
    rows = by_tensor(walked("lenet")["execution"])
    images, kernel = rows["images:0"], rows["dense1/kernel"]
    assert (images.kind, images.shape, images.values) == ("fed", (16, 32, 32, 1), None)
    assert 0 < images.mean < images.max == 1
    assert (kernel.values, kernel.shape) == (None, (400, 120))
    assert 0 < kernel.moved < 0.1
    assert len(rows["dense3/bias"].values) == 10
    assert rows["dense3/bias"].after.values != rows["dense3/bias"].values
    relu = next(row for row in rows.values() if row.node == "conv1/Relu")
    assert relu.min == 0 and 0.1 < relu.zeros < 1


def test_what_is_fed_and_not_needed_is_there_without_a_node(walked):
    placed = replace(walked("toy")["placement"], fetches=("mul:0",))
    stage = execution.execute(placed, FEW)
    rows = by_tensor(stage)
    assert (rows["targets:0"].node, rows["targets:0"].kind) == ("", "fed")
    assert stage.recorded_step.path == ()  # nothing is trained


def test_the_step_is_among_no_others(walked, monkeypatch):
    placed, taken = walked("toy")["placement"], []
    with_values = execution.execute(placed, FEW)
    monkeypatch.setattr(values, "record", lambda *args: taken.append(args))
    without = execution.execute(placed, replace(FEW, values=False))
    assert (without.values, without.recorded_step, taken) == ((), None, [])
    ran = [{run.name for run in stage.runs} for stage in (with_values, without)]
    assert ran[0] == ran[1]
    assert with_values.steps == without.steps == 1


# Where the first NaN or Inf came from


def model(head, numbers=(0.5, 0.25, 0.0, 1.0)):
    """A model function that feeds these numbers again and again."""

    def build():
        x = tf1.placeholder(tf.float32, [None], name="x")
        return Model(tf.reduce_sum(head(x), name="sum"), {x: "x"}, data)

    def data(split, data_dir=None):
        return Dataset("planted", split, {"x": np.tile(np.float32(numbers), 8)})

    return build


def line_of(planted):
    """The line of this file that has the text."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if planted in line)


def log_of_zero(x):
    return tf.exp(x) + tf.math.log(x, name="planted")  # here: log


def division_by_zero(x):
    return tf.tanh(tf.divide(x - x, x, name="planted"))  # here: division


def half_overflow(x):
    half = tf.cast(x * 300, tf.float16)
    return tf.cast(tf.multiply(half, half, name="planted"), tf.float32) * 0.0  # here: overflow


def first_of(head, *options, **known):
    return executed(model(head, **known), *options).not_finite[0]


@pytest.mark.parametrize(
    "head, op, nan, infinite, what, went_in",
    [
        (log_of_zero, "Log", 0, 2, "log", [("x", 2, 2, 0)]),
        (division_by_zero, "RealDiv", 2, 0, "division", [("sub", 2, 2, 0), ("x", 2, 2, 0)]),
        # The runtime makes a Square of it under a name of its own
        (half_overflow, "Mul", 0, 2, "overflow", [("Cast", 2, 0, 0)]),
    ],
)
def test_an_origin_is_the_node_of_the_program_with_its_line_and_what_went_in(
    head, op, nan, infinite, what, went_in
):
    stage = executed(model(head))
    (first,) = stage.not_finite
    assert (first.node, first.tensor, first.op, first.kind) == (
        "planted", "planted:0", op, "computed",
    )  # fmt: skip
    assert (first.nan, first.infinite, first.size, first.optimised) == (nan, infinite, 8, False)
    assert (first.source.file, first.source.line) == (__file__, line_of(f"# here: {what}"))
    assert [(e.tensor, e.elements, e.zeros, e.negative) for e in first.entered] == went_in
    assert first.overflow is (what == "overflow")
    assert "sum:0" in stage.recorded_step.not_finite


def test_an_origin_that_passes_fused_away_is_named_and_not_the_loss():
    def head(x):
        relu = tf.nn.relu(x - 0.25, name="relu")
        return -tf.math.log(relu, name="planted")  # here: fused

    stage = executed(model(head))
    assert "planted" not in {node.name for node in stage.nodes}
    (first,) = stage.not_finite
    assert (first.node, first.source.line) == ("planted", line_of("# here: fused"))
    assert [(e.tensor, e.elements, e.zeros) for e in first.entered] == [("relu", 4, 4)]


def test_of_a_naive_softmax_the_exponential_is_named_and_not_the_loss():
    first = executed(planted.naive_softmax).not_finite[0]
    assert (first.node, first.op, first.infinite) == ("exponentials", "Exp", 32)
    assert first.source.code.endswith("# planted")


def test_a_nan_that_was_fed_is_said_to_be_fed():
    first = first_of(tf.exp, numbers=(0.0, np.nan))
    assert (first.tensor, first.kind, first.nan, first.size) == ("x:0", "fed", 4, 8)
    assert first.node == "x" and first.source.file == __file__


@pytest.mark.parametrize("resource", [True, False])
def test_a_nan_that_a_variable_holds_is_said_to_be_there_before(resource):
    def head(x):
        initial = np.float32([1, np.nan, np.inf])
        w = tf1.get_variable("w", initializer=initial, use_resource=resource)
        return tf.reduce_sum(w) * x

    first = first_of(head)
    assert (first.tensor, first.kind, first.nan, first.infinite) == ("w", "variable", 1, 1)
    assert first.source.file == __file__


def test_a_node_that_was_folded_into_a_constant_is_the_origin():
    def head(x):
        zeros = tf.constant([0.0, 0.0])
        return x + tf.reduce_sum(tf.math.log(zeros, name="planted"))  # here: folded

    first = first_of(head)
    assert (first.node, first.kind) == ("planted", "computed")
    assert first.source.line == line_of("# here: folded")


def test_in_a_loop_the_first_is_the_turn_in_which_it_grew_too_large():
    def head(x):
        _, grown = tf.while_loop(
            lambda turn, _: turn < 12,
            lambda turn, value: (turn + 1, tf.square(value, name="planted")),  # here: loop
            [tf.constant(0), x + 3],
        )
        return grown

    first = first_of(head)
    assert (first.op, first.inside, first.overflow) == ("Square", "while", True)
    assert first.call == 6  # 4 ** 2 ** 6 is 2 ** 128, which no float32 can hold
    assert first.infinite == 2
    assert first.source.line == line_of("# here: loop")


def test_a_branch_that_is_taken_is_seen():
    def head(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.math.log(x), lambda: x)  # here: branch

    first = first_of(head)
    assert (first.op, first.inside, first.source.line) == ("Log", "cond", line_of("# here: branch"))


def test_a_function_in_a_function_is_seen():
    @tf.function
    def inner(x):
        return tf.math.log(x - x)  # here: inner

    @tf.function
    def outer(x):
        return inner(x * 2)

    first = first_of(outer)
    assert (first.op, first.inside) == ("Log", "PartitionedCall")
    assert first.source.line == line_of("# here: inner")


# A training step


def trained(head, rate=0.1, start=0.5, optimizer=tf1.train.GradientDescentOptimizer):
    """The execution of a model with one variable, whose loss is the mean of what the head makes."""

    def build():
        x = tf1.placeholder(tf.float32, [None], name="x")
        w = tf1.get_variable("w", initializer=np.float32(start), use_resource=True)  # here: w
        loss = tf.reduce_mean(head(x, w), name="loss")

        def data(split, data_dir=None):
            return Dataset("planted", split, {"x": np.tile(np.float32([0, 1, -2, 3]), 8)})

        made = optimizer(rate)  # here: optimiser
        return Model(loss, {x: "x"}, data, loss=loss, optimizer=made)

    return executed(build)


def test_a_gradient_that_is_no_number_though_the_loss_is_one_is_the_origin():
    def head(x, w):
        return x * w + tf.sqrt(tf.square(w), name="root")  # here: root

    stage = trained(head, start=0.0)
    assert stage.recorded_step.not_finite == stage.recorded_step.reference_not_finite == ("w",)
    (first,) = stage.not_finite
    assert (first.op, first.derives) == ("SqrtGrad", "root")
    assert first.source.line == line_of("# here: root")
    assert [(e.tensor, e.zeros) for e in first.entered][:1] == [("root", 1)]


def test_what_is_born_in_an_update_is_found_in_the_variable():
    stage = trained(lambda x, w: tf.square(x * w), rate=3e38, start=3e4)
    (first,) = stage.not_finite
    assert (first.kind, first.tensor, first.op) == ("update", "w", "ResourceApplyGradientDescent")
    assert (first.infinite, first.overflow) == (1, True)
    assert first.source.line == line_of("# here: optimiser")
    inputs = {e.tensor: e.max for e in first.entered}
    assert (inputs["w"], inputs["train/learning_rate"]) == (3e4, pytest.approx(3e38))
    (row,) = [row for row in stage.values if row.tensor == "w"]
    assert row.not_finite == 0 and row.after.not_finite == 1


def test_a_slot_of_the_optimiser_is_looked_at_too():
    stage = trained(lambda x, w: x * w * 1e25, optimizer=tf1.train.AdamOptimizer)
    (first,) = stage.not_finite
    assert (first.kind, first.tensor, first.op) == ("update", "w/Adam_1", "ResourceApplyAdam")


# What the program defines, beside what ran


def by_name(rows):
    return {row.tensor: row for row in rows}


def test_a_node_that_passes_gave_other_inputs_agrees_no_longer():
    stage = executed(model(lambda x: tf.multiply(x * 3.0, 7.0, name="planted") + 1.0))
    assert by_name(stage.values)["mul:0"].agrees is False or "mul:0" not in by_name(stage.values)
    defined = by_name(stage.defined)
    assert defined["mul:0"].values[:4] == (1.5, 0.75, 0.0, 3.0)
    assert defined["mul:0"].held_by is None
    assert defined["planted:0"].values[:4] == (10.5, 5.25, 0.0, 21.0)
    assert by_name(stage.values)["planted:0"].agrees is True


@pytest.mark.parametrize("name", ["toy", "lenet"])
def test_every_node_that_a_step_needs_has_its_value_by_definition(name, walked):
    stages = walked(name)
    stage, defined = stages["execution"], {row.node for row in stages["execution"].defined}
    fates = {fate.name: fate.fate for fate in stages["placement"].ledger}
    kept = ("resource", "VarHandleOp", "Placeholder")
    for node in stages["placement"].user_nodes:
        values = [out for out in node.outputs if out.dtype not in kept]
        if values and fates[node.name] != "unreached" and node.op not in kept:
            assert node.name in defined, node
    assert {row.agrees for row in stage.values if row.node in defined} == {True}


def test_what_is_drawn_at_random_is_the_same_in_both_steps():
    def head(x):
        noise = tf.random.uniform([8], name="noise")
        return tf.multiply(noise, x, name="product") + tf.random.stateless_normal([8], [1, 2])

    stage = executed(model(head))
    rows, defined = by_name(stage.values), by_name(stage.defined)
    assert rows["product:0"].agrees is True
    assert defined["product:0"].values == rows["product:0"].values
    assert stage.recorded_step.notes == ()


def test_what_a_function_draws_at_random_is_not_compared():
    @tf.function
    def noisy(x):
        return x * tf.raw_ops.RandomUniform(shape=[8], dtype=tf.float32)  # with no seed

    stage = executed(model(lambda x: tf.tanh(noisy(x), name="after") + tf.exp(x, name="beside")))
    defined = by_name(stage.defined)
    assert "beside:0" in defined and "after:0" not in defined
    (note,) = stage.recorded_step.notes
    assert "depend on random numbers that differ in each run" in note


def test_variables_that_start_at_random_have_the_same_values_in_both_steps():
    def head(x):
        initial = tf.random.uniform([8])
        return tf.multiply(tf1.get_variable("w", initializer=initial, use_resource=True), x, "mine")

    stage = executed(model(head))
    assert by_name(stage.values)["mine:0"].agrees is True


def test_scratch_of_a_batch_norm_is_no_value():
    def head(x):
        images = tf.reshape(x, [8, 1, 1, 1])
        return tf1.nn.fused_batch_norm(images, tf.ones([1]), tf.zeros([1]))[0]

    stage = executed(model(head))
    norm = [row.tensor for row in stage.values if "BatchNorm" in row.op]
    assert norm and all(int(tensor[-1]) < 3 for tensor in norm)
    assert stage.not_finite == ()


# What is of another kind


def test_every_type_of_element_is_read():
    types = (tf.float16, tf.bfloat16, tf.float64, tf.int64, tf.uint8, tf.complex64)

    def head(x):
        parts = [tf.cast(tf.cast(x + i, t, name=t.name), tf.float32) for i, t in enumerate(types)]
        text = tf.strings.to_number(tf.strings.as_string(x, precision=2, name="text"))
        none = tf.reduce_sum(tf.boolean_mask(x, tf.greater(x, 5, name="large"), name="mask"))
        quantised = tf.quantization.quantize(x, 0.0, 1.0, tf.quint8, name="quantised")
        back = tf.quantization.dequantize(*quantised)
        return tf.add_n(parts) + text + none + back

    rows = by_tensor(executed(model(head)))
    assert rows["float16:0"].values[:2] == (0.5, 0.25)
    assert rows["bfloat16:0"].values[:2] == (1.5, 1.25)
    assert rows["float64:0"].mean == 2.4375
    assert (rows["int64:0"].values[:4], rows["int64:0"].max) == ((3, 3, 3, 4), 4)
    assert rows["uint8:0"].values[:4] == (4, 4, 4, 5)
    assert rows["complex64:0"].values[0] == "5.5+0j"
    assert rows["text:0"].values[:2] == ("0.50", "0.25")
    assert rows["large:0"].values == (False,) * 8
    assert rows["quantised:0"].values[2:4] == (0, 255)
    empty = [row for row in rows.values() if row.shape == (0,) and row.dtype == "float32"]
    assert empty and all(row.values == () and row.mean is None for row in empty)


def test_what_runs_as_one_is_not_seen_inside():
    @tf.function(jit_compile=True)
    def compiled(x):
        return tf.math.log(x) * 2.0

    stage = executed(model(compiled))
    assert stage.recorded_step.notes == (
        "Values inside functions and clusters were not recorded, only their inputs and outputs (1 "
        "node: PartitionedCall).",
    )
    assert stage.not_finite[0].op == "PartitionedCall"


def test_a_saved_graph_has_the_values_of_its_variables(tmp_path):
    from tflab import lifecycle

    *_, stage = lifecycle.walk(graphs.saved_model_v2(tmp_path / "saved"), FEW)
    rows = by_tensor(stage)
    assert rows["w"].values == (1.0,) * 12
    assert rows["w"].moved == 0
    assert stage.recorded_step.notes == ()


def test_another_graph_than_the_one_measured_is_noted(walked):
    measured = walked("toy")["execution"].nodes
    ran = recorded_step.Ran(measured[:-2], (), {}, {}, {}, {}, {}, {}, {}, {})
    variables = len([node for node in ran.nodes if node.op == "VarHandleOp"])
    notes = list(values.notes_of(ran, measured, FEW))
    assert notes[-1] == (
        "The recorded graph differs from the measured one: 2 of its nodes have a different name "
        "or op."
    )
    assert len(notes) == 2 and notes[0].startswith(f"The values of {variables} variables were not")


def test_clusters_that_are_only_numbered_anew_are_the_same_graph():
    from tflab.records.graph import Node

    one, other = Node("cluster_3_1/run", "_XlaRun"), Node("cluster_14_2/run", "_XlaRun")
    assert values.differences([one], [other]) == 0
    assert values.differences([one], [replace(other, op="Mul")]) == 1


# What cannot be recorded


def test_a_node_whose_name_leads_out_of_the_folder_is_not_recorded(monkeypatch):
    written = []
    monkeypatch.setattr(recorded_step, "run", lambda *args: written.append(args))
    stage = executed(model(lambda x: tf.tanh(x, name="a/../../../out")))
    assert stage.recorded_step.notes == (
        "The values of a step were not recorded. The runtime would use the name 'a/../../../out' "
        "as the path of a file.",
    )
    assert (stage.values, stage.recorded_step.ns, written) == ((), None, [])
    assert stage.steps == 1


def test_tensors_that_are_too_large_are_not_recorded(walked, monkeypatch):
    monkeypatch.setattr(debugger, "MOST_BYTES", 500_000)
    stage = execution.execute(walked("lenet")["placement"], replace(FEW, batch_size=16))
    (note,) = stage.recorded_step.notes
    assert note.startswith("The values of a step were not recorded. Its tensors have ")
    assert stage.values == ()


def test_the_size_of_a_step_is_that_of_its_tensors(walked):
    stages = walked("toy")
    rows = [row for row in stages["execution"].values if row.kind != "variable"]
    sizes = [np.prod(row.shape, dtype=int) * tf.as_dtype(row.dtype).size for row in rows]
    handles = 2  # of y and z
    bytes_, files = values.space_needed(stages["execution"], stages["placement"])
    assert files == len(rows) + handles
    assert bytes_ == sum(sizes) + handles * tf.resource.size


def test_what_a_loop_computes_counts_as_often_as_it_runs():
    def head(x):
        body = lambda turn, value: (turn + 1, tf.tanh(value))  # noqa: E731
        return tf.while_loop(lambda turn, _: turn < 50, body, [tf.constant(0), x])[1]

    built = frontend.build(("mine", model(head)), FEW)
    placed = placement.place(backward.differentiate(built, FEW), FEW)
    stage = execution.execute(placed, FEW)
    _, files = values.space_needed(stage, placed)
    computed = sum(row.calls for row in stage.values)
    assert 500 < computed <= files < 2 * computed  # a Switch has an output that stays empty


def test_a_step_that_fails_only_costs_its_values(walked, monkeypatch):
    def refused(*args):
        raise RefusedError("The runtime refused the step: no.")

    monkeypatch.setattr(recorded_step, "run", refused)
    stage = execution.execute(walked("toy")["placement"], FEW)
    assert stage.recorded_step.notes == (
        "The values of a step were not recorded. The runtime refused the step: no.",
    )
    assert (stage.steps, stage.interrupted) == (1, False)


def test_ctrl_c_keeps_what_was_measured(walked, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(recorded_step, "run", interrupt)
    stage = execution.execute(walked("toy")["placement"], FEW)
    assert (stage.steps, stage.interrupted, stage.values) == (1, True, ())


def test_the_folder_is_removed(walked, monkeypatch):
    seen, read = [], debugger.read

    def watched(folder):
        seen.append(folder)
        return read(folder)

    monkeypatch.setattr(debugger, "read", watched)
    stage = execution.execute(walked("toy")["placement"], FEW)
    assert stage.values
    assert {Path(folder).parent for folder in seen} == {atomic.process_folder()}
    assert not any(path.name.startswith("values-") for path in atomic.process_folder().iterdir())


# XLA


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The toy's execution with --xla, as another program reads it."""
    words = ("--xla", "--steps", "1", "--format", "json")
    done = run_here(lifecycle.main, *words, folder=tmp_path_factory.mktemp("compiled"))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["stages"][-1]


def test_with_xla_it_is_said_that_clusters_are_not_seen_inside(compiled):
    (note,) = compiled["recorded_step"]["notes"]
    assert note.startswith("Values inside functions and clusters were not recorded")
    assert note.endswith(" Without --xla these nodes are recorded.")
    assert "xla_run" in note


def test_with_xla_what_is_fed_and_what_variables_hold_is_seen(compiled, batch):
    rows = {row["tensor"]: row for row in compiled["values"]}
    assert rows["x:0"]["values"] == pytest.approx(batch["x:0"].tolist())
    moved = -0.5 * batch["gradients/mul_grad/Sum:0"]
    assert rows["y"]["after"]["values"] == pytest.approx([2 + moved], rel=1e-5)
    outputs = [row for row in compiled["values"] if row["op"] == "_XlaRun"]
    assert [row["values"] for row in outputs] == [[pytest.approx(batch["loss:0"], rel=1e-5)]]


# The derivatives


def test_the_derivatives_of_the_toy_are_what_flowed(walked, batch):
    rows = {row.variable: row for row in walked("toy")["execution"].derivatives}
    assert {name: (row.formula, row.tensor) for name, row in rows.items()} == {
        "y": ("mean(2 * x * (x * y + z - targets))", "gradients/mul_grad/Reshape:0"),
        "z": ("mean(2 * (x * y + z - targets))", "gradients/add_grad/Reshape:0"),
    }
    by_hand = {"y": batch["gradients/mul_grad/Sum:0"], "z": batch["gradients/add_grad/Sum:0"]}
    for name, row in rows.items():
        assert row.flowed == pytest.approx(by_hand[name], rel=1e-5)
        assert row.difference < 1e-6


def test_a_derivative_that_does_not_flow_is_seen(walked):
    placed = walked("toy")["placement"]
    y, z = placed.derivatives
    wrong = replace(placed, derivatives=(replace(y, value=y.value + 0.01), z))
    stage = execution.execute(wrong, FEW16)
    assert [row.difference for row in stage.derivatives] == pytest.approx([0.01, 0], abs=1e-6)
    (sentence,) = (block for block in flowed.blocks(stage.derivatives) if isinstance(block, str))
    assert sentence.startswith(
        "dL/dy differs by more than rounding: the backward stage computed -0.623878, and "
    )
    assert " had -0.63" in sentence


def test_derivatives_at_random_starts_are_not_compared():
    def build():
        tf1.set_random_seed(None)  # as in a file whose author set none
        x = tf1.placeholder(tf.float32, [None], name="x")
        y = tf1.get_variable("y", initializer=tf.random.uniform([], 1, 2), use_resource=True)
        loss = tf.reduce_mean(tf.square(x * y))
        optimizer = tf1.train.GradientDescentOptimizer(0.1)
        return Model(x, {x: "x"}, lambda split, _: toy.line(split), loss, optimizer)

    (row,) = executed(build).derivatives
    assert row.formula == "mean(2 * x * x * y)"
    assert row.flowed > 0
    assert row.difference is None
