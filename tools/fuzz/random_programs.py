"""Programs at random, and whether what the backward stage prints about their gradients is true.

Each program is a list of ops over three fed tensors and some shared variables. What is printed is
evaluated here once more, by Python's own `eval`, over float64 values which plain TensorFlow
computes for other variables and another batch than tflab had. What `dL/d(x)` is says `tf.gradients`
of the loss by x alone.
"""

from __future__ import annotations

import re

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from hypothesis import strategies as st

from tflab import datasets
from tflab.lifecycle import backward, frontend
from tflab.records.options import Model, Options
from tflab.records.stages import Backward

ROWS = 7  # of the batch on which everything is evaluated here
VARIABLES = {
    "a": 0.5,
    "zero": 0.0,
    "w": [1.0, -2, 0.5, 3],
    "column": [[1.0], [2], [-1]],
    "table": np.arange(20.0).reshape(5, 4) / 7,
}


def unary(function):
    return lambda p: function(p.take())


def binary(function):
    return lambda p: function(p.take(), p.take())


def reduction(function):
    def reduced(p):
        value = p.take()
        axis = (None, 0, -1)[p.number(3)]
        return function(value, axis=axis, keepdims=bool(p.number(2)))

    return reduced


def typed(function):
    """What a comparison, or another function that gives no floating-point numbers, gives."""
    return lambda p: p.float(function(p.take(), p.take()))


def whole(function):
    return lambda p: p.float(function(p.i))


@tf.custom_gradient
def bent(value):
    return tf.square(value), lambda upstream: upstream * tf.tanh(value)


def gathered(p):
    return tf.gather(p.variable("table"), p.i)


def branched(p):
    value, a = p.take(), p.variable("a")
    return tf.cond(tf.reduce_sum(p.take()) > 0, lambda: value * a, lambda: tf.tanh(value) - a)


def looped(p):
    value, a = p.take(), tf.tanh(p.variable("a"))
    return tf.while_loop(lambda n, x: n < 3, lambda n, x: (n + 1, tf.tanh(x * a)), (0, value))[1]


def one_hot(p):
    return tf.one_hot(p.i, 4, dtype=p.dtype)


def entropy(p):
    logits = p.of_rank(2)
    labels = p.i % logits.shape[-1]
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def soft_entropy(p):
    logits = p.of_rank(2)
    return tf.nn.softmax_cross_entropy_with_logits(
        labels=tf.nn.softmax(logits), logits=tf.tanh(logits)
    )


def matmul(p):
    value = p.of_rank(2)
    return tf.matmul(value, value, transpose_a=bool(p.number(2)), transpose_b=True)


def slices(p):
    value = p.of_rank(2)
    return (value[:, 0], value[:, 1:], value[::2], value[..., ::-1], value[0])[p.number(5)]


