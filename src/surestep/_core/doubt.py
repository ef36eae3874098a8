"""An effect that may have happened: it was admitted, and nobody recorded what came of it.

Rules (D1 and so on; INVARIANTS.md says which tests prove them):
D1. Nothing in doubt is run again unless its declaration or somebody says so.
D2. `ask`: the run pauses with a question that names the effect, its arguments and its idempotency key. It is answered
    by Completed, Retry or Abort, once; after a Retry that ends in doubt again it is another question.
D3. `fail`: the call raises EffectUnknown; the record stays in doubt.
D4. `retry`: the body runs again under the same idempotency key.
D5. A read-back function is asked; what it can't tell stays in doubt, and so does what ends in doubt again after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surestep._core.commands import Answer, Step, UseLedger
from surestep._core.effects import Abort, Completed, EffectCall, Resolution, Verdict, moved, resolution_of
from surestep._core.effects import Retry as RunAgain
from surestep._core.ids import doubt_id
from surestep._records import EffectRecord
from surestep.errors import EffectAborted, EffectUnknown, GraphInterrupt
from surestep.types import Interrupt

if TYPE_CHECKING:
    from surestep._core.admission import Admission


def move_of(call: EffectCall) -> str:
    """How a call's record comes to be admitted: as a new one, or out of a doubt."""
    return "retry" if isinstance(call.resolution, RunAgain) else "admit"


def may_be_told(call: EffectCall) -> bool:
    """Whether somebody is to be asked at once when the body itself can't tell. To run it again at once would be to
    insist: `retry` is for those who come back later."""
    if call.options is None:
        return False
    return call.options.on_unknown == "ask" or (callable(call.options.on_unknown) and call.resolution is None)


def resolve(admission: Admission, record: EffectRecord, call: EffectCall) -> Step[bool]:
    """Answer a call whose record is in doubt. False: it may be admitted again."""
    options = call.options
    assert options is not None
    policy = options.on_unknown
    if call.resolution is None and callable(policy):
        yield Answer(call, Verdict("read back", record), None)
        return True
    if policy == "retry":
        call.resolution = RunAgain()
    if call.resolution is None and policy == "ask":
        question = doubt_id(record.id, record.attempt)
        answers = admission.run.request.answers.by_id
        if question not in answers:
            yield Answer(call, None, GraphInterrupt((Interrupt(as_question(record, call), id=question),)))
            return True
        call.resolution = resolution_of(answers[question])
        if call.resolution is None:
            yield Answer(call, None, _not_a_resolution(answers.pop(question)))
            return True
    if call.resolution is None:
        yield Answer(call, None, _unknown(record))
        return True
    if isinstance(call.resolution, RunAgain):
        return False
    yield from _settle(admission, record, call, call.resolution)
    return True


def _settle(admission: Admission, record: EffectRecord, call: EffectCall, resolution: Completed | Abort) -> Step[None]:
    """Record what was said of it, and answer by that."""
    now, actor = admission.run.request.now(), admission.run.actor
    if isinstance(resolution, Completed):
        kept = record._replace(state="done", result=resolution.result, actor=actor, changed_at=now)
        move, verdict, error = moved("complete", kept), Verdict("replay", resolution.result), None
    else:
        error = EffectAborted(f"Effect '{record.name}' was given up{_because(resolution.reason)}.")
        kept = record._replace(state="failed", result=error, reason=resolution.reason, actor=actor, changed_at=now)
        move, verdict = moved("abort", kept), None
    (there,) = yield UseLedger("move_effects", ([move],))
    if there is not None:  # somebody was faster: theirs counts
        admission.records[call.id] = there
        call.resolution = None
        yield from admission.answer_from(there, call)
        return
    admission.records[call.id] = kept
    yield Answer(call, verdict, error)


def as_question(record: EffectRecord, call: EffectCall) -> dict[str, Any]:
    """What is asked about a doubt."""
    return {
        "type": "effect_unknown",
        "effect": record.name,
        "arguments": call.arguments,
        "idempotency_key": record.id,
        "attempt": record.attempt,
        "message": (
            f"'{record.name}' was started and nobody recorded what came of it. Look it up by its idempotency key, then "
            "answer Completed(result), Retry() or Abort(reason)."
        ),
    }


def _unknown(record: EffectRecord) -> EffectUnknown:
    return EffectUnknown(
        f"It is not known whether effect '{record.name}' ({record.id}) happened: it was started and nobody recorded "
        "what "
        "came of it. It was not run again.",
        effect_id=record.id,
    )


def _not_a_resolution(answer: Any) -> Exception:
    from surestep.errors import mark_invalid_resume

    error = TypeError(
        f"An effect in doubt is answered by Completed(result), Retry() or Abort(reason), from surestep.effects, not by "
        f"{answer!r}. The question is open again."
    )
    mark_invalid_resume(error)
    return error


def _because(reason: str | None) -> str:
    return f": {reason}" if reason else ""


__all__ = ("Resolution", "as_question", "move_of", "resolve")
