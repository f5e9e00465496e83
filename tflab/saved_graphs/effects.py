"""Effects: what running a graph would touch besides its tensors. No TensorFlow in here.

A graph from elsewhere may read and write files, communicate with other machines and call Python.
Op types do not declare such effects, so they are recognised by their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

PATTERNS = {  # an effect -> the op types that have it, as a pattern
    "reads files": r"ReadFile|MatchingFiles|Restore(V2|Slice)?|.*Reader(V2)?|TextLineDataset"
    r"|TFRecordDataset(V2)?|FixedLengthRecordDataset(V2)?|.*FromTextFile(V2)?|LoadDataset"
    r"|LoadTPUEmbedding.*|Sql(ite)?Dataset|ImportEvent|LMDBDataset|.*CSVDataset(V2)?"
    r"|GenerateVocabRemapping|LoadAndRemapMatrix|Checkpoint.*|.*FileSystem.*",
    "writes files": r"WriteFile|Save(V2|Slices)?|MergeV2Checkpoints|SaveDataset(V2)?"
    r"|DatasetToTFRecord|CreateSummary(File|Db)Writer|Write.*Summary|CacheDataset(V2)?"
    r"|SnapshotDataset(V2|Reader)?|.*SnapshotDatasetV2|DebugIdentity(V\d)?|DebugNumericSummary.*"
    r"|PrintV2|DumpGraph.*",
    "calls Python": r"(Eager)?PyFunc(Stateless)?|GeneratorDataset",
    "speaks to other machines": r"_?(Host)?(Send|Recv)|.*DataService.*|RegisterDataset(V2)?"
    r"|Collective.*|Xla(Send|Recv).*|Rpc.*|.*TPU.*|BigQuery.*|DistributedSave",
}


@dataclass(frozen=True)
class Effect:
    node: str
    op: str
    what: str


def effects(types: Iterable[tuple[str, str]]) -> tuple[Effect, ...]:
    """The effects of these nodes, which are given as (name, op type)."""
    patterns = {what: re.compile(pattern) for what, pattern in PATTERNS.items()}
    return tuple(
        Effect(name, op, what)
        for name, op in types
        for what, pattern in patterns.items()
        if pattern.fullmatch(op)
    )


def effects_text(found_effects: Iterable[Effect]) -> str:
    """`load/ReadFile (ReadFile) reads files; ...`"""
    return "; ".join(f"{effect.node} ({effect.op}) {effect.what}" for effect in found_effects)
