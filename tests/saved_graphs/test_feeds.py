"""What strangers' graphs are fed and what is run of them: found out, named, or told what to do."""

import time

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs, strangers
from tests.commands import run_here
from tflab import lifecycle
from tflab.errors import RefusedError, TflabError, UsageError
from tflab.lifecycle import __main__ as lifecycle_command
from tflab.lifecycle import advice
from tflab.records.options import Options, Saved
from tflab.runtime import session
from tflab.saved_graphs import made_up as made_up_values

pytestmark = pytest.mark.tensorflow


def written(tmp_path, build) -> str:
    return graphs.write(tmp_path / "g.pb", graphs.graph_def(build))


def walk(path, stop="frontend", fetches=(), batch_size=16, **saved):
    options = Options(steps=1, fetches=fetches, batch_size=batch_size, saved=Saved(**saved))
    return dict(zip(lifecycle.STAGES, lifecycle.walk(str(path), options, stop), strict=False))


def made_up(path, **saved) -> str:
    """The note about what is made up, without its beginning and its full stop."""
    start = "These values are made up from dtype and shape, with a seed: "
    notes = walk(path, **saved)["frontend"].notes
    return next((n.removeprefix(start)[:-1] for n in notes if n.startswith(start)), "nothing")


def runs(path, **saved) -> tuple[str, ...]:
    return walk(path, **saved)["frontend"].program.model.fetches


def fed(path, batch_size=16, **saved) -> dict[str, np.ndarray]:
    program = walk(path, **saved)["frontend"].program
    values = next(session.feed_batches(program, batch_size))
    return dict(zip(session.step_of(program, ()).feeds, values, strict=True))


# What is run


def test_savers_summaries_and_checks_are_not_what_a_graph_is_for(tmp_path):
    assert runs(written(tmp_path, strangers.with_saver)) == ("w/read:0",)
    assert runs(written(tmp_path, strangers.with_saver_and_summary)) == ("mean_of_out:0",)


def test_a_function_that_saves_is_a_saver(tmp_path):
    def build():
        @tf.function
        def inner(value):
            tf.raw_ops.SaveV2(
                prefix="p", tensor_names=["v"], shape_and_slices=[""], tensors=[value]
            )
            return value

        x = tf.compat.v1.placeholder(tf.float32, [None], name="x")
        tf.identity(tf.function(lambda value: inner(value))(x), name="saved")
        tf.square(x, name="y")

    assert runs(written(tmp_path, build)) == ("y:0",)


def test_a_graph_with_nothing_to_run_is_shown_and_refused_where_it_would_run(tmp_path):
    path = written(tmp_path, strangers.only_constants)
    stages = lifecycle.walk(path)
    assert [node.name for node in next(stages).nodes] == ["one"]
    assert next(stages).gradients == ()
    with pytest.raises(
        TflabError, match=r"nothing to run .* is used by another node\. Give --fetch one\.$"
    ):
        next(stages)
    assert walk(path, "placement", fetches=("one",))["placement"].fetches == ("one:0",)


def test_a_graph_that_touches_files_is_shown_and_refused_where_it_would_run(tmp_path):
    stages = lifecycle.walk(written(tmp_path, graphs.file_reader))
    assert "out" in {node.name for node in next(stages).nodes}
    next(stages)
    with pytest.raises(UsageError, match="Give --allow-"):
        next(stages)


def test_a_loss_of_a_graph_that_cannot_run_is_still_derived(tmp_path):
    stage = walk(written(tmp_path, strangers.queued), "backward", loss="loss")["backward"]
    assert "MatMul" in {gradient.forward for gradient in stage.gradients if gradient.nodes}
    assert "no step can be run. 'dequeue' would wait forever" in stage.unchecked


def test_what_a_chosen_fetch_needs_is_fed(tmp_path):
    path = written(tmp_path, strangers.dropped)
    assert list(fed(path)) == ["keep_prob:0", "x:0"]
    assert list(fed(path, fetches=("x",))) == ["x:0"]


# What is fed


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    return strangers.v1_saved_model(tmp_path_factory.mktemp("served") / "v1")


