"""The core's cache commands as calls of a cache's methods. Written once; the drivers only make the calls."""

from __future__ import annotations

import logging
from typing import Any

from surestep._core.commands import Recall, Remember

log = logging.getLogger("surestep")


def cache_call(command: Recall | Remember) -> tuple[str, Any]:
    """The method that does it, and its argument; the async form has the same name with an `a` in front."""
    if type(command) is Recall:
        return "get", command.keys
    assert isinstance(command, Remember)
    return "set", {command.key: (list(command.writes), command.ttl)}


def without_cache(command: Recall | Remember, error: Exception) -> dict[Any, Any]:
    """What a cache that failed has to say. A cache costs time when it fails; it must not cost the run."""
    what = "read" if type(command) is Recall else "written"
    keys = command.keys if isinstance(command, Recall) else [command.key]
    names = ", ".join(dict.fromkeys(":".join(namespace[1:]) for namespace, _ in keys))
    log.warning(
        "The cache could not be %s for %s; the run goes on without it. %s: %s", what, names, type(error).__name__, error
    )
    return {}
