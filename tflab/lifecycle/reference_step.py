"""Reference step: the recorded step once more, with every node computing what the program says.

Graph passes fold, fuse, rename and rewire nodes, so a node of the graph that runs may have the name
of a node in the program and compute something else. Here all passes are off that can be switched
off, functions, branches and loops are inlined, and the step starts from the same values and takes
the same data. Random numbers of the recorded step are fed.

So it has the tensors of a program as the program defines them, and tells which tensors of the graph
that ran hold the same values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.analysis import ledger
from tflab.analysis import values as analysis
from tflab.errors import TflabError
from tflab.lifecycle import recorded_step
from tflab.lifecycle.recorded_step import Arrays, Ran
from tflab.models.saved import ASSIGNMENTS
from tflab.records.graph import Node, graph_def_name, node_of, output_name, reach, turned_around
from tflab.records.options import Options, Program
from tflab.records.stages import Placement
from tflab.records.values import COMPUTED, Defined
from tflab.runtime import debugger, nodes, session
from tflab.units import plural

# Nodes that run functions: the graph that runs has no nodes of these names
CALLS = ("PartitionedCall", "StatefulPartitionedCall")
CHOICES = ("If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile")
# Types that oneDNN merges with following nodes if no other node takes their output
MERGED = ("Conv2D", "Conv2DBackpropFilter", "Pad", "PadV2")
FRAMES = ("Enter", "RefEnter", "Switch", "RefSwitch")  # after these, a tensor may be missing
NO_NUMBERS = (tf.resource, tf.variant)
LISTED = 3  # names in a note
# limit for the tensors of the reference step, as a multiple of those of the recorded step
MOST_TIMES = 3


def config_of(options: Options) -> tf1.ConfigProto:
    """A session's configuration without graph passes, except oneDNN's rewriting of types, which
    only an environment variable switches off."""
    config = session.config_of(replace(options, xla=False, without=()))
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    optimizer = config.graph_options.optimizer_options
    optimizer.opt_level = tf1.OptimizerOptions.L0
    optimizer.do_function_inlining = True  # so that the debugger sees the inside
    return config


def run(
    folder: str,
    program: Program,
    step: session.Step,
    batch: Sequence[np.ndarray],
    start: Arrays,
    drawn: Arrays,
    options: Options,
    passes: bool = False,
) -> Ran:
    """The step from these values of the variables, recorded into a folder.

    `drawn` are tensors to feed in addition to the batch. With `passes` the graph is rewritten as
    usual. Raises TflabError if a variable starts with other values in each session and cannot be
    set.
    """
    fed = {**dict(zip(step.feeds, batch, strict=True)), **drawn}
    feeds = tuple(sorted(fed))
    extra = () if passes else tuple(hidden_tensors(program.graph, step, feeds))
    config = session.config_of(options) if passes else config_of(options)
    widened = session.Step(feeds, (*step.fetches, *extra), step.targets)
    readers = session.variable_readers(
        program.graph, [op.name for op in program.graph.get_operations()]
    )
    with session.fresh(program.graph, options, config) as live:
        session.begin(live, session.start_of(program))
        set_to(live, program, readers, start)
        ran = recorded_step.run_once(live, widened, [fed[name] for name in feeds], readers, folder)
    return replace(
        ran,
        fetched={name: ran.fetched[name] for name in step.fetches},
        hidden={name: ran.fetched[name] for name in extra},
    )


def hidden_tensors(graph: tf.Graph, step: session.Step, feeds: Collection[str]) -> Iterator[str]:
    """Tensors whose node the step needs but the graph that runs will not have: they are fetched
    if they exist in every step."""
    parents = nodes.from_graph(graph)
    needed = ledger.nodes_needed(parents, (*step.fetches, *step.targets), feeds)
    behind = with_dependents(parents, (node.name for node in parents if node.op in FRAMES))
    for node in parents:
        if node.op in (*CALLS, *CHOICES, *MERGED) and node.name in needed - behind:
            for number, output in enumerate(node.outputs):
                if output.dtype not in ("resource", "variant"):
                    yield f"{node.name}:{number}"


def with_dependents(graph: Iterable[Node], starts: Iterable[str]) -> set[str]:
    """These nodes, and all that depend on any of them."""
    before = {node.name: [*map(node_of, node.inputs), *node.control_inputs] for node in graph}
    return reach(starts, turned_around(before))


def draws(graph: tf.Graph) -> dict[str, tuple[str, ...]]:
    """The nodes whose outputs differ from run to run although their inputs do not, with these
    outputs: random numbers, and data that are read."""
    random = {}
    for op in graph.get_operations():
        keeps = [tensor for tensor in (*op.inputs, *op.outputs) if is_state(tensor)]
        reads = op.type == "IteratorGetNext"
        if not op.outputs or not op.op_def.is_stateful or op.type in (*CALLS, *CHOICES):
            continue
        if reads or not keeps:
            random[op.name] = tuple(tensor.name for tensor in op.outputs)
    return random


def is_state(tensor: tf.Tensor) -> bool:
    return tensor.dtype.base_dtype in NO_NUMBERS or tensor.dtype != tensor.dtype.base_dtype


def draws_inside(graph: tf.Graph) -> bool:
    """Whether a function of the graph draws random numbers from a generator of its own."""
    return any(
        node.op.startswith(("Random", "TruncatedNormal", "Multinomial", "Parameterized"))
        for function in graph.as_graph_def().library.function
        for node in function.node_def
    )


def set_to(live: tf1.Session, program: Program, readers: Mapping[str, str], start: Arrays) -> None:
    """Give the variables these values, by feeding nodes that assign to them."""
    now = session.variable_values(live, {name: readers[name] for name in start if name in readers})
    other = [name for name, value in now.items() if not same_bytes(value, start[name])]
    setters = {}
    for name in other:
        op = setter(live.graph.get_operation_by_name(name))
        if op is None:
            raise TflabError(
                f"The variable '{name}' starts with different values in each session, and no node "
                "sets it."
            )
        setters[name] = op
    feeds = {op.inputs[1]: start[name] for name, op in setters.items()}
    live.run(list(setters.values()), feeds)


def setter(variable: tf.Operation) -> tf.Operation | None:
    """A node that assigns its second input to a variable and waits for no other node."""
    takers = variable.outputs[0].consumers()
    fitting = (op for op in takers if op.type in ASSIGNMENTS and not op.control_inputs)
    return next(fitting, None)


def same_bytes(first: np.ndarray, other: np.ndarray) -> bool:
    return first.shape == other.shape and first.tobytes() == other.tobytes()


def value(tensor: str, program: Mapping[str, Node], ran: Ran) -> np.ndarray | None:
    """One tensor. An Identity that is not in the graph that ran has the value of its input."""
    while True:
        node, _, number = tensor.partition(":")
        full = f"{node}:{number or 0}"
        array = ran.array(tensor)
        if array is not None:
            return array
        for arrays in (ran.hidden, ran.fetched, ran.fed):
            if full in arrays:
                return np.asarray(arrays[full])
        if node in ran.before and program[node].op in session.REFERENCES:
            return ran.before[node]
        if node not in program or program[node].op != "Identity":
            return None
        tensor = program[node].inputs[0]


# The reference step of a recorded step, and what the two have in common


def reference_of(
    folder: str, placement: Placement, ran: Ran, options: Options
) -> tuple[Ran | None, tuple[str, ...]]:
    """The reference step of the step that ran; or None and the reason."""
    graph = placement.program.graph
    drawn: dict[str, np.ndarray] = {}
    for name, tensors in draws(graph).items():
        arrays = [ran.array(graph_def_name(tensor)) for tensor in tensors]
        once = all(len(ran.files.get(graph_def_name(tensor), ())) == 1 for tensor in tensors)
        if once and name in ran.us:
            drawn |= {t: a for t, a in zip(tensors, arrays, strict=True) if a is not None}
    step = session.step_of(placement.program, placement.fetches)
    batch = [ran.fed[name] for name in step.feeds]
    files = sum(map(len, ran.files.values())) * MOST_TIMES
    try:
        if reason := debugger.refusal((), 0, files, folder):
            raise TflabError(reason)
        start = ran.before
        return run(folder, placement.program, step, batch, start, drawn, options), ()
    except (TflabError, OSError) as error:
        return None, (
            "No value was compared with a step without graph passes, because that step could not "
            f"be recorded: {error}",
        )


@dataclass(frozen=True)
class Both:
    """The recorded step combined with the reference step."""

    defined: tuple[Defined, ...] = ()
    # tensor of a row -> whether both agree
    agrees: Mapping[str, bool] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def compared(placement: Placement, ran: Ran, reference: Ran) -> Both:
    """The tensors of the program by definition, and the tensors of the graph that ran with the
    same values. Tensors that depend on random numbers drawn anew in the reference step are
    omitted."""
    users = {node.name: node for node in placement.user_nodes}
    fates = {fate.name: fate for fate in placement.ledger}
    anew = redrawn(placement, reference)
    random = with_dependents(placement.user_nodes, anew)
    outputs: dict[str, list[str]] = {}
    for tensor in ran.files:
        outputs.setdefault(node_of(tensor), []).append(tensor)
    defined, agrees, left_out = [], {}, 0
    for node in placement.user_nodes:
        if node.op in (*session.HANDLES, *session.REFERENCES, "Placeholder"):
            continue
        fate = fates.get(node.name)
        for number in range(len(node.outputs)):
            tensor = output_name(node.name, number)
            array = value(tensor, users, reference)
            if array is None or fate is None or fate.fate == "unreached":
                continue
            holders = [tensor] if tensor in ran.files else []
            if fate.outputs:
                holders += [now for own, now in fate.outputs if own == tensor]
            else:
                holders += outputs.get(fate.into or "", ())
            holder = next(
                (name for name in holders if holds(ran.array(name), array, name != tensor)), None
            )
            if holder is None and node.name in random:
                left_out += 1
                continue
            if tensor in ran.files:
                agrees[f"{node.name}:{number}"] = holder == tensor
            row = recorded_step.value_of(
                array,
                tensor=f"{node.name}:{number}",
                node=node.name,
                op=node.op,
                kind=COMPUTED,
            )
            defined.append(Defined(**vars(row), held_by=holder))
    notes = (
        f"{plural(left_out, 'tensor')} depend on random numbers that differ in each run, so their "
        f"values were not compared with the program's ({', '.join(sorted(anew)[:LISTED])}).",
    )
    return Both(tuple(defined), agrees, notes if left_out else ())


def holds(first: np.ndarray | None, other: np.ndarray, reshaped: bool) -> bool:
    """Whether both have the same numbers; those that another node has may have another shape."""
    if first is not None and reshaped and first.size == other.size:
        first = first.reshape(other.shape)
    return first is not None and analysis.agree(first, other)


def redrawn(placement: Placement, reference: Ran) -> list[str]:
    """The nodes of the program that drew other numbers in the reference step, or may have."""
    graph = placement.program.graph
    drawing = [
        name
        for name, tensors in draws(graph).items()
        if not any(tensor in reference.fed for tensor in tensors)
    ]
    if draws_inside(graph):
        types = (*CALLS, *CHOICES)
        drawing += [node.name for node in placement.user_nodes if node.op in types]
    return drawing
