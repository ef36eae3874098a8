"""Results that are kept for other runs, found again by what a task was given.

Rules:
1. A key stands for the node's code, what that code captured, where its edges lead, and the input. Change one of them,
   and nothing is found; two nodes never find each other's results.
2. Only a success is remembered. One that took somebody's answer is not: the next run has to ask again.
3. What is found counts as if the task had just written it: it is kept beside the checkpoint and shown, as cached.
4. A cache that fails costs time, never the run. The driver says so in the log and answers with nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xxhash import xxh3_128_hexdigest

from surestep._constants import CACHE_NS_WRITES
from surestep._core.commands import Recall, Remember, Step
from surestep._core.rows import rows_of_success

if TYPE_CHECKING:
    from surestep._core.blueprint import NodePlan
    from surestep._core.run import Run
    from surestep._core.task import Task

UNNAMED = "__dynamic__"  # stands for code that no name finds: objects, graphs, partials


Key = tuple[tuple[str, ...], str]  # namespace and key


def namespace(node: NodePlan, called: bool = False) -> tuple[str, ...]:
    """Where the results of a node are; those of a called task are the same wherever it is called."""
    own = (CACHE_NS_WRITES, node.spec.identity.name or UNNAMED)
    return own if called else (*own, node.name)


def key_of(task: Task, policy: Any) -> Key:
    """Where the result of a task is, if it is there."""
    try:
        if task.call is None:
            made = policy.key_func(task.input)
        else:
            args, kwargs = task.input
            made = policy.key_func(*args, **kwargs)
    except Exception as error:
        error.add_note(
            f"While the cache key of the input of '{task.name}' was made. The default key_func needs an input that can "
            "be pickled; CachePolicy(key_func=...) may return any str or bytes that tells inputs apart."
        )
        raise
    text = made.encode() if isinstance(made, str) else made
    return namespace(task.node, task.call is not None), xxh3_128_hexdigest(task.node.spec.identity.mark + text)


def recall(run: Run, tasks: Sequence[Task]) -> Step[None]:
    """Give tasks that were done before what they wrote then: they need not run."""
    run.to_cache = {
        task: (key_of(task, policy), policy.ttl)
        for task in tasks
        if (policy := task.node.cache_policy) is not None and _may_recall(run, task)
    }
    if not run.to_cache:
        return
    found = yield Recall(tuple(dict.fromkeys(key for key, _ in run.to_cache.values())))
    hits = {task: found[key] for task, (key, _) in run.to_cache.items() if key in found}
    for task, rows in hits.items():
        _restore(run, task, rows)
    alone = all(task.restored for task in tasks)
    for task in hits if run.keeps else ():
        yield from run.keep(task, rows_of_success(task.writes), last=alone)


def recall_call(run: Run, task: Task) -> Step[None]:
    """The same for one task that is called."""
    policy = task.node.cache_policy or run.blueprint.cache_policy
    if policy is None or not _may_recall(run, task):
        return
    key = key_of(task, policy)
    run.to_cache[task] = key, policy.ttl
    found = yield Recall((key,))
    if key in found:
        _restore(run, task, found[key])
        if run.keeps:
            yield from run.keep(task, rows_of_success(task.writes, task.call), last=False)


def remember(run: Run, task: Task) -> Step[None]:
    """Keep the result of a task that just finished, if it is one to be cached."""
    key, ttl = run.to_cache.pop(task, (None, None))
    if key is not None and not task.answers:
        yield Remember(key, rows_of_success(task.writes), ttl)


def _may_recall(run: Run, task: Task) -> bool:
    if task.restored or task in run.parked:
        return False
    status = run.pending.by_task.get(task.id) if run.pending is not None else None
    return status is None or not (status.questions or status.answers)


def _restore(run: Run, task: Task, rows: Any) -> None:
    task.writes = [(channel, value) for channel, value in rows]
    task.restored = True
    del run.to_cache[task]
