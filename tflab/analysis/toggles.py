"""Toggles: what switching a graph pass off changes in a graph."""

from __future__ import annotations

from collections.abc import Sequence

from tflab.records import FateChange, Placement, Toggle


def compare(usual: Placement, now: Placement, without: Sequence[str]) -> Toggle:
    """What changed in the ledger when passes were switched off."""
    fates = {fate.name: fate.fate for fate in now.ledger}
    return Toggle(
        without=tuple(without),
        usual_node_count=len(usual.nodes),
        node_count=len(now.nodes),
        changes=tuple(
            FateChange(fate.name, fate.fate, fates[fate.name])
            for fate in usual.ledger
            if fates[fate.name] != fate.fate
        ),
    )
