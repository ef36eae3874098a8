"""What the serializer refused or let through, as events: for audit logs and metrics."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Literal, NotRequired, TypedDict

__all__ = ("SerdeEvent", "SerdeEventListener", "emit_serde_event", "register_serde_event_listener")


class SerdeEvent(TypedDict):
    """One decision about a stored type.

    `msgpack_blocked`: not allowed, loading raised. `msgpack_unregistered_allowed`: revived only because
    everything is allowed. `msgpack_method_blocked`: a stored method call that isn't one of ours, loading
    raised.
    """

    kind: Literal["msgpack_blocked", "msgpack_unregistered_allowed", "msgpack_method_blocked"]
    module: str
    name: str
    method: NotRequired[str]


SerdeEventListener = Callable[[SerdeEvent], None]

_listeners: list[SerdeEventListener] = []
_lock = Lock()


def register_serde_event_listener(listener: SerdeEventListener) -> Callable[[], None]:
    """A function that removes the listener again. The listener gets every later event of the process."""
    with _lock:
        _listeners.append(listener)

    def unregister() -> None:
        with _lock:
            if listener in _listeners:
                _listeners.remove(listener)

    return unregister


def emit_serde_event(event: SerdeEvent) -> None:
    """Tell every listener. One that raises is logged and doesn't disturb the others or the load."""
    with _lock:
        listeners = tuple(_listeners)
    for listener in listeners:
        try:
            listener(event)
        except Exception:
            import logging

            logging.getLogger(__name__).warning("A serde event listener raised; the event was %r", event, exc_info=True)
