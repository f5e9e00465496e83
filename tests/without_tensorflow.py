"""A plugin of pytest: there is no TensorFlow, so a test that imports it has to have its mark.

python -m pytest -p tests.without_tensorflow -m "not tensorflow" tests/analysis
"""

import sys


class WithoutTensorFlow:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "tensorflow":
            raise ImportError("A test that imports TensorFlow has the mark `tensorflow`.")


sys.meta_path.insert(0, WithoutTensorFlow)
