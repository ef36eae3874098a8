"""Parts of a v2 stream as events."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from surestep.stream._types import ProtocolEvent


def event_of(method: str, namespace: list[str], data: Any) -> ProtocolEvent:
    """An event that happens now."""
    params: Any = {"namespace": namespace, "timestamp": time.time_ns() // 1_000_000, "data": data}
    return {"type": "event", "method": method, "params": params}


def convert_to_protocol_event(part: Mapping[str, Any]) -> ProtocolEvent:
    """A part `{"type", "ns", "data"}` (and `"interrupts"`) as an event."""
    event = event_of(part["type"], list(part["ns"]), part["data"])
    if "interrupts" in part:
        event["params"]["interrupts"] = part["interrupts"]
    return event
