"""Messages of files, whose classes are not public."""

from __future__ import annotations

from typing import Any

from tflab.runtime.private.corner import corner


def saved_model() -> Any:
    """An empty SavedModel, the message in a saved_model.pb.

    tensorflow/core/protobuf/saved_model.proto, TensorFlow 2.21.0.
    """
    with corner(
        "the message of a SavedModel",
        "tensorflow/core/protobuf/saved_model.proto",
        "Models written in Python work without it.",
    ):
        from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

        return SavedModel()


def debug_info() -> Any:
    """An empty GraphDebugInfo, the lines of the nodes of a saved graph.

    tensorflow/core/framework/graph_debug_info.proto, TensorFlow 2.21.0.
    """
    with corner(
        "the message of a graph's lines",
        "tensorflow/core/framework/graph_debug_info.proto",
        "Graphs work without it after debug/saved_model_debug_info.pb is removed.",
    ):
        from tensorflow.core.framework.graph_debug_info_pb2 import GraphDebugInfo

        return GraphDebugInfo()
