"""View of feature maps: the sentences beside the picture."""

from __future__ import annotations

from collections.abc import Iterator

from tflab.records import Fate, Maps
from tflab.records.options import SWITCHES
from tflab.units import plural

NAMED = 3  # nodes that took others in
ONEDNN = "MklLayoutRewritePass"  # of the runtime itself, where oneDNN is on


def gone(maps: Maps) -> Iterator[str]:
    """What has no map because the runtime put it into another node, and what brings it back."""
    into: dict[tuple[str, str, str | None], list[Fate]] = {}
    for fate in maps.gone:
        into.setdefault((fate.fate, fate.by or "", fate.into), []).append(fate)
    by_pass: dict[tuple[str, str], list[str]] = {}
    for (word, by, target), fates in into.items():
        names = " and ".join(fate.name for fate in fates)
        preposition = "with" if word == "fused" else "into"
        where = f"{names} {preposition} {target}" if target else names
        by_pass.setdefault((word, by), []).append(where)
    for (word, by), groups in by_pass.items():
        more = f" and {len(groups) - NAMED:,} more" if len(groups) > NAMED else ""
        yield (
            f"Without maps, because {f'the pass {by}' if by else 'a pass'} {word} them: "
            f"{'; '.join(groups[:NAMED])}{more}. {way_back(word, by)}"
        )


def way_back(fate: str, by: str) -> str:
    if fate == "compiled":
        return "They come back without --xla."
    if by in SWITCHES:
        return f"--without {by} brings back those that no other pass fuses then."
    if by == ONEDNN:
        return "TF_ENABLE_ONEDNN_OPTS=0 in the environment switches that pass off."
    return "No option of tflab switches that pass off."


def left_out(maps: Maps) -> Iterator[str]:
    if maps.left_out:
        yield (
            f"{plural(maps.left_out, 'more map')} {'is' if maps.left_out == 1 else 'are'} too many "
            "or too large to be drawn."
        )
