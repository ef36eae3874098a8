"""Identities. Every input of every hash is listed here and nowhere else.

Ids equal the reference's for equal checkpoint ids, so threads and stored writes can be read across.
"""

from __future__ import annotations

from typing import Any

from xxhash import xxh3_128_hexdigest

PUSH = "__pregel_push"
PULL = "__pregel_pull"
NULL_TASK_ID = "00000000-0000-0000-0000-000000000000"
NS_SEP = "|"
NS_END = ":"


def _dashed(digest: str) -> str:
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def task_id(checkpoint: bytes, version: int, text: str) -> str:
    """The id of a task planned from a checkpoint: the 16 bytes of its id, and its format. `text`: of the task, its
    namespace, step, name, and what made it."""
    data = checkpoint + text.encode()
    if version > 1:
        return _dashed(xxh3_128_hexdigest(data))
    from hashlib import sha1  # here: only checkpoints of long ago need it

    return _dashed(sha1(data).hexdigest()[:32])


def id_from(checkpoint_id: str, name: str) -> str:
    """The id of an edit's writes, which no task made."""
    from uuid import UUID, uuid5  # here: only edits need it

    return str(uuid5(UUID(checkpoint_id), name))


def interrupt_id(task_ns: str, answered: int) -> str:
    """The id of the question that a task asks when it already has `answered` answers."""
    return xxh3_128_hexdigest((f"{task_ns}|{answered}" if answered else task_ns).encode())


def child_ns(ns: str, name: str) -> str:
    """The namespace of a task before its id is added."""
    return f"{ns}{NS_SEP}{name}" if ns else name


def ns_path(ns: str) -> tuple[str, ...]:
    """A namespace as parts of a stream have it; empty for the outermost graph."""
    return tuple(ns.split(NS_SEP)) if ns else ()


def recast(ns: str) -> str:
    """The address of a graph: its namespace without task ids and call numbers."""
    return NS_SEP.join(part.split(NS_END)[0] for part in ns.split(NS_SEP) if not part.isdigit())


def path_text(path: Any) -> str:
    """A task's path as sortable text: the order in which writes are folded."""
    if type(path) is tuple:
        return "~" + ", ".join([path_text(part) for part in path])
    if isinstance(path, int):
        return f"{path:010}"
    return str(path)


def effect_id(thread_id: str, task_id: str, name: str, number: int) -> str:
    """The id of a task's n-th call of an effect."""
    return xxh3_128_hexdigest(f"effect|{thread_id}|{task_id}|{number}|{name}".encode())


def keyed_effect_id(name: str, key: str) -> str:
    """The id of the effect with a business key, wherever it is called."""
    return xxh3_128_hexdigest(f"key|{name}|{key}".encode())


def doubt_id(effect: str, attempt: int) -> str:
    """The id of the question whether an attempt at an effect happened."""
    return xxh3_128_hexdigest(f"doubt|{effect}|{attempt}".encode())


def gate_id(task_ns: str, number: int, digest: str) -> str:
    """The id of the question of a task's n-th gate, which binds a value with this digest."""
    return xxh3_128_hexdigest(f"gate|{task_ns}|{number}|{digest}".encode())