OPS = {
    "add": binary(tf.add),
    "sub": binary(tf.subtract),
    "mul": binary(tf.multiply),
    "div": binary(lambda a, b: a / (1.5 + tf.tanh(b))),
    "maximum": binary(tf.maximum),
    "minimum": binary(tf.minimum),
    "squared_difference": binary(tf.math.squared_difference),
    "add_n": binary(lambda a, b: tf.add_n([a, a + b * 0, a])),
    "where": lambda p: tf.where(p.take() > 0, p.take(), p.take()),
    "less": typed(tf.less),
    "greater_equal": typed(tf.greater_equal),
    "not_equal": typed(tf.not_equal),
    "neg": unary(tf.negative),
    "square": unary(tf.square),
    "cube": unary(lambda a: tf.pow(tf.tanh(a), 3)),
    "half": unary(lambda a: a * 0.5 - 0.3),
    "exp": unary(lambda a: tf.exp(tf.tanh(a))),
    "expm1": unary(lambda a: tf.math.expm1(tf.tanh(a))),
    "log": unary(lambda a: tf.math.log(2 + tf.tanh(a))),
    "log1p": unary(lambda a: tf.math.log1p(tf.square(tf.tanh(a)))),
    "tanh": unary(tf.tanh),
    "sigmoid": unary(tf.sigmoid),
    "relu": unary(tf.nn.relu),
    "relu6": unary(tf.nn.relu6),
    "elu": unary(tf.nn.elu),
    "leaky": unary(tf.nn.leaky_relu),
    "softplus": unary(tf.nn.softplus),
    "sqrt": unary(lambda a: tf.sqrt(1.5 + tf.tanh(a))),
    "rsqrt": unary(lambda a: tf.math.rsqrt(1.5 + tf.tanh(a))),
    "reciprocal": unary(lambda a: tf.math.reciprocal(1.5 + tf.tanh(a))),
    "abs": unary(tf.abs),
    "sign": unary(tf.sign),
    "sin": unary(tf.sin),
    "floor": unary(tf.floor),
    "l2_loss": unary(tf.nn.l2_loss),
    "softmax": lambda p: tf.nn.softmax(p.of_rank(2)),
    "log_softmax": lambda p: tf.nn.log_softmax(p.of_rank(2)),
    "sum": reduction(tf.reduce_sum),
    "mean": reduction(tf.reduce_mean),
    "max": reduction(tf.reduce_max),
    "prod": lambda p: tf.reduce_prod(tf.tanh(p.of_rank(2)), axis=-1),
    "logsumexp": reduction(tf.reduce_logsumexp),
    "std": reduction(lambda a, **how: tf.reduce_sum(a * a, **how) * 0.25),
    "expand": lambda p: tf.expand_dims(p.take(), p.number(2) - 1),
    "squeeze": lambda p: tf.squeeze(tf.expand_dims(p.take(), -1), -1),
    "flatten": lambda p: tf.reshape(p.take(), [-1]),
    "pairs": lambda p: tf.reshape(p.of_rank(2), [-1, 2]),
    "transpose": lambda p: tf.transpose(p.take()),
    "tile": lambda p: tf.tile(p.of_rank(2), [1, 2]),
    "broadcast": lambda p: tf.broadcast_to(p.take(), tf.shape(p.take())),
    "concat": binary(lambda a, b: tf.concat([a, b], -1)),
    "stack": unary(lambda a: tf.stack([a, a * 2])),
    "split": lambda p: tf.split(p.of_rank(2), 2, axis=1)[p.number(2)],
    "slice": slices,
    "pad": lambda p: tf.pad(p.of_rank(2), [[0, 0], [1, 0]]),
    "reverse": lambda p: tf.reverse(p.of_rank(2), [1]),
    "cumsum": lambda p: tf.cumsum(p.of_rank(2), exclusive=bool(p.number(2)), reverse=True),
    "ones_like": unary(tf.ones_like),
    "zeros_like": unary(tf.zeros_like),
    "fill": lambda p: tf.fill(tf.shape(p.take()), p.variable("a")),
    "matmul": matmul,
    "bias": lambda p: tf.nn.bias_add(p.of_rank(2), p.variable("w")),
    "to_int": unary(lambda a: tf.cast(tf.cast(a * 3, tf.int32), a.dtype)),
    "to_bool": unary(lambda a: tf.cast(tf.cast(a, tf.bool), a.dtype)),
    "int_div": whole(lambda i: i // 2),
    "int_mod": whole(lambda i: i % 3),
    "int_pow": whole(lambda i: tf.pow(i, 2)),
    "int_greater": whole(lambda i: i > 2),
    "int_equal": whole(lambda i: tf.equal(i, 3)),
    "one_hot": one_hot,
    "gather": gathered,
    "lookup": lambda p: tf.nn.embedding_lookup(p.variable("table"), p.i),
    "entropy": entropy,
    "soft_entropy": soft_entropy,
    "cond": branched,
    "while": looped,
    "stop": unary(tf.stop_gradient),
    "identity": unary(tf.identity),
    "custom": unary(bent),
    "clip": unary(lambda a: tf.clip_by_value(a, -0.5, 1.0)),
    "clip_norm": unary(lambda a: tf.clip_by_norm(a, 1.0)),
    "variable": lambda p: p.variable(tuple(VARIABLES)[p.number(len(VARIABLES))]),
}
STEPS = st.lists(
    st.tuples(st.sampled_from(sorted(OPS)), st.lists(st.integers(0, 59), min_size=6, max_size=6)),
    min_size=5,
    max_size=40,
)
PROGRAMS = st.tuples(
    STEPS, st.sampled_from(["mean", "sum"]), st.sampled_from(["", "norm", "value"])
)


class Clipping(tf1.train.GradientDescentOptimizer):
    """Clips the gradients before anybody else sees them."""

    def __init__(self, how):
        super().__init__(0.1)
        self.how = how

    def compute_gradients(self, *args, **options):
        pairs = super().compute_gradients(*args, **options)
        if self.how == "norm":
            return [(g if g is None else tf.clip_by_norm(g, 0.01), v) for g, v in pairs]
        if self.how == "value":
            known = [(tf.convert_to_tensor(g), v) for g, v in pairs if g is not None]
            return [(tf.clip_by_value(g, -0.01, 0.01), v) for g, v in known]
        return pairs


class Building:
    """A program in the making: its tensors so far, and the numbers that say what comes next."""

    def __init__(self, dtype, rows=None):
        self.dtype = dtype
        self.x = tf1.placeholder(dtype, [rows, 4], name="x")
        self.v = tf1.placeholder(dtype, [rows, 1], name="v")
        self.i = tf1.placeholder(tf.int32, [rows], name="i")
        self.variables = {}
        self.tensors = [self.variable("a"), self.v, self.variable("w"), self.x]
        self.numbers = []

    def variable(self, name):
        if name not in self.variables:
            value = np.asarray(VARIABLES[name], self.dtype.as_numpy_dtype)
            self.variables[name] = tf1.get_variable(name, initializer=value, use_resource=True)
        return self.variables[name]

    def number(self, limit):
        return self.numbers.pop() % limit

    def take(self):
        return tf.convert_to_tensor(self.tensors[-1 - self.number(len(self.tensors))])

    def of_rank(self, rank):
        known = [tensor for tensor in self.tensors if tensor.shape.rank == rank]
        return tf.convert_to_tensor(known[-1 - self.number(len(known))])

    def float(self, value):
        return tf.cast(value, self.dtype)

    def step(self, op, numbers):
        """Whether the next op goes together with what is there."""
        self.numbers = list(numbers)
        try:
            tensor = OPS[op](self)
        except (ValueError, IndexError):
            return False
        if tensor.shape.rank is None or tensor.shape.rank > 3:
            return False
        self.tensors.append(tensor)
        return True


def sound(steps):
    """The steps whose shapes go together for batches of two sizes."""
    graphs = {rows: tf.Graph() for rows in (5, ROWS)}
    building = {}
    for rows, graph in graphs.items():
        with graph.as_default():
            building[rows] = Building(tf.float32, rows)
    kept = []
    for op, numbers in steps:
        lengths = {rows: len(one.tensors) for rows, one in building.items()}
        done = []
        for rows, graph in graphs.items():
            with graph.as_default():
                done.append(building[rows].step(op, numbers))
        if all(done):
            kept.append((op, numbers))
        else:
            for rows, one in building.items():
                del one.tensors[lengths[rows] :]
    return kept


def sounded(program):
    steps, how, clip = program
    return sound(steps), how, clip


def built(program, dtype):
    """The fed tensors, the loss and the optimiser of a program."""
    steps, how, clip = program
    building = Building(dtype)
    for op, numbers in steps:
        building.step(op, numbers)
    reduce = tf.reduce_mean if how == "mean" else tf.reduce_sum
    terms = [reduce(tf.convert_to_tensor(tensor)) for tensor in building.tensors[-3:]]
    loss = tf.add_n(terms) * building.variable("a")
    feeds = {building.x: "x", building.v: "v", building.i: "i"}
    return feeds, loss, Clipping(clip)


def data(split, data_dir):
    rng = np.random.default_rng(3)
    columns = {
        "x": rng.normal(size=(64, 4)).astype(np.float32),
        "v": rng.normal(size=(64, 1)).astype(np.float32),
        "i": rng.integers(0, 5, 64, dtype=np.int32),
    }
    return datasets.Dataset("numbers", split, columns)


def explained(program) -> Backward:
    """What the backward stage says of a program."""

    def build():
        feeds, loss, optimizer = built(program, tf.float32)
        return Model(loss, feeds, data, loss, optimizer)

    options = Options(batch_size=5)
    return backward.differentiate(frontend.build(("random", build), options), options)


# The other way to the same values


def total(value):
    return np.sum(value)


def unbroadcast(value, shape):
    """Add up what broadcasting had repeated."""
    shape = tuple(int(dim) for dim in np.ravel(shape))
    value = np.asarray(value)
    while value.ndim > len(shape):
        value = value.sum(0)
    for axis, dim in enumerate(shape):
        if dim == 1:
            value = value.sum(axis, keepdims=True)
    return value


def crossed(logits, labels):
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    if np.ndim(labels) < np.ndim(logits):
        return -np.take_along_axis(logs, labels.astype(int)[..., None], -1)[..., 0]
    return -(labels * logs).sum(-1)


MEANING = {
    **{name: getattr(np, name) for name in ("exp", "log", "tanh", "sqrt", "sin", "cos", "sign")},
    **{name: getattr(np, name) for name in ("sum", "mean", "max", "min", "prod", "floor", "ceil")},
    **{name: getattr(np, name) for name in ("maximum", "minimum", "matmul", "transpose", "where")},
    **{name: getattr(np, name) for name in ("log1p", "expm1", "abs", "reshape")},
    "size": lambda value, *axes: (
        int(np.prod([np.shape(value)[axis] for axis in axes])) if axes else np.size(value)
    ),
    "shape": lambda value, *axes: (
        tuple(np.shape(value)[axis] for axis in axes) if axes else np.shape(value)
    ),
    "expand_dims": np.expand_dims,
    "sum_to": unbroadcast,
    "repeat": lambda value: np.asarray(value).reshape(()),
    "relu": lambda value: (value + np.abs(value)) / 2,
    "sigmoid": lambda value: 0.5 + 0.5 * np.tanh(value / 2),
    "softplus": lambda value: np.log1p(np.exp(value)),
    "softmax": lambda value: np.exp(value) / np.exp(value).sum(-1, keepdims=True),
    "one_hot": lambda value, count: np.eye(count)[value.astype(int)],
    "cross_entropy": crossed,
}
GRADIENT = r"(?:rows of )?dL/(?:d\([^()]*\)|d[A-Za-z]\b)(?: by [\w/.]+(?:\[\d+\])?)?"
NAME = re.compile(rf"{GRADIENT}|[A-Za-z_][\w/.]*(?::\d+)?")
OPTIONS = ("axis", "keepdims", "True")


def called(name):
    """What formulas call the gradient by a value."""
    return f"dL/d{name}" if name.isalpha() and len(name) == 1 else f"dL/d({name})"


def short(tensor):
    return tensor.name.removesuffix(":0")


class Real(np.ndarray):
    """An array whose comparisons are numbers, as in formulas: 1 where it is so, else 0."""


for sign in ("gt", "ge", "lt", "le", "eq", "ne"):
    compare = getattr(np.ndarray, f"__{sign}__")
    setattr(Real, f"__{sign}__", lambda one, other, of=compare: of(one, other).astype(np.float64))


class Truth:
    """The graph of a program in float64, and what TensorFlow computes in it for a batch and
    variables that tflab never saw."""

    def __init__(self, program, stage):
        self.graph = tf.Graph()
        with self.graph.as_default():
            _, self.loss, optimizer = built(program, tf.float64)
            optimizer.compute_gradients(self.loss)
            self.variables = {v.op.name: v for v in tf1.trainable_variables()}
            self.tensors = {
                short(tensor): tensor
                for op in self.graph.get_operations()
                for tensor in op.outputs
                if tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool
            }
            made = {name for gradient in stage.gradients for name in gradient.nodes}
            assert made <= {op.name for op in self.graph.get_operations()}
            self.add_gradients({gradient.forward for gradient in stage.gradients})
            for name in set().union(*map(NAME.findall, texts(stage))):
                if " by " in name:
                    self.add_part(name)
        self.values = self.computed()

    def add_gradients(self, forward):
        """What `dL/d(...)` is, for every forward value."""
        by = {n: t for n, t in self.tensors.items() if t.op.name in forward and t.dtype.is_floating}
        reads = {name: t.op.inputs[0].op.name for name, t in by.items() if is_read(t)}
        by = {name: tensor for name, tensor in by.items() if name not in reads}
        by |= {name: variable.handle for name, variable in self.variables.items()}
        found = tf1.gradients(self.loss, list(by.values()))
        for name, gradient in zip(by, found, strict=True):
            if isinstance(gradient, tf.IndexedSlices):
                self.tensors[f"rows of {called(name)}"] = gradient.values
            known = 0.0 if gradient is None else gradient
            self.tensors[called(name)] = tf.convert_to_tensor(known, tf.float64)
        for name, variable in reads.items():
            self.tensors[variable] = self.tensors[name]

    def add_part(self, name):
        """`dL/d(x) by mul`, `dL/d(x) by mul[1]`: what one op alone hands back, seen on a copy of it
        whose inputs are all different."""
        whole, _, place = name.partition("[")
        op = self.graph.get_operation_by_name(whole.partition(" by ")[2])
        inputs = [tf.identity(tensor) for tensor in op.inputs]
        types = [tensor.dtype for tensor in op.outputs]
        again = self.graph.create_op(op.type, inputs, types, attrs=dict(op.node_def.attr))
        pairs = zip(op.outputs, again.outputs, strict=True)
        outputs = {called(short(t)): copy for t, copy in pairs if t.dtype.is_floating}
        known = [self.tensors[gradient] for gradient in outputs]
        for number, tensor in enumerate(op.inputs):
            label = tensor.op.inputs[0].op.name if is_read(tensor) else short(tensor)
            right = name.removeprefix("rows of ").startswith(f"{called(label)} by")
            if right and (not place or number == int(place[:-1])):
                xs = [inputs[number]]
                (part,) = tf1.gradients(list(outputs.values()), xs, known, stop_gradients=inputs)
                rows = name.startswith("rows of ")
                self.tensors[name] = part.values if rows else tf.convert_to_tensor(part)

    def computed(self):
        rng = np.random.default_rng(11)
        feeds = {"x:0": rng.normal(size=(ROWS, 4)), "v:0": rng.normal(size=(ROWS, 1))}
        feeds["i:0"] = rng.integers(0, 5, ROWS)
        starts = {
            f"{name}/Initializer/initial_value:0": rng.normal(size=variable.shape.as_list())
            for name, variable in self.variables.items()
        }
        config = tf1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        copy = tf.Graph()  # in which also the outputs of a conditional can be fetched
        with copy.as_default():
            tf.import_graph_def(self.graph.as_graph_def(), name="")
        with tf1.Session(graph=copy, config=config) as session:
            session.run([f"{name}/Assign" for name in self.variables], starts)
            values = session.run({name: t.name for name, t in self.tensors.items()}, feeds)
        return {name: np.asarray(value, np.float64) for name, value in values.items()}

    def value(self, formula):
        """What a formula gives."""
        names = {}

        def identifier(match):
            name = match.group()
            function = name in MEANING and formula[match.end() :][:1] == "("
            if function or name in OPTIONS:
                return name
            return names.setdefault(name, f"name_{len(names)}")

        text = NAME.sub(identifier, formula)
        known = {
            own: self.values[name.removesuffix(":0")].view(Real) for name, own in names.items()
        }
        with np.errstate(all="ignore"):
            value = eval(text, {"__builtins__": {}}, MEANING | known)
        return np.asarray(value, np.float64)

    def gives(self, formula, held):
        return equal(self.value(formula), held)


def is_read(tensor):
    return tensor.op.type == "ReadVariableOp"


def equal(found, held):
    """Whether these are the same numbers; one may stand for many, dimensions of 1 do not matter."""
    if [n for n in found.shape if n > 1] == [n for n in held.shape if n > 1]:
        found = found.reshape(held.shape)
    elif found.ndim > held.ndim:
        return False
    scale = np.abs(held[np.isfinite(held)]).max(initial=0)
    try:
        found = np.broadcast_to(found, held.shape)
    except ValueError:
        return False
    return np.allclose(found, held, rtol=1e-5, atol=1e-7 * scale + 1e-12, equal_nan=True)


def texts(stage):
    """All formulas and names of gradients that are printed."""
    for node in stage.gradient_nodes:
        yield from (node.formula, node.towards or "")
    for link in stage.chain_rule:
        yield from (link.formula, link.gradient, link.computes)
    for derivative in stage.derivatives:
        yield derivative.formula


def false_statements(program):
    """(how much was checked, what of it is not true) of all that is printed about a program."""
    stage = explained(program)
    truth = Truth(program, stage)
    checked = [*of_nodes(stage, truth), *of_steps(stage, truth), *of_variables(stage, truth)]
    return len(checked), [statement for statement, right in checked if not right]


def of_nodes(stage, truth):
    nodes = {node.name: node for node in stage.nodes}
    owners = {name: g.forward for g in stage.gradients for name in g.nodes}
    for known in stage.gradient_nodes:
        node, name = nodes[known.name], known.name
        held = truth.values.get(name)
        if known.formula:
            yield f"{name} = {known.formula}", truth.gives(known.formula, held)
        if known.complete and held is not None:
            right = equal(held, truth.values[known.towards])
            yield f"{name} is {known.towards}", right
        yield f"{name} is [{known.bookkeeping}]", of_kind(known, node, held, owners, nodes, truth)


def of_kind(known, node, held, owners, nodes, truth):
    """Whether a node is what its kind of bookkeeping says."""
    whole = all(tensor.dtype.startswith("int") for tensor in node.outputs)
    kind = known.bookkeeping
    if kind and held is None:  # it has no numbers
        return not any(tensor.dtype.startswith(("float", "int", "bool")) for tensor in node.outputs)
    if kind in ("shape", "whole numbers"):
        return whole
    if kind == "start" and not whole:
        return equal(np.ones(()), held)
    if kind in ("same numbers", "gate", "broadcasting") and not whole:
        before = truth.values[node.inputs[0]]
        return held.size == before.size and equal(held.ravel(), before.ravel())
    if kind in ("zeros", "filling"):
        return not held.any()
    if kind == "count" and not whole:
        mean = nodes[owners[node.name]]
        counted = truth.values[mean.inputs[0]].size / truth.values[mean.name].size
        return equal(np.asarray(counted), held)
    return kind in (None, "fetch", "start", "gate", "broadcasting", "count")


def of_steps(stage, truth):
    for link in stage.chain_rule:
        held = truth.values[link.gradient]
        if link.computes:
            output = truth.values[link.forward]
            yield f"{link.forward} = {link.computes}", truth.gives(link.computes, output)
        if link.formula:
            yield f"{link.gradient} = {link.formula}", truth.gives(link.formula, held)
        if link.alone and " by " not in link.gradient:
            whole = truth.values[link.gradient.removeprefix("rows of ")]
            yield f"{link.gradient} is whole", "rows of" in link.gradient or equal(held, whole)


def of_variables(stage, truth):
    for derivative in stage.derivatives:
        held = truth.values[called(derivative.variable)]
        yield f"dL/d({derivative.variable})", truth.gives(derivative.formula, held)
        largest = np.abs(np.asarray(derivative.value, float)).max()
        yield f"{derivative} was checked", derivative.checked <= 2e-3 * largest
