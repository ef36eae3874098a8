"""A node that is one effect as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from surestep._core.effects import Options
from surestep._drive.call import Call
from surestep._drive.effect import Intent, perform

if TYPE_CHECKING:
    from surestep._drive.context import TaskContext


class EffectCall(Call):
    """What a node runs, asked for as an effect. Its arguments are the node's input, which its place stands for."""

    __slots__ = ("inner", "options")

    def __init__(self, inner: Call, options: Options) -> None:
        super().__init__(inner.name, None, target=inner.target)
        self.is_async = inner.is_async
        self.inner = inner
        self.options = options

    def invoke(self, input: Any, task: TaskContext) -> Any:
        """What the node returns, or returned."""
        return perform(Intent(self.options, None, None, lambda: self.inner.invoke(input, task)))

    async def ainvoke(self, input: Any, task: TaskContext) -> Any:
        """As `invoke`."""
        from surestep._drive.effect_async import aperform  # here: it brings asyncio along

        return await aperform(Intent(self.options, None, None, lambda: self.inner.ainvoke(input, task)))


def as_effect(call: Call, name: str, effect: bool | Literal["eager"]) -> Call:
    """The call, made an effect if that is asked for."""
    if effect is False:
        return call
    if effect not in (True, "eager"):
        raise ValueError(f"effect is True, False or 'eager', not {effect!r} (node {name!r}).")
    return EffectCall(call, Options(name, eager=effect == "eager"))
