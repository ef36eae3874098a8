"""Callback managers for tasks of runs that nobody listens to.

What a node calls may still bring listeners of its own, and some of LangChain's functions (custom events) insist on
running inside of something: so a config that a node asks for always has a manager with a parent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.callbacks.base import BaseCallbackHandler
from langchain_core.callbacks.manager import AsyncCallbackManager, CallbackManager

if TYPE_CHECKING:
    from surestep._drive.context import TaskContext

INTEGRATION = {"ls_integration": "langgraph"}
"""What says in a trace that it comes from a graph. Tools that read traces know this name and no other."""


class SignsOfLife(BaseCallbackHandler):
    """Whatever happens below a task tells its idle timeout that it is alive."""

    run_inline = True

    def __init__(self, context: TaskContext) -> None:
        self.context = context

    def _alive(self, *args: Any, **kwargs: Any) -> None:
        self.context.sign_of_life()

    on_llm_start = on_chat_model_start = on_llm_new_token = on_llm_end = on_llm_error = _alive
    on_chain_start = on_chain_end = on_chain_error = on_agent_action = on_agent_finish = _alive
    on_tool_start = on_tool_end = on_tool_error = on_text = on_retry = on_custom_event = _alive
    on_retriever_start = on_retriever_end = on_retriever_error = _alive


def quiet_manager(context: TaskContext) -> Any:
    """A manager without listeners, for the config of a task."""
    kind = AsyncCallbackManager if context.env.is_async else CallbackManager
    manager = kind(
        [],
        parent_run_id=uuid4(),
        tags=["seq:step:1"],
        metadata=dict(INTEGRATION),
        inheritable_metadata=dict(INTEGRATION),
    )
    if context.progressed is not None:
        manager.add_handler(SignsOfLife(context))
    return manager
