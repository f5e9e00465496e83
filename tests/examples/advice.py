"""Short programs that run advises to change, each as it is and as it is advised: the argument
`after` follows the advice."""

START = """import sys
sys.modules['keras'] = None  # which takes long to import, and which no program here needs
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
after = "after" in sys.argv
"""
FEEDS = f"""{START}
x = tf.placeholder(tf.float32, [None, 256])
total = tf.reduce_sum(x[:16])
data = np.random.rand(8192, 256).astype(np.float32)
if after:
    buffer = np.empty(data.nbytes + 64, np.uint8)
    start = -buffer.ctypes.data % 64
    aligned = buffer[start : start + data.nbytes].view(np.float32).reshape(data.shape)
    aligned[:] = data
    data = aligned
with tf.Session() as session:
    for _ in range(600):
        session.run(total, {{x: data}})
"""
EMBEDDING = f"""{START}
ids = tf.placeholder(tf.int32, [None])
table = tf.get_variable("table", [60_000, 16])
target = tf.get_variable("target", [16, 1])
found = tf.nn.embedding_lookup(table, ids)
loss = tf.reduce_mean(tf.square(tf.matmul(found, target) - 1))
optimizer = tf.train.AdagradOptimizer(0.01) if after else tf.train.AdamOptimizer(0.01)
train = optimizer.minimize(loss)
random = np.random.RandomState(0)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(300):
        session.run([loss, train], {{ids: random.randint(0, 60_000, 128)}})
"""
SMALL_OPS = f"""{START}
x = tf.placeholder(tf.float32, [400, 8])
scaled = lambda part: tf.tanh(tf.tanh(part) * 2 + 1) * 3 + 1
rows = scaled(x) if after else tf.stack([scaled(row) for row in tf.unstack(x)])
total = tf.reduce_sum(rows)
with tf.Session() as session:
    for _ in range(2_000):
        session.run(total, {{x: np.ones([400, 8])}})
"""
MOVED = f"""{START}
x = tf.placeholder(tf.float32, [512, 1024])
if after:
    means = tf.reduce_mean(x, 0)
else:
    means = tf.reduce_mean(tf.transpose(tf.tile(x, [4, 1])), 1)
with tf.Session() as session:
    data = np.ones([512, 1024], np.float32)
    for _ in range(300):
        session.run(means, {{x: data}})
"""
GROWING = f"""{START}
weight = tf.get_variable("weight", [4])
loss = tf.reduce_mean(tf.square(weight - 1))
if after:
    train = tf.assign_sub(weight, 0.1 * tf.gradients(loss, weight)[0])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(10):
        if not after:
            train = tf.assign_sub(weight, 0.1 * tf.gradients(loss, weight)[0])
        session.run(train)
"""
KEPT = f"""{START}
x = tf.placeholder(tf.float32, [None, 64])
y = tf.nn.relu(x * 2)
total = 0.0
results = []
with tf.Session() as session:
    for _ in range(2_000):
        values = session.run(y, {{x: np.ones([400, 64])}})
        total += values.sum()
        if not after:
            results.append(values)
"""
PIPELINE = """import sys, time
sys.modules['keras'] = None
import numpy as np
import tensorflow as tf

def load(row):
    time.sleep(0.002)
    return row

def rows(row):
    return tf.ensure_shape(tf.numpy_function(load, [row], tf.float32), [8])

data = tf.data.Dataset.from_tensor_slices(np.ones([1_600, 8], np.float32))
data = data.map(rows, num_parallel_calls=8 if "after" in sys.argv else None).batch(8).prefetch(1)
weights = tf.Variable(tf.ones([8, 1]))

@tf.function
def step(batches):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(next(batches) @ weights - 1))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss

batches = iter(data)
for _ in range(200):
    step(batches)
"""
CHILDREN = """import subprocess, sys
subprocess.run([sys.executable, "-c", "import time; time.sleep(9)"], check=True)
"""