@pytest.mark.parametrize(
    ("signature", "feeds", "fetches"),
    [
        ("classify", ["examples:0"], ("classes:0", "scores:0")),
        ("regress", ["examples:0"], ("value:0",)),
        ("middle", ["x:0"], ("y:0",)),
    ],
)
def test_signatures_of_every_kind_are_fed_and_run(served, signature, feeds, fetches):
    stages = walk(served, "placement", signature=signature)
    assert stages["placement"].fetches == fetches
    assert list(fed(served, signature=signature)) == feeds


def test_serialised_examples_fit_the_graphs_own_parsing(served):
    strings = fed(served, signature="classify")["examples:0"]
    features = [tf.train.Example.FromString(string).features.feature for string in strings]
    assert {len(row["x"].float_list.value) for row in features} == {4}
    ids = [row["id"].int64_list.value[0] for row in features]
    assert max(ids) > 1 and all(0 <= number < 20 for number in ids)  # rows of the table
    assert all(len(row["words"].bytes_list.value) == 1 for row in features)
    assert made_up(served, signature="classify") == (
        "examples string [batch] (tf.Examples of words, id, x, as 'ParseExample/ParseExampleV2' "
        "parses)"
    )


def test_examples_fit_the_parsing_of_older_graphs(tmp_path):
    def build():
        tf.raw_ops.ParseExample(
            serialized=tf1.placeholder(tf.string, [None], name="examples"),
            names=[],
            sparse_keys=["words"],
            dense_keys=["x", "id"],
            dense_defaults=[tf.constant([], tf.float32), tf.constant([], tf.int64)],
            sparse_types=[tf.string],
            dense_shapes=[[4], []],
            name="parse",
        )

    path = written(tmp_path, build)
    assert (
        made_up(path) == "examples string [batch] (tf.Examples of words, x, id, as 'parse' parses)"
    )
    row = tf.train.Example.FromString(fed(path)["examples:0"][0]).features.feature
    assert list(row["words"].bytes_list.value) == [b""]
    assert len(row["x"].float_list.value) == 4
    assert len(row["id"].int64_list.value) == 1
    assert "placement" in walk(path, "placement")


def test_what_the_user_feeds_goes_before_an_input_that_is_made_of_it(served, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros([20, 4], np.float32))
    given = {"feeds": (("x", str(tmp_path / "x.npy")),)}
    assert list(fed(served, signature="middle", **given)) == ["x:0"]
    with pytest.raises(UsageError, match="'x:0' is fed in vain: the fetches"):
        walk(served, signature="middle", fetches=("rows",), **given)
    shapes = {"shapes": (("examples", (5,)),)}
    assert list(fed(served, signature="middle", **shapes)) == ["examples:0"]


def test_a_name_of_a_signatures_input_can_be_fed(tmp_path):
    path = graphs.saved_model_v2(tmp_path / "v2")
    assert list(fed(path, shapes=(("x", (5, 4)),))) == ["serving_default_x:0"]


def test_an_input_of_a_signature_that_cannot_be_fed_is_told(served, monkeypatch):
    monkeypatch.setattr(tf.Graph, "is_feedable", lambda graph, tensor: tensor.name != "x:0")
    notes = walk(served, signature="middle")["frontend"].notes
    assert "The input 'x' of its signature, 'x:0', cannot be fed." in notes
    with pytest.raises(UsageError, match="'x' cannot be fed, because TensorFlow does not allow it"):
        walk(served, signature="middle", shapes=(("x", (5, 4)),))


def test_a_wrong_signature_gets_the_nearest(served):
    with pytest.raises(
        UsageError, match=r"are: classify, middle, regress. Did you mean 'classify'"
    ):
        walk(served, signature="clasify")


def test_a_queue_that_nobody_fills_is_told_at_once_with_what_to_feed(tmp_path):
    path = written(tmp_path, strangers.queued)
    with pytest.raises(TflabError) as error:
        walk(path, "placement")
    assert str(error.value) == (
        "'dequeue' would wait forever: no op in the step fills 'batches'. Give --feed "
        "dequeue:0=FILE.npy dequeue:1=FILE.npy, or --shape dequeue:0=16,4 dequeue:1=16 for "
        "made-up values."
    )
    shapes = (("dequeue:0", (16, 4)), ("dequeue:1", (16,)))
    assert walk(path, "placement", shapes=shapes)["placement"].fetches == ("loss:0",)


