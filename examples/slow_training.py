"""An ordinary training program, slower than it has to be, that knows nothing of tflab.

It classifies handwritten digits with a small convolutional network. Before you guess, look at where
the time of the process goes: most of it outside of session.run, and at which line.

    python -m tflab.run examples/slow_training.py
    python -m tflab.run --lines examples/slow_training.py --steps 200
"""

import argparse

import numpy as np
import tensorflow.compat.v1 as tf
from sklearn.datasets import load_digits

tf.disable_eager_execution()
PIXELS, CLASSES, BATCH = 8, 10, 64


def next_batch(images, labels, random):
    """Images that are moved by up to one pixel in each direction, and their labels."""
    chosen = random.randint(len(images), size=BATCH)
    moved = np.zeros([BATCH, PIXELS, PIXELS, 1], np.float32)
    for row, index in enumerate(chosen):
        down, right = random.randint(-1, 2, size=2)
        for y in range(1, PIXELS - 1):
            for x in range(1, PIXELS - 1):
                moved[row, y + down, x + right] = images[index, y, x]
    return moved, labels[chosen]


def network():
    images = tf.placeholder(tf.float32, [None, PIXELS, PIXELS, 1], name="images")
    labels = tf.placeholder(tf.int32, [None], name="labels")
    kernel = tf.get_variable("kernel", [3, 3, 1, 32])
    bias = tf.get_variable("bias", [32], initializer=tf.zeros_initializer())
    convolved = tf.nn.relu(tf.nn.conv2d(images, kernel, 1, "SAME") + bias)
    pooled = tf.nn.max_pool2d(convolved, 2, 2, "SAME")
    weights = tf.get_variable("weights", [(PIXELS // 2) ** 2 * 32, CLASSES])
    logits = tf.matmul(tf.reshape(pooled, [-1, (PIXELS // 2) ** 2 * 32]), weights)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    right = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
    return images, labels, tf.reduce_mean(entropy), tf.reduce_mean(tf.cast(right, tf.float32))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    steps = parser.parse_args().steps
    print(__doc__)
    digits = load_digits()
    pixels = digits.images[..., None] / 16
    random = np.random.RandomState(0)
    tf.set_random_seed(0)
    images, labels, loss, accuracy = network()
    train = tf.train.AdamOptimizer(0.003).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            batch, classes = next_batch(pixels[:1400], digits.target[:1400], random)
            session.run([train, loss], {images: batch, labels: classes})
        unseen = {images: pixels[1400:], labels: digits.target[1400:]}
        print(f"{session.run(accuracy, unseen):.1%} of the digits it has not seen are right")


if __name__ == "__main__":
    main()
