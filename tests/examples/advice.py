"""Short programs that run advises to change. Each also runs as it is advised, in other groups."""

# On a machine of any speed, a program is long enough to be traced
START = """import sys, time
sys.modules['keras'] = None  # which takes long to import, and which no program here needs
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()

def turns(least):
    end = time.monotonic() + 2
    turn = 0
    while turn < least or time.monotonic() < end:
        yield turn
        turn += 1
"""
FEEDS = f"""{START}
x = tf.placeholder(tf.float32, [None, 256])
total, other = tf.reduce_sum(x[:16]), tf.reduce_sum(x[:16])
data = np.random.rand(8192, 256).astype(np.float32)
buffer = np.empty(data.nbytes + 64, np.uint8)
start = -buffer.ctypes.data % 64
aligned = buffer[start : start + data.nbytes].view(np.float32).reshape(data.shape)
aligned[:] = data
with tf.Session() as session:
    for turn in turns(800):
        session.run(total, {{x: data}})
        if turn % 5 == 0:
            session.run(other, {{x: aligned}})
"""
EMBEDDING = f"""{START}
ids = tf.placeholder(tf.int32, [None])

def step(name, optimizer):
    table = tf.get_variable(name, [60_000, 16])
    target = tf.get_variable(f"target_{{name}}", [16, 1])
    loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.embedding_lookup(table, ids), target) - 1))
    return [loss, optimizer(0.01).minimize(loss)]

whole, rows = step("table", tf.train.AdamOptimizer), step("rows", tf.train.AdagradOptimizer)
random = np.random.RandomState(0)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for turn in turns(200):
        for fetches in (whole, rows) if turn % 5 == 0 else (whole,):
            session.run(fetches, {{ids: random.randint(0, 60_000, 128)}})
"""
MOVED = f"""{START}
x = tf.placeholder(tf.float32, [256, 1024])
moved = tf.reduce_mean(tf.transpose(tf.tile(x, [4, 1])), 1)
means = tf.reduce_mean(x, 0)
with tf.Session() as session:
    data = np.ones([256, 1024], np.float32)
    for turn in turns(250):
        session.run(moved, {{x: data}})
        if turn % 5 == 0:
            session.run(means, {{x: data}})
"""
# Many small ops and one large one; then a graph that grows, and one that does not
SMALL_OPS = f"""{START}
x = tf.placeholder(tf.float32, [100, 8])
scaled = lambda part: tf.tanh(tf.tanh(part) * 2 + 1) * 3 + 1
small = tf.reduce_sum(tf.stack([scaled(row) for row in tf.unstack(x)]))
large = tf.reduce_sum(scaled(x))
with tf.Session() as session:
    for turn in turns(1_200):
        for fetch in (small, large) if turn % 8 == 0 else (small,):
            session.run(fetch, {{x: np.ones([100, 8])}})

for grows in (True, False):
    with tf.Graph().as_default(), tf.Session() as session:
        weight = tf.get_variable("weight", [4])
        loss = tf.reduce_mean(tf.square(weight - 1))
        train = tf.assign_sub(weight, 0.1 * tf.gradients(loss, weight)[0])
        session.run(tf.global_variables_initializer())
        for _ in range(10):
            if grows:
                train = tf.assign_sub(weight, 0.1 * tf.gradients(loss, weight)[0])  # new nodes
            session.run(train)
"""
KEPT = f"""{START}
x = tf.placeholder(tf.float32, [None, 64])
y = tf.nn.relu(x * 2)
results = []
with tf.Session() as session:
    for _ in range(1_200):
        time.sleep(0.002)
        results.append(session.run(y, {{x: np.ones([400, 64])}}))
"""
# The same pipeline twice: a row at a time, and eight
PIPELINE = """import sys, time
sys.modules['keras'] = None
import numpy as np
import tensorflow as tf

def load(row):
    time.sleep(0.002)
    return row

def rows(row):
    return tf.ensure_shape(tf.numpy_function(load, [row], tf.float32), [8])

def mean(x):
    return tf.reduce_mean(x)

def train(count, workers, mean):
    data = tf.data.Dataset.from_tensor_slices(np.ones([8 * count, 8], np.float32))
    batches = iter(data.map(rows, num_parallel_calls=workers).batch(8).prefetch(1))
    weights = tf.Variable(tf.ones([8, 1]))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = mean(tf.square(next(batches) @ weights - 1))
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
        return loss

    for _ in range(count):
        step()

train(120, None, mean)
train(60, 8, lambda x: tf.reduce_mean(x))
"""
CHILDREN = """import subprocess, sys
subprocess.run([sys.executable, "-c", "import time; time.sleep(2)"], check=True)
"""