def test_a_queue_of_which_only_one_tensor_is_fed_is_still_waited_for(tmp_path):
    path = written(tmp_path, strangers.queued)
    with pytest.raises(
        TflabError, match=r"--feed dequeue:1=FILE.npy, or --shape dequeue:1=16 for made-up"
    ):
        walk(path, "placement", shapes=(("dequeue:0", (16, 4)),))


def test_what_takes_one_of_two_outputs_of_a_queue_runs_when_that_one_is_fed(tmp_path):
    path = written(tmp_path, lambda: tf.square(strangers.batches()[0], name="y"))
    with pytest.raises(TflabError, match=r"or --shape dequeue:0=16,4 for made-up values\.$"):
        walk(path, "placement")
    shapes = (("dequeue:0", (16, 4)),)
    assert walk(path, "placement", shapes=shapes)["placement"].fetches == ("y:0",)


def test_a_shape_that_is_wrong_as_well_is_found_before_it_is_advised(tmp_path):
    def build():
        row = tf1.FIFOQueue(30, [tf.float32]).dequeue(name="dequeue")
        tf.matmul(tf1.placeholder_with_default(row, None), tf.ones([6, 2]), name="y")

    path = written(tmp_path, build)
    with pytest.raises(TflabError) as error:
        walk(path, "placement")
    assert str(error.value).endswith("or --shape dequeue:0=16,6 for made-up values.")
    assert "placement" in walk(path, "placement", shapes=(("dequeue:0", (16, 6)),))


def test_what_cannot_be_fed_within_a_loop_is_not_advised(tmp_path):
    path = written(tmp_path, strangers.queued_in_a_loop)
    with pytest.raises(TflabError, match=r"no op in the step fills 'batches'\.$"):
        walk(path, "placement")


def test_what_still_waits_for_ever_is_not_advised(tmp_path, monkeypatch):
    def build():
        x, _ = strangers.batches()
        of_one = tf1.FIFOQueue(1, [tf.float32], [[]])
        with tf.control_dependencies([of_one.enqueue_many([tf.ones([3])])]):
            tf.square(x, name="y")

    monkeypatch.setattr(advice, "TRIED_S", 2)
    path = written(tmp_path, build)
    began = time.monotonic()
    with pytest.raises(TflabError, match=r"no op in the step fills 'batches'\.$"):
        walk(path, "placement")
    assert 2 <= time.monotonic() - began < 30


def test_what_a_loop_sets_in_each_iteration_is_not_fetched(tmp_path):
    def build():
        body = lambda number, value: (number + 1, tf.square(value, name="square"))  # noqa: E731
        _, y = strangers.old_loop(body, [0, 2.0])
        tf.identity(y, name="y")

    path = written(tmp_path, build)
    assert runs(path) == ("while/Exit:0", "y:0")
    with pytest.raises(UsageError, match="'while/square' is in a loop, which sets it in each"):
        walk(path, fetches=("while/square",))


def test_a_staging_area_that_nobody_fills_is_told(tmp_path):
    path = written(tmp_path, strangers.staged)
    with pytest.raises(TflabError, match=r"'taken' would wait forever: no op .* fills 'area'"):
        walk(path, "placement")


def test_a_queue_that_the_step_itself_fills_is_run(tmp_path):
    assert "placement" in walk(written(tmp_path, strangers.filled_within), "placement")


def test_an_iterator_is_begun_where_nothing_has_to_be_fed_for_it(tmp_path):
    assert "placement" in walk(written(tmp_path, strangers.iterated), "placement")
    path = written(tmp_path, lambda: strangers.iterated(fed=True))
    with pytest.raises(TflabError) as error:
        walk(path, "placement")
    assert str(error.value) == (
        "'next' would fail: no op in the step initialises 'IteratorV2'. Give --feed "
        "next:0=FILE.npy, or --shape next:0=8,4 for made-up values."
    )
    assert "placement" in walk(path, "placement", shapes=(("next:0", (8, 4)),))


def test_an_iterator_over_files_is_not_begun_without_leave(tmp_path):
    def build():
        data = tf.compat.v1.data.TextLineDataset(["/etc/hostname"]).batch(8)
        iterator = tf.compat.v1.data.make_initializable_iterator(data)
        tf.identity(iterator.get_next(), name="y")

    with pytest.raises(UsageError, match=r"\(TextLineDataset\) reads files"):
        walk(written(tmp_path, build), "placement")


