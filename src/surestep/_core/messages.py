"""Ids for messages that have none, before they are written to a delta channel.

Such a channel is folded from its stored writes again, so a reducer that makes up ids would make up others each time.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


def name_messages(channels: Collection[str], writes: list[tuple[str, Any]]) -> None:
    """Give messages in these channels' writes an id: in place if they are objects, in a copy if they are dicts."""
    for position, (key, value) in enumerate(writes):
        if key in channels:
            named = [_named(item) for item in value] if isinstance(value, list) else _named(value)
            writes[position] = (key, named)


def _named(item: Any) -> Any:
    from uuid import uuid4  # here: most graphs have no such channel

    if isinstance(item, dict):
        looks_like_one = "content" in item and ("role" in item or "type" in item)
        return {**item, "id": str(uuid4())} if looks_like_one and item.get("id") is None else item
    if hasattr(item, "content") and getattr(item, "id", "") is None:
        item.id = str(uuid4())
    return item
