"""LeNet's training as an ordinary script, for `benchmarks.run`. It does not use tflab.

    python benchmarks/watched_program.py STEPS

Prints the seconds of its loop, and its peak resident memory in bytes.
"""

import resource
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

random = np.random.RandomState(0)
IMAGES = random.rand(2000, 28, 28, 1).astype(np.float32)
LABELS = random.randint(0, 10, 2000)


def next_batch(size):
    places = random.randint(0, len(IMAGES), size)
    return IMAGES[places], LABELS[places]


def variable(*shape):
    return tf.Variable(tf.truncated_normal(shape, stddev=0.1, seed=1))


def main(steps):
    images = tf.placeholder(tf.float32, [None, 28, 28, 1])
    labels = tf.placeholder(tf.int64, [None])
    conv1 = tf.nn.relu(tf.nn.conv2d(images, variable(5, 5, 1, 6), 1, "SAME") + variable(6))
    pool1 = tf.nn.max_pool2d(conv1, 2, 2, "VALID")
    conv2 = tf.nn.relu(tf.nn.conv2d(pool1, variable(5, 5, 6, 16), 1, "VALID") + variable(16))
    flat = tf.reshape(tf.nn.max_pool2d(conv2, 2, 2, "VALID"), [-1, 400])
    dense1 = tf.nn.relu(tf.matmul(flat, variable(400, 120)) + variable(120))
    dense2 = tf.nn.relu(tf.matmul(dense1, variable(120, 84)) + variable(84))
    logits = tf.matmul(dense2, variable(84, 10)) + variable(10)
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    train = tf.train.AdamOptimizer(0.001).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(20 + steps):
            if step == 20:
                start = time.perf_counter()
            rows, targets = next_batch(16)
            session.run([loss, train], {images: rows, labels: targets})
        print(time.perf_counter() - start)


main(int(sys.argv[1]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
