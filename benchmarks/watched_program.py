"""A training as an ordinary script, for `benchmarks.run`. It does not use tflab.

    python benchmarks/watched_program.py lenet|small STEPS

Prints the word `measured`, the seconds of its loop, the processor time of its loop, and its peak
resident memory in bytes. The images are those of MNIST if TFLAB_DATA_DIR has them.
"""

import gzip
import os
import resource
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

NETWORK, STEPS = sys.argv[1], int(sys.argv[2])
COUNT = 2000  # images
random = np.random.RandomState(0)


def read(name, header, *shape):
    """The first images or labels of a file of MNIST; random ones where there is none."""
    path = os.path.join(os.environ.get("TFLAB_DATA_DIR", "."), name)
    size = COUNT * int(np.prod(shape))
    for file, opened in ((path, open), (f"{path}.gz", gzip.open)):
        if os.path.exists(file):
            with opened(file, "rb") as content:
                data = content.read(header + size)
            return np.frombuffer(data, np.uint8, size, header).reshape(COUNT, *shape)
    return random.randint(0, 10, (COUNT, *shape)).astype(np.uint8)


IMAGES = read("train-images-idx3-ubyte", 16, 28, 28, 1).astype(np.float32) / 255
LABELS = read("train-labels-idx1-ubyte", 8).astype(np.int64)


def next_batch(size):
    places = random.randint(0, len(IMAGES), size)
    return IMAGES[places], LABELS[places]


def variable(*shape):
    return tf.Variable(tf.truncated_normal(shape, stddev=0.1, seed=1))


def lenet(images):
    conv1 = tf.nn.relu(tf.nn.conv2d(images, variable(5, 5, 1, 6), 1, "SAME") + variable(6))
    pool1 = tf.nn.max_pool2d(conv1, 2, 2, "VALID")
    conv2 = tf.nn.relu(tf.nn.conv2d(pool1, variable(5, 5, 6, 16), 1, "VALID") + variable(16))
    flat = tf.reshape(tf.nn.max_pool2d(conv2, 2, 2, "VALID"), [-1, 400])
    dense1 = tf.nn.relu(tf.matmul(flat, variable(400, 120)) + variable(120))
    dense2 = tf.nn.relu(tf.matmul(dense1, variable(120, 84)) + variable(84))
    return tf.matmul(dense2, variable(84, 10)) + variable(10)


def small(images):
    return tf.matmul(tf.reshape(images, [-1, 784])[:, 300:316], variable(16, 10))


def main():
    images = tf.placeholder(tf.float32, [None, 28, 28, 1])
    labels = tf.placeholder(tf.int64, [None])
    logits = {"lenet": lenet, "small": small}[NETWORK](images)
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    train = tf.train.AdamOptimizer(0.001).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(20 + STEPS):
            if step == 20:
                start, start_cpu = time.perf_counter(), time.process_time()
            rows, targets = next_batch(16)
            session.run([loss, train], {images: rows, labels: targets})
        took, took_cpu = time.perf_counter() - start, time.process_time() - start_cpu
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print("measured", took, took_cpu, most)


main()
