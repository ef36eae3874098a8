"""A node as it was declared with `add_node`, and the defaults that a graph gives its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from surestep._drive.call import Call
from surestep.types import CachePolicy, RetryPolicy, TimeoutPolicy, TracePolicy

DEFAULT_HANDLER = "__default_error_handler__"

Retries = RetryPolicy | Sequence[RetryPolicy]


def handler_name(node: str) -> str:
    """The node that `add_node(node, error_handler=...)` adds for the handler."""
    return f"__error_handler__{node}"


@dataclass(slots=True)
class StateNodeSpec:
    """A declared node.

    `runnable`: what it runs. `input_schema`: the keys that it reads. `ends`: the nodes that its commands may
    go to, for checks and drawings (a dict gives them labels). `error_handler_node`: the node that takes over
    when this one has failed for good. The policies are as given; None where the graph's defaults apply.
    """

    runnable: Call
    metadata: dict[str, Any] | None
    input_schema: Any
    retry_policy: Retries | None
    cache_policy: CachePolicy[Any] | None
    is_error_handler: bool = False
    error_handler_node: str | None = None
    ends: tuple[str, ...] | dict[str, str] = ()
    defer: bool = False
    timeout: TimeoutPolicy | None = None
    trace_policy: TracePolicy | None = None
    gate: bool = False


class NodeDefaults:
    """What nodes without a setting of their own get when the graph is compiled."""

    __slots__ = ("cache_policy", "error_handler", "retry_policy", "timeout")

    def __init__(self) -> None:
        self.retry_policy: Retries | None = None
        self.cache_policy: CachePolicy[Any] | None = None
        self.error_handler: Any = None
        self.timeout: TimeoutPolicy | None = None

    def applied(self, spec: StateNodeSpec) -> StateNodeSpec:
        """`spec` with the defaults filled in. A handler has no handler and is not cached."""
        changes: dict[str, Any] = {}
        if spec.retry_policy is None and self.retry_policy is not None:
            changes["retry_policy"] = self.retry_policy
        if spec.timeout is None and self.timeout is not None:
            changes["timeout"] = self.timeout
        if not spec.is_error_handler:
            if spec.cache_policy is None and self.cache_policy is not None:
                changes["cache_policy"] = self.cache_policy
            if spec.error_handler_node is None and self.error_handler is not None:
                changes["error_handler_node"] = DEFAULT_HANDLER
        return replace(spec, **changes) if changes else spec