def test_a_default_is_left_unless_it_is_fed(tmp_path):
    path = written(tmp_path, strangers.with_default)
    assert fed(path) == {}
    assert fed(path, shapes=(("given", (16,)),))["given:0"].shape == (16,)


# Shapes and values that fit


@pytest.mark.parametrize(
    ("build", "note"),
    [
        (strangers.unsaid_width, "x float32 [batch, 784] (to fit 'y')"),
        (strangers.unsaid_image, "x float32 [batch, 28, 28, 3] (to fit 'flat')"),
        (strangers.reshaped, "x float32 [batch, 784] (to fit 'Reshape')"),
        (
            strangers.dropped,
            "x float32 [batch, 4]; keep_prob float32 [] (to fit 'dropout/RealDiv'; 0.5)",
        ),
        (
            strangers.switched,
            "x float32 [batch, 4]; is_training bool [] (False)",
        ),
        (
            strangers.looked_up,
            "ids int32 [batch] (0 to 6, as 'embedding_lookup' takes); labels int64 [batch] (0 to "
            "2, as 'loss/loss' takes)",
        ),
        (strangers.hot, "digits int32 [batch] (0 to 9, as 'y' takes)"),
        (
            strangers.with_rate,
            "rate float32 [] (to fit 'GradientDescent/update_w/ResourceApplyGradientDescent'; 0.5)"
            "; x float32 [batch, 4]",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_made_up_fits_and_says_what_it_was_worked_out_from(build, note, tmp_path):
    path = written(tmp_path, build)
    assert made_up(path) == note
    assert "placement" in walk(path, "placement")


def test_whole_numbers_reach_the_last_row_of_a_table_and_no_further(tmp_path):
    values = fed(written(tmp_path, strangers.looked_up), 1024)
    assert set(values["ids:0"]) == set(range(7))
    assert set(values["labels:0"]) == set(range(3))


def test_a_shape_that_the_user_gives_is_not_searched(tmp_path):
    path = written(tmp_path, strangers.unsaid_width)
    assert fed(path, shapes=(("x", (16, 5)),))["x:0"].shape == (16, 5)


def test_a_step_that_fails_on_made_up_values_says_what_to_try(tmp_path):
    with pytest.raises(RefusedError) as error:
        walk(written(tmp_path, strangers.hidden), "placement")
    said = str(error.value).replace("[6,2] 0 0.", "[6,2].")  # as oneDNN says it
    assert said == (
        "The runtime refused the step: Matrix size-incompatible: In[0]: [16,1], In[1]: [6,2]. "
        "It was fed made-up values: 'x' (float32 [16, 1]). Give --feed x=FILE.npy, or --shape "
        "x=16,6 for made-up values."
    )
    assert "placement" in walk(tmp_path / "g.pb", "placement", shapes=(("x", (16, 6)),))


def test_a_shape_that_does_not_help_is_not_advised(tmp_path, monkeypatch):
    monkeypatch.setattr(advice, "TRIED_S", 1)

    def build():
        x = tf.compat.v1.placeholder(tf.float32, name="x")
        hidden = tf.compat.v1.placeholder_with_default(x, None)
        tf.debugging.assert_equal(tf.size(hidden), 6000, message="6000 of them", name="check")
        with tf.control_dependencies(tf.compat.v1.get_default_graph().get_operations()[-1:]):
            tf.identity(hidden, name="y")

    with pytest.raises(RefusedError) as error:
        walk(written(tmp_path, build), "placement", fetches=("y",))
    assert str(error.value).endswith("It was fed made-up values: 'x' (float32 [16]).")


@pytest.mark.parametrize(
    "static, shapes",
    [
        ([None, None], [(None, 7), (None, 1)]),
        ([5, None], [(5, 7), (5, 1)]),
        ([None, None, 2], [(None, 1, 2)]),
        ([None, None, None, 3], [(None, n, n, 3) for n in (1, 28, 32, 224, 299, 7)]),
        ([None, 3, None, None, 1], []),
        (
            None,
            [
                (),
                *[(None, 7), (None, 1)],
                *[(None, 1, 7), (None, 1, 1)],
                *[(None, n, n, d) for d in (7, 1, 3) for n in (1, 28, 32, 224, 299, 7)],
                (None,),
            ],
        ),
    ],
)
def test_shapes_that_are_tried_have_the_sizes_that_are_known(static, shapes):
    assert made_up_values.other_shapes(tf.TensorShape(static), [7]) == shapes


def test_a_shape_is_found_beside_a_tensor_that_no_node_takes(tmp_path):
    def build():
        tf1.placeholder(tf.float32, [None, None], name="alone")
        strangers.unsaid_width()

    stage = walk(written(tmp_path, build), fetches=("y", "alone"))["frontend"]
    values = next(session.feed_batches(stage.program, 16))
    assert sorted(value.shape for value in values) == [(16, 1), (16, 784)]


def test_other_shapes_of_a_scalar_have_one_row_and_begin_with_what_the_runtime_named():
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, name="x")
        shapes = list(advice.other_shapes(x, (), "It has to have 3 columns"))
    assert shapes[:2] == [(1, 3), (1, 1, 3)]
    assert (1, 1) in shapes and () not in shapes


def test_what_was_given_is_not_called_made_up(tmp_path):
    np.save(tmp_path / "x.npy", np.ones([20, 5], np.float32))
    with pytest.raises(RefusedError, match=r"In\[1\]: \[6,2\]( 0 0)?\.$"):
        walk(
            written(tmp_path, strangers.hidden),
            "placement",
            feeds=(("x", str(tmp_path / "x.npy")),),
        )


def test_of_what_was_fed_only_what_was_made_up_is_doubted(tmp_path):
    def build():
        a = tf.compat.v1.placeholder(tf.float32, [None, 5], name="a")
        b = tf.compat.v1.placeholder(tf.float32, name="b")
        shapeless = tf.compat.v1.placeholder_with_default(b, None)
        tf.matmul(a, shapeless, name="y")

    np.save(tmp_path / "a.npy", np.ones([20, 5], np.float32))
    with pytest.raises(
        RefusedError, match=r"made-up values: 'b' \(float32 \[16\]\)\. Give --feed b="
    ):
        walk(written(tmp_path, build), "placement", feeds=(("a:0", str(tmp_path / "a.npy")),))


def test_an_array_without_rows_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.ones([0, 5], np.float32))
    with pytest.raises(
        UsageError, match=r"x.npy' has no rows to feed to 'x:0'. Give an array with rows."
    ):
        walk(written(tmp_path, strangers.in_a_function), feeds=(("x", str(tmp_path / "x.npy")),))


READS = {
    tf.resource: lambda x: tf.raw_ops.ReadVariableOp(resource=x, dtype=tf.float32, name="y"),
    tf.variant: lambda x: tf.raw_ops.TensorListLength(input_handle=x, name="y"),
}


@pytest.mark.parametrize("dtype", READS)
def test_a_graph_that_would_have_to_be_fed_a_handle_is_shown_and_not_run(dtype, tmp_path):
    def build():
        READS[dtype](tf.compat.v1.placeholder(dtype, name="x"))

    path = written(tmp_path, build)
    assert [node.name for node in walk(path, "backward")["backward"].nodes] == ["x", "y"]
    with pytest.raises(TflabError, match=f"^'x' must be fed a {dtype.name}, which is not an array"):
        walk(path, "placement")


def test_a_variable_of_text_starts_as_an_empty_one(tmp_path):
    def build():
        handle = tf.raw_ops.VarHandleOp(dtype=tf.string, shape=[2], name="v")
        value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.string)
        tf.strings.length(value, name="out")

    execution = walk(written(tmp_path, build), "execution")["execution"]
    assert {value.tensor: value.values for value in execution.values}["out:0"] == (0, 0)


# The command


@pytest.mark.slow
def test_the_command_proposes_what_then_works(tmp_path):
    path = written(tmp_path, strangers.queued)

    def lifecycle_of(*arguments):
        return run_here(lifecycle_command.main, "--model", path, *arguments)

    assert lifecycle_of("--stage", "frontend").returncode == 0
    refused = lifecycle_of("--stage", "placement")
    assert refused.returncode == 1
    proposed = refused.stderr.partition(", or ")[2].partition(" for ")[0].split()
    assert proposed[0] == "--shape"
    assert lifecycle_of("--stage", "placement", *proposed).returncode == 0
