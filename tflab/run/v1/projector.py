"""tf.contrib.tensorboard.plugins.projector, which is TensorBoard's own today."""

from __future__ import annotations

from typing import Any

from tensorboard.plugins import projector

ProjectorConfig, EmbeddingInfo = projector.ProjectorConfig, projector.EmbeddingInfo


def visualize_embeddings(summary_writer: Any, config: Any) -> None:
    """Write where TensorBoard finds the embeddings: beside what the writer writes."""
    projector.visualize_embeddings(summary_writer.get_logdir(), config)
