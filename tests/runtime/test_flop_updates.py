"""FLOPs of updates, gradients of normalisation and running sums: the arithmetic of a plain Python
function, counted while it computes what TensorFlow does."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tflab.runtime import flop_counts

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(3)
RATE, DECAY, MOMENTUM, SMALL, ONES, TWOS, SHRINK = 0.1, 0.9, 0.8, 1e-3, 0.05, 0.02, 0.03


class Number:
    """A number that counts the operations on numbers like it."""

    count = 0

    def __init__(self, value):
        self.value = float(value)

    def __gt__(self, other):
        Number.count += 1
        return self.value > other.value

    def __abs__(self):
        return counted(abs(self.value))

    def root(self):
        return counted(math.sqrt(self.value))

    def sign(self):
        return counted(math.copysign(1, self.value))


def counted(value):
    Number.count += 1
    return Number(value)


for operation in ("add", "sub", "mul", "truediv"):
    of_floats = getattr(float, f"__{operation}__")
    setattr(
        Number,
        f"__{operation}__",
        lambda one, other, do=of_floats: counted(do(one.value, other.value)),
    )

ONE, ZERO = Number(1), Number(0)
# What an update does once, and not for each element
R, D, M, E, L, KEPT = map(Number, (RATE, DECAY, MOMENTUM, SMALL, ONES, 1 - DECAY))
TWICE, SHRUNK = Number(2 * TWOS), Number(2 * SHRINK)


def adagrad(w, a, g):
    a = a + g * g
    return w - g * R * (ONE / a.root()), a


def adagrad_without_slots(w, a, g):
    return w - g * R * (ONE / a.root()), a


def adagrad_v2(w, a, g):
    a = a + g * g
    return w - g * R / (a.root() + E), a


def momentum(w, a, g):
    a = a * M + g
    return w - a * R, a


def rmsprop(w, v, m, g):
    v = v + (g * g - v) * KEPT
    m = m * M + g * R / (v + E).root()
    return w - m, v, m


def centered(w, mean, v, m, g):
    v = v + (g * g - v) * KEPT
    mean = mean + (g - mean) * KEPT
    m = m * M + g * R / (v - mean * mean + E).root()
    return w - m, mean, v, m


def ftrl(w, n, z, g):
    return followed(w, n, z, g, g)


def ftrl_v2(w, n, z, g):
    return followed(w, n, z, g, g + SHRUNK * w)


def followed(w, n, z, g, shrunk):
    after = n + g * g
    root = after.root()
    z = z + (shrunk - (root - n.root()) / R * w)
    new = (z.sign() * L - z) / (root / R + TWICE)  # on every element, as vectors do
    return (new if abs(z) > L else ZERO), after, z


def elements(function, *arrays):
    """What a function gives of each element of arrays, and how much it computed."""
    Number.count = 0
    rows = [function(*map(Number, row)) for row in zip(*map(np.ravel, arrays), strict=True)]
    return [
        np.reshape([n.value for n in column], arrays[0].shape) for column in zip(*rows, strict=True)
    ], Number.count


def arrays(count, *shape):
    """Values of a variable, what else its optimiser keeps, none of it negative, and a gradient."""
    first, *slots, last = RANDOM.normal(size=(count, *shape)).astype(np.float32)
    least = 0.2, 4, 0.2  # the mean of squares is larger than the square of the mean
    return first, *(np.abs(s) + more for s, more in zip(slots, least, strict=False)), last


UPDATES = [
    ("ApplyAdagrad", adagrad, 3, "var accum", {"lr": RATE}, {}),
    ("ApplyAdagrad", adagrad_without_slots, 3, "var accum", {"lr": RATE}, {"update_slots": False}),
    ("ApplyAdagradV2", adagrad_v2, 3, "var accum", {"lr": RATE, "epsilon": SMALL}, {}),
    ("ApplyMomentum", momentum, 3, "var accum", {"lr": RATE, "momentum": MOMENTUM}, {}),
    (
        *("ApplyRMSProp", rmsprop, 4, "var ms mom"),
        *({"lr": RATE, "rho": DECAY, "momentum": MOMENTUM, "epsilon": SMALL}, {}),
    ),
    (
        *("ApplyCenteredRMSProp", centered, 5, "var mg ms mom"),
        *({"lr": RATE, "rho": DECAY, "momentum": MOMENTUM, "epsilon": SMALL}, {}),
    ),
    (
        *("ApplyFtrl", ftrl, 4, "var accum linear"),
        *({"lr": RATE, "l1": ONES, "l2": TWOS, "lr_power": -0.5}, {}),
    ),
    (
        *("ApplyFtrlV2", ftrl_v2, 4, "var accum linear"),
        *({"lr": RATE, "l1": ONES, "l2": TWOS, "l2_shrinkage": SHRINK, "lr_power": -0.5}, {}),
    ),
]
SPARSE = [row for row in UPDATES if "RMSProp" not in row[0]]


def flops_of(op, given, attributes):
    """The FLOPs of an op by its inputs, in the order of its definition."""
    graph = tf.Graph()
    with graph.as_default():
        placed = {
            name: tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=value.shape)
            if isinstance(value, tf.Variable)
            else tf.constant(value)
            for name, value in given.items()
        }
        made = getattr(tf.raw_ops, op)(**placed, **attributes)
    made = made if isinstance(made, tf.Operation) else made[0].op
    shapes = [tuple(tensor.shape) for tensor in made.inputs]
    return flop_counts.flops(op, shapes, [tuple(t.shape) for t in made.outputs], attributes)


@pytest.mark.parametrize(("op", "function", "count", "names", "numbers", "attributes"), UPDATES)
def test_an_update_computes_as_much_as_is_counted(op, function, count, names, numbers, attributes):
    *state, gradient = arrays(count, 3, 4)
    expected, computed = elements(function, *state, gradient)
    variables = dict(zip(names.split(), map(tf.Variable, state), strict=True))
    given = {**variables, **numbers, "grad": gradient}
    handles = {name: v.handle if name in variables else v for name, v in given.items()}
    getattr(tf.raw_ops, f"Resource{op}")(**handles, **attributes)
    for variable, value in zip(variables.values(), expected, strict=True):
        np.testing.assert_allclose(variable, value, rtol=1e-4, atol=1e-5)
    assert flops_of(f"Resource{op}", given, attributes) == computed


@pytest.mark.parametrize(("op", "function", "count", "names", "numbers", "attributes"), SPARSE)
def test_a_sparse_update_computes_on_the_rows_that_came(
    op, function, count, names, numbers, attributes
):
    *state, gradient = arrays(count, 5, 4)
    rows = [3, 0]
    expected, computed = elements(function, *(part[rows] for part in (*state, gradient)))
    variables = dict(zip(names.split(), map(tf.Variable, state), strict=True))
    given = {**variables, **numbers, "grad": gradient[rows], "indices": rows}
    handles = {name: v.handle if name in variables else v for name, v in given.items()}
    sparse = f"ResourceSparse{op}"
    getattr(tf.raw_ops, sparse)(**handles, **attributes)
    for variable, value in zip(variables.values(), expected, strict=True):
        np.testing.assert_allclose(variable.numpy()[rows], value, rtol=1e-4, atol=1e-5)
    assert flops_of(sparse, given, attributes) == computed


def normalised_back(x, d, scale, small, mean=None, variance=None):
    """Of one channel: the gradients by its elements, its scale and its offset. With moments that
    are given these are constants; what is done once a channel is not counted."""
    known = mean is not None
    with_free = Number.count
    mean = Number(np.mean([n.value for n in x])) if mean is None else mean
    variance = np.var([n.value for n in x]) if variance is None else variance.value
    inverse = Number(1 / math.sqrt(variance + small))
    Number.count = with_free
    if known:
        sums, products = ZERO, ZERO
        factor = Number(scale * inverse.value)
        for one, back in zip(x, d, strict=True):
            sums, products = sums + back, products + back * (one - mean)
        return [back * factor for back in d], products.value * inverse.value, sums.value
    normal = [(one - mean) * inverse for one in x]
    sums, products = ZERO, ZERO
    for back, one in zip(d, normal, strict=True):
        sums, products = sums + back, products + back * one
    first, second = Number(sums.value / len(x)), Number(products.value / len(x))
    factor = Number(scale * inverse.value)
    dx = [(back - first - one * second) * factor for back, one in zip(d, normal, strict=True)]
    return dx, products.value, sums.value


@pytest.mark.parametrize("training", [True, False])
def test_the_gradient_of_batch_norm_computes_as_much_as_is_counted(training):
    x, d = RANDOM.normal(size=(2, 2, 3, 3, 2)).astype(np.float32)
    scale = np.float32([1.5, -0.5])
    known = np.float32([0.1, -0.2]), np.float32([0.7, 1.1])
    with tf.Graph().as_default():
        image = tf.constant(x)
        how = {"epsilon": 1e-3, "is_training": training}
        moments = (np.float32([]),) * 2 if training else known
        out = tf.raw_ops.FusedBatchNormV3(
            x=image, scale=scale, offset=[0.0, 0.0], mean=moments[0], variance=moments[1], **how
        )
        back = tf.raw_ops.FusedBatchNormGradV3(
            y_backprop=d,
            x=image,
            scale=scale,
            reserve_space_1=out.reserve_space_1 if training else known[0],
            reserve_space_2=out.reserve_space_2 if training else known[1],
            reserve_space_3=out.reserve_space_3,
            **how,
        )
        with tf.compat.v1.Session() as session:
            dx, dscale, doffset = session.run(list(back[:3]))
    Number.count = 0
    for channel in range(2):
        flat = [list(map(Number, part[..., channel].ravel())) for part in (x, d)]
        given = () if training else [Number(moment[channel]) for moment in known]
        by_x, by_scale, by_offset = normalised_back(*flat, scale[channel], 1e-3, *given)
        found = np.ravel(dx[..., channel])
        np.testing.assert_allclose(found, [n.value for n in by_x], rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(dscale[channel], by_scale, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(doffset[channel], by_offset, rtol=1e-3, atol=1e-4)
    shapes = [x.shape, x.shape, (2,), (2,), (2,), (0,)]
    assert flop_counts.flops("FusedBatchNormGradV3", shapes, [x.shape], how) == Number.count


def test_a_running_sum_adds_every_element():
    x = RANDOM.normal(size=(3, 4)).astype(np.float32)
    Number.count, rows = 0, []
    for row in x:
        total = ZERO
        rows.append([(total := total + Number(value)).value for value in row])
    np.testing.assert_allclose(tf.cumsum(x, 1), rows, rtol=1e-5)
    assert flop_counts.flops("Cumsum", [(3, 4), ()], [(3, 4)], {}) == Number.count


SCATTERS = [
    ("TensorScatterAdd", lambda old, new: old + new),
    ("TensorScatterSub", lambda old, new: old - new),
    ("TensorScatterMax", lambda old, new: new if new > old else old),
]


@pytest.mark.parametrize(("op", "function"), SCATTERS)
def test_a_scattered_update_is_one_operation_for_each_of_its_numbers(op, function):
    start, new = RANDOM.normal(size=(5,)), RANDOM.normal(size=(4,))
    places = [[3], [1], [3], [0]]
    Number.count, held = 0, [Number(value) for value in start]
    for (place,), value in zip(places, new, strict=True):
        held[place] = function(held[place], Number(value))
    found = getattr(tf.raw_ops, op)(tensor=start, indices=places, updates=new)
    np.testing.assert_allclose(found, [number.value for number in held])
    assert flop_counts.flops(op, [(5,), (4, 1), (4,)], [(5,)], {}) == Number.count
    if op == "TensorScatterAdd":
        zeros = tf.scatter_nd(places, new, [5])
        np.testing.assert_allclose(zeros, found - start, atol=1e-12)
        assert flop_counts.flops("ScatterNd", [(4, 1), (4,), (1,)], [(5,)], {}) == Number.count
