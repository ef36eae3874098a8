"""Which keys of its input a function looks up, where its compiled code shows that it does nothing else with it.

Such a function need not be given the other keys: it can't tell. That is worth while where a state has very many, for
a copy of them all costs more than everything else that a step does.

Rules
1. Every mention of the first parameter is `input["key"]`, read. Anything else (a method, a loop, handing it on, writing
   to it, an inner function that mentions it) and the answer is None: give it everything.
2. A function that may look at its own variables in another way gets everything too.
"""

from __future__ import annotations

import dis
from types import FunctionType
from typing import Any, Final

_FILLER: Final = frozenset({"CACHE", "EXTENDED_ARG", "NOP"})
_LOAD: Final = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW"})
_REFLECTION: Final = frozenset(
    ("locals", "vars", "dir", "eval", "exec", "breakpoint", "set_trace", "_getframe", "currentframe", "stack")
)


def keys_looked_up(function: Any) -> tuple[str, ...] | None:
    """The keys, or None if it may do something else with its input."""
    if not isinstance(function, FunctionType) or not function.__code__.co_argcount:
        return None
    code = function.__code__
    name = code.co_varnames[0]
    if name in code.co_cellvars or not _REFLECTION.isdisjoint(code.co_names):
        return None
    found: dict[str, None] = {}
    steps = [step for step in dis.get_instructions(code) if step.opname not in _FILLER]
    for load, key, lookup in zip(steps, steps[1:], steps[2:], strict=False):
        if not _mentions(load, name):
            continue
        if load.opname not in _LOAD or key.opname != "LOAD_CONST" or not _is_lookup(lookup):
            return None
        if type(key.argval) is not str or lookup.is_jump_target or key.is_jump_target:
            return None
        found[key.argval] = None
    return tuple(found) if not any(_mentions(step, name) for step in steps[-2:]) else None


def _mentions(step: dis.Instruction, name: str) -> bool:
    """Whether an instruction has to do with the variable; some of newer interpreters have to do with two."""
    if step.opcode not in dis.haslocal and "_FAST" not in step.opname:
        return False
    return step.argval == name or (isinstance(step.argval, tuple) and name in step.argval)


def _is_lookup(step: dis.Instruction) -> bool:
    return step.opname == "BINARY_SUBSCR" or (step.opname == "BINARY_OP" and step.argrepr == "[]")
