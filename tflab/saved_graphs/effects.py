"""Effects: what running a graph would touch besides its tensors. No TensorFlow in here.

A graph that somebody else made may read and write files, speak to other machines and call back
into Python. Op types do not declare it, so these are told by their names; an op that is not in
TensorFlow itself is somebody's library, and counts as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

WHAT = {  # what it touches -> the op types that do, as a pattern
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
    """What these nodes, as (name, op type), would touch."""
    patterns = {what: re.compile(pattern) for what, pattern in WHAT.items()}
    return tuple(
        Effect(name, op, what)
        for name, op in types
        for what, pattern in patterns.items()
        if pattern.fullmatch(op)
    )


def listed(found: Iterable[Effect]) -> str:
    """`load/ReadFile (ReadFile) reads files; ...`"""
    return "; ".join(f"{one.node} ({one.op}) {one.what}" for one in found)
