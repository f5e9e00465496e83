"""Effects: what a node may affect other than its tensors.

A list of harmful ops is never complete, so tflab does the opposite: a node is harmless only if the
definition of its type says so, or if the type was reviewed (`reviewed_ops`). Every other node has
an effect, possibly an unknown one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tflab.saved_graphs import reviewed_ops

STRING = 7  # DT_STRING in tensorflow/core/framework/types.proto
HARMLESS = frozenset(" ".join(reviewed_ops.HARMLESS.values()).split())
GATED = {what: re.compile(pattern) for what, pattern in reviewed_ops.GATED.items()}


@dataclass(frozen=True)
class Effect:
    node: str
    op: str
    what: str


def of_type(op: str, op_def: Any) -> str | None:
    """The possible effect of a node of this type, as the end of a sentence; None if it is harmless.

    `op_def` is the OpDef of the type, None for a type that TensorFlow does not know.
    """
    for effect, pattern in GATED.items():
        if pattern.fullmatch(op):
            return effect
    if op in HARMLESS:
        return None
    if op_def is None:
        return "has an op that TensorFlow does not know"
    return by_definition(op_def)


def by_definition(op_def: Any) -> str | None:
    """The possible effect according to the definition of a type. None if it is harmless: not
    stateful, and without a string input that could be the name of a file or an address."""
    if op_def.is_stateful:
        return "is stateful"
    for argument in op_def.input_arg:
        if argument.type == STRING:
            return f"takes the string '{argument.name}'"
    for attribute in op_def.attr:
        listed = attribute.allowed_values.list.s  # its value is one of these words
        plain = listed or attribute.name in reviewed_ops.PLAIN_ATTRIBUTES
        if attribute.type in ("string", "list(string)") and not plain:
            return f"takes the string attribute '{attribute.name}'"
    return None


def of_node(
    node_def: Any,
    op_def: Any,
    is_empty: Callable[[str], bool],
    is_given: Callable[[str], bool],
) -> str | None:
    """The effect of this node; None if it is harmless, possibly because of its attributes or
    inputs.

    `is_empty` says whether an input is a constant empty string, `is_given` whether it is a path
    that tflab itself feeds.
    """
    effect = of_type(node_def.op, op_def)
    if effect is None:
        return None
    if node_def.op in reviewed_ops.HARMLESS_VALUES:
        name, pattern = reviewed_ops.HARMLESS_VALUES[node_def.op]
        if re.fullmatch(pattern, text_of(node_def, op_def, name), re.DOTALL):
            return None
    empty = input_of(node_def, op_def, reviewed_ops.HARMLESS_EMPTY.get(node_def.op))
    given = input_of(node_def, op_def, reviewed_ops.READERS.get(node_def.op))
    if (empty and is_empty(empty)) or (given and is_given(given)):
        return None
    return effect


def text_of(node_def: Any, op_def: Any, name: str) -> str:
    """An attribute of a node; by default that of its type."""
    if name in node_def.attr:
        return node_def.attr[name].s.decode(errors="replace")
    defaults = [attr.default_value.s for attr in op_def.attr if attr.name == name] if op_def else []
    return b"".join(defaults).decode(errors="replace")


def input_of(node_def: Any, op_def: Any, argument: str | None) -> str | None:
    """The tensor for this argument. None if it has none or several, or if the number of tensors
    before it is unknown."""
    place = 0
    for arg in op_def.input_arg if op_def else ():
        several = arg.number_attr or arg.type_list_attr
        if arg.name == argument:
            inputs = [tensor for tensor in node_def.input if tensor[:1] != "^"]
            return inputs[place] if not several and place < len(inputs) else None
        if several and several not in node_def.attr:
            return None
        value = node_def.attr[several] if several else None
        place += 1 if value is None else value.i if arg.number_attr else len(value.list.type)
    return None


def effects_text(effects: Iterable[Effect]) -> str:
    """`load/ReadFile (ReadFile) reads files; ...`"""
    return "; ".join(f"{effect.node} ({effect.op}) {effect.what}" for effect in effects)
