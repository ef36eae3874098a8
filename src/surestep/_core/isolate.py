"""Copies that keep one holder's in-place changes from another.

Containers are copied, to any depth; what they hold is shared. A node that appends to a list it was given changes
its own copy, not the channel, its siblings or an older checkpoint. An object of a class of the user's own
(a message, a model) stays the same object: whoever changes its attributes changes it for all.
"""

from __future__ import annotations

from collections import deque
from typing import Any

CONTAINERS = (list, dict, set, deque, bytearray)
COPIED = frozenset({*CONTAINERS, tuple})
PLAIN = frozenset({int, str, float, bool, type(None), bytes, complex, frozenset})


def isolate(value: Any) -> Any:
    """The value, with containers of the exact built-in types copied."""
    kind = type(value)
    if kind not in COPIED:
        return value
    if kind is list:
        if COPIED.isdisjoint(map(type, value)):  # the usual case, and at every step as long as the list is
            return value.copy()
        return [isolate(item) if type(item) in COPIED else item for item in value]
    if kind is dict:
        if COPIED.isdisjoint(map(type, value.values())):
            return value.copy()
        return {key: isolate(item) if type(item) in COPIED else item for key, item in value.items()}
    if kind is tuple:
        return tuple([isolate(item) for item in value])
    return value.copy()


def needs_isolation(value: Any) -> bool:
    """Whether a holder could change it in place through its container."""
    kind = type(value)
    return kind in CONTAINERS or (kind is tuple and any(needs_isolation(item) for item in value))
