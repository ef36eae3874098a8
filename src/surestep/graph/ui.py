"""User interface elements as state: what a front end shows beside the messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict
from uuid import uuid4

from surestep._context import current_task
from surestep.graph._by_id import merged_by_id

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

__all__ = (
    "AnyUIMessage",
    "RemoveUIMessage",
    "UIMessage",
    "delete_ui_message",
    "push_ui_message",
    "ui_message_reducer",
)


class UIMessage(TypedDict):
    """An element to show: the component's name, its props, and metadata (run, tags, the message it belongs
    to)."""

    type: Literal["ui"]
    id: str
    name: str
    props: dict[str, Any]
    metadata: dict[str, Any]


class RemoveUIMessage(TypedDict):
    """The removal of the element with this id."""

    type: Literal["remove-ui"]
    id: str


AnyUIMessage: TypeAlias = UIMessage | RemoveUIMessage
"""An element or the removal of one."""


def push_ui_message(
    name: str,
    props: dict[str, Any],
    *,
    id: str | None = None,
    metadata: dict[str, Any] | None = None,
    message: AnyMessage | None = None,
    state_key: str | None = "ui",
    merge: bool = False,
) -> UIMessage:
    """Show an element now, on the custom stream, and write it to `state_key` (None: only show it); the
    element.

    With `merge` its props are added to those the element has already. `message` is the message it belongs to.
    Raises RuntimeError outside of a node.
    """
    task = _task("push_ui_message")
    config = task.config
    plain: Any = message
    message_id = plain.get("id") if isinstance(plain, dict) else getattr(plain, "id", None)
    event: UIMessage = {
        "type": "ui",
        "id": id or str(uuid4()),
        "name": name,
        "props": props,
        "metadata": {
            "merge": merge,
            "run_id": config.get("run_id"),
            "tags": config.get("tags") or None,
            "name": config.get("run_name"),
            **(metadata or {}),
            **({"message_id": message_id} if message_id else {}),
        },
    }
    _emit(task, event, state_key)
    return event


def delete_ui_message(id: str, *, state_key: str = "ui") -> RemoveUIMessage:
    """Take the element with this id away, on the custom stream and in the state; the removal.

    Raises RuntimeError outside of a node.
    """
    event: RemoveUIMessage = {"type": "remove-ui", "id": id}
    _emit(_task("delete_ui_message"), event, state_key)
    return event


def _task(caller: str) -> Any:
    task = current_task.get()
    if task is None:
        raise RuntimeError(
            f"Called get_config outside of a runnable context: {caller} adds to what a node streams and "
            "writes, so call it inside a node or a task."
        )
    return task


def _emit(task: Any, event: AnyUIMessage, state_key: str | None) -> None:
    task.stream_writer(event)
    if state_key:
        task.send([(state_key, event)])


def ui_message_reducer(
    left: list[AnyUIMessage] | AnyUIMessage, right: list[AnyUIMessage] | AnyUIMessage
) -> list[AnyUIMessage]:
    """The elements of `left` with those of `right` merged in by id: a known id is replaced in its place (or
    its props are added to, when the new metadata has "merge"), a new one comes last, a removal takes its
    element away.

    Raises ValueError for the removal of an id that is not there.
    """
    known: list[AnyUIMessage] = left if isinstance(left, list) else [left]
    return merged_by_id(
        known,
        (element.get("id") for element in known),
        right if isinstance(right, list) else [right],
        id_of=lambda element: element.get("id"),
        is_removal=lambda element: element["type"] == "remove-ui",
        unknown="Attempting to delete an UI message with an ID that doesn't exist ({id!r}): "
        "use the id of an element that is in the state.",
        replacing=_replaced,
    )


def _replaced(before: Any, new: Any) -> Any:
    if new.get("metadata", {}).get("merge", False):
        return {**new, "props": {**before["props"], **new["props"]}}
    return new
