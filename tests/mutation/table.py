"""The rules of admission, doubts, gates, records and leases, each with an edit of the source that takes it away."""

from __future__ import annotations

from typing import NamedTuple

G = "tests/effects/test_guarantees.py"
X = "tests/effects/test_edges.py"
T = "tests/threads/test_strategies.py"
L = "tests/savers/test_ledger.py"
S = "tests/savers/test_leases.py"


class Mutant(NamedTuple):
    """`rule`: what is taken away, by the edit of `old` to `new` in `file`; `test` fails then."""

    rule: str
    file: str
    old: str
    new: str
    test: str


ADMISSION = "surestep/_core/admission.py"
DOUBT = "surestep/_core/doubt.py"
LEASES = "surestep/checkpoint/memory/_leases.py"

MUTANTS = (
    Mutant(
        "A1 settled",
        ADMISSION,
        "        live = self.step.live\n        if len(self.asking)",
        "        return True\n        if len(self.asking)",
        f"{G}::test_an_effect_waits_for_siblings_that_have_not_come_to_their_question_yet",
    ),
    Mutant(
        "A1 a caller that goes on",
        ADMISSION,
        "if task.call is not None and task.call.awaited:",
        "if task.call is not None:",
        f"{X}::test_an_async_caller_that_comes_to_a_question",
    ),
    Mutant(
        "A1 graphs side by side",
        ADMISSION,
        "waits[task] >= max(1, task.graphs)",
        "waits[task] >= 1",
        f"{X}::test_graphs_side_by_side_in_a_node_hold_each_other",
    ),
    Mutant(
        "A2 open questions",
        ADMISSION,
        "return any(asked or not (task in self.held or task in parked) for task, asked in step.questions.items())",
        "return False",
        f"{G}::test_beside_a_gate_an_effect_waits_for_the_decision",
    ),
    Mutant(
        "A2 failed siblings",
        ADMISSION,
        "if step.failure is not None or step.escaped:",
        "if step.escaped:",
        f"{G}::test_a_failed_sibling_holds_until_it_is_resumed",
    ),
    Mutant(
        "A3 waves",
        ADMISSION,
        "                self.landed.append((call, told))",
        "                yield from self._release(call, told)",
        f"{G}::test_no_task_of_a_wave_goes_on_before_the_wave_has_landed",
    ),
    Mutant(
        "A4 the superstep around",
        ADMISSION,
        "if self.run.request.nested and not self.granted:  # A4",
        "if False:",
        f"{G}::test_the_superstep_around_a_subgraph_holds_it",
    ),
    Mutant(
        "A5 attempts that don't count",
        ADMISSION,
        "if self.step.live.get(call.task) != call.attempt:  # A5",
        "if False:",
        f"{X}::test_an_attempt_that_timed_out_is_fenced",
    ),
    Mutant(
        "A6 what a held task does",
        "surestep/_core/step.py",
        "if task in self.effects.held and not",
        "if False and not",
        f"{G}::test_a_node_that_swallows_the_pause_is_paused_all_the_same",
    ),
    Mutant(
        "A7 durable before it starts",
        ADMISSION,
        "            yield from run.store_head()\n",
        "            pass\n",
        f"{X}::test_the_checkpoint_is_stored_before_an_effect_starts",
    ),
    Mutant(
        "A8 eager",
        ADMISSION,
        "if call.options.eager and not self._blocked() and not self._under_way(call.id):",
        "if False:",
        f"{G}::test_an_eager_effect_does_not_wait_for_siblings_but_for_questions",
    ),
    Mutant(
        "A8 eager, but for open questions",
        ADMISSION,
        "if call.options.eager and not self._blocked() and",
        "if call.options.eager and",
        f"{X}::test_an_eager_effect_waits_for_an_open_question",
    ),
    Mutant(
        "E1 the outcome before its use",
        ADMISSION,
        "refused = (yield UseLedger(\"move_effects\", (moves,))) if moves else ()\n"
        "        except Unstorable as unstorable:",
        "refused = [None] * len(moves)\n        except Unstorable as unstorable:",
        f"{G}::test_an_effect_before_a_pause_happens_once",
    ),
    Mutant(
        "E2 moves",
        "surestep/checkpoint/base/_ledger.py",
        "return same and there.state in move.allowed",
        "return same",
        f"{L}::test_a_record_moves_as_the_table_says",
    ),
    Mutant(
        "E3 once",
        ADMISSION,
        "        elif record.state == DONE:\n"
        "            yield Answer(call, Verdict(\"replay\", record.result), None)\n",
        "        elif record.state == DONE:\n            return False\n",
        f"{G}::test_an_effect_before_a_pause_happens_once",
    ),
    Mutant(
        "E4 arguments",
        "surestep/_core/effects.py",
        "if record.digest != call.digest:",
        "if False:",
        f"{G}::test_code_that_changed_gets_an_error_and_no_other_result",
    ),
    Mutant(
        "E4 another effect in its place",
        ADMISSION,
        "elif record is None and (left := self._skipped(call, asked)) is not None:",
        "elif record is None and (left := None) is not None:",
        f"{G}::test_code_that_changed_gets_an_error_and_no_other_result",
    ),
    Mutant(
        "E5, D1 doubts",
        ADMISSION,
        "        elif record.state in (ADMITTED, UNKNOWN):  # E5\n            return",
        "        elif record.state in (ADMITTED, UNKNOWN):  # E5\n"
        "            call.resolution = doubt.RunAgain()\n            return",
        f"{G}::test_a_doubt_is_asked_about_and_settled_by_what_somebody_found",
    ),
    Mutant(
        "E6, G3 what is cancelled",
        ADMISSION,
        "            yield Answer(call, None, _cancelled(record))\n",
        "            return False\n",
        f"{G}::test_a_rejection_cancels_for_good_and_harms_no_sibling",
    ),
    Mutant(
        "D2 answers that settle nothing",
        DOUBT,
        "yield Answer(call, None, _not_a_resolution(answers.pop(question)))",
        "call.resolution = RunAgain()\n            return False",
        f"{G}::test_an_answer_that_settles_no_doubt_is_refused_and_the_question_stays",
    ),
    Mutant(
        "D3 fail",
        DOUBT,
        "    if call.resolution is None:\n        yield Answer(call, None, _unknown(record))\n        return True\n",
        "    if call.resolution is None:\n        call.resolution = RunAgain()\n",
        f"{G}::test_a_doubt_that_is_to_fail_fails_every_time",
    ),
    Mutant(
        "D5 read-back",
        DOUBT,
        "if call.resolution is None and callable(policy):",
        "if False:",
        f"{G}::test_a_read_back_function_settles_a_doubt",
    ),
    Mutant(
        "G1 what a gate binds",
        "surestep/_core/ids.py",
        'xxh3_128_hexdigest(f"gate|{task_ns}|{number}|{digest}".encode())',
        'xxh3_128_hexdigest(f"gate|{task_ns}|{number}".encode())',
        f"{G}::test_a_gate_asks_again_when_what_it_binds_has_changed",
    ),
    Mutant(
        "G2 expiry",
        "surestep/_core/resume.py",
        "gate.deadline is not None and gate.deadline <= now",
        "False",
        f"{G}::test_a_gate_whose_time_is_up_counts_as_rejected",
    ),
    Mutant(
        "G3 a rejection cancels",
        "surestep/_core/resume.py",
        '{"cancels": True}',
        '{"cancels": False}',
        f"{G}::test_a_rejection_cancels_for_good_and_harms_no_sibling",
    ),
    Mutant(
        "held tasks wait with the question",
        "surestep/_core/resume.py",
        "        run.parked.update(dict.fromkeys(held, ()))",
        "        pass",
        f"{X}::test_a_held_task_is_not_started_again_while_a_question_is_open",
    ),
    Mutant(
        "gate nodes",
        "surestep/_core/step.py",
        "        if self.run.blueprint.gated:\n",
        "        if False:\n",
        f"{G}::test_behind_a_gate_node_nothing_starts",
    ),
    Mutant(
        "L1 the first write takes the thread",
        LEASES,
        "if hold is not None and not hold.taken:",
        "if False:",
        f"{S}::test_the_first_write_takes_the_thread_and_makes_another_ones_fail",
    ),
    Mutant(
        "L2 every write needs it",
        LEASES,
        "            if lease is None or lease.holder != hold.holder:\n                raise lost(lease, hold)\n",
        "            pass\n",
        f"{S}::test_a_commit_needs_the_thread_and_may_let_it_go",
    ),
    Mutant(
        "L2 effects need it",
        "surestep/_drive/driver.py",
        'kwargs = {**kwargs, "hold": self.env.hold}',
        "pass",
        f"{T}::test_a_run_that_lost_its_thread_starts_no_effect",
    ),
    Mutant(
        "L3 leases end",
        "surestep/checkpoint/base/_leases.py",
        "return self.holder is not None and self.expires_at > now",
        "return self.holder is not None",
        f"{S}::test_a_held_thread_is_had_by_who_takes_it_or_when_the_lease_has_ended",
    ),
    Mutant(
        "L4 tickets",
        LEASES,
        "or (how == \"turn\" and not self._is_turn(hold, now, ticket))",
        "",
        f"{S}::test_who_waits_gets_it_in_order_and_the_dead_are_passed_over",
    ),
)  # fmt: skip
