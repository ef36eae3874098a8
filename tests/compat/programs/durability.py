"""When the engine calls its saver, and with what: the three durabilities, seen from the saver."""

from typing import Any

from compat.registry import Log, ask, differs, kept, nodes, program, say
from harness.engine import Boom, Engine

DURABILITIES = ("sync", "async", "exit")


def recording(E: Engine, calls: list[Any]) -> Any:
    """A memory saver of this engine that notes every `put` and `put_writes`, sync and async."""

    class Recorder(E.InMemorySaver):  # type: ignore[misc]
        def put(self, config: Any, checkpoint: Any, metadata: Any, new: Any) -> Any:
            depth = config["configurable"].get("checkpoint_ns", "").count(":")
            calls.append(("put", depth, metadata["step"], metadata["source"], sorted(new)))
            return super().put(config, checkpoint, metadata, new)

        def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
            calls.append(("put_writes", task_path, [channel for channel, _ in writes]))
            super().put_writes(config, writes, task_id, task_path)

        async def aput(self, config: Any, checkpoint: Any, metadata: Any, new: Any) -> Any:
            return self.put(config, checkpoint, metadata, new)

        async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
            self.put_writes(config, writes, task_id, task_path)

    return Recorder()


def puts_in_order(calls: list[Any]) -> Any:
    """Puts come in order; writes of tasks go to the background, so only which there are is fixed."""
    # Each namespace is a chain of its own; what a run claims (its answer) is stored early in every durability.
    puts = sorted((call for call in calls if call[0] == "put"), key=lambda call: call[1])
    calls = [call for call in calls if call[2] != ["__resume__"]]
    control = ("branch:to:", "join:")
    writes = []
    for call in calls:
        if call[0] == "put_writes":
            state = [channel for channel in call[2] if not channel.startswith(control)]
            writes.append((call[1], state, sorted(c for c in call[2] if c.startswith(control))))
    return puts, sorted(writes)


@program()
def calls_of_a_line(E: Engine) -> Any:
    seen = {}
    for durability in DURABILITIES:
        calls: list[Any] = []
        app = E.graph(Log, nodes("ab"), "START > a > b").compile(checkpointer=recording(E, calls))
        E.invoke(app, {"log": ["in"]}, E.config(), durability=durability)
        seen[durability] = puts_in_order(calls), kept(E, app)
    return seen


@program()
def calls_of_a_step_with_a_question(E: Engine) -> Any:
    seen = {}
    for durability in DURABILITIES:
        calls: list[Any] = []
        g = E.graph(Log, nodes("acj", b=ask(E, "b?")), "START > a", "a > b > j", "a > c > j")
        app = g.compile(checkpointer=recording(E, calls))
        results = [E.invoke(app, {"log": []}, E.config(), durability=durability), puts_in_order(calls)]
        calls.clear()
        results += [
            E.invoke(app, E.Command(resume="r"), E.config(), durability=durability),
            puts_in_order(calls),
        ]
        seen[durability] = results, kept(E, app)
    return seen


@program()
def calls_of_a_failed_step(E: Engine) -> Any:
    async def bad(state: Any) -> Any:
        await E.sleep(0.02)
        raise Boom("bad")

    seen = {}
    for durability in DURABILITIES:
        calls: list[Any] = []
        app = E.graph(Log, {"a": say("a"), "bad": bad, "good": say("good")}, "START > a > good", "a > bad")
        app = app.compile(checkpointer=recording(E, calls))
        E.attempt(E.invoke, app, {"log": []}, E.config(), durability=durability)
        seen[durability] = puts_in_order(calls), kept(E, app)
    return seen


@program()
def calls_of_a_subgraph(E: Engine) -> Any:
    seen = {}
    for durability in DURABILITIES:
        calls: list[Any] = []
        sub = E.graph(Log, nodes("xy"), "START > x > y").compile()
        app = E.graph(Log, {"a": say("a"), "sub": sub}, "START > a > sub").compile(checkpointer=recording(E, calls))
        E.invoke(app, {"log": []}, E.config(), durability=durability)
        seen[durability] = puts_in_order(calls), kept(E, app)
    return seen


@program()
def exit_durability_with_questions_and_memories(E: Engine) -> Any:
    seen = []
    for memory in (None, True, False):
        sub = E.graph(Log, {"x": say("x"), "y": ask(E, "y?")}, "START > x > y").compile(checkpointer=memory)
        app = E.graph(Log, {"sub": sub, "b": say("b")}, "START > sub > b").compile(checkpointer=E.saver())
        first = E.invoke(app, {"log": []}, E.config(), durability="exit")
        between = kept(E, app)
        second = E.invoke(app, E.Command(resume="r"), E.config(), durability="exit")
        seen.append((first, between, second, kept(E, app)))
    return seen


@program()
def exit_durability_over_two_turns(E: Engine) -> Any:
    app = E.graph(Log, nodes("ab"), "START > a > b").compile(checkpointer=E.saver())
    results = [E.invoke(app, {"log": [word]}, E.config(), durability="exit") for word in ("one", "two")]
    return results, kept(E, app)


@program()
def exit_durability_of_a_stopped_run(E: Engine) -> Any:
    app = E.graph(Log, nodes("abc"), "START > a > b > c").compile(checkpointer=E.saver(), interrupt_before=["c"])
    E.invoke(app, {"log": []}, E.config(), durability="exit")
    between = kept(E, app)
    limited = E.config("2") | {"recursion_limit": 2}
    error = E.attempt(E.invoke, app, {"log": []}, limited, durability="exit")
    return between, E.invoke(app, None, E.config(), durability="exit"), error, kept(E, app, E.config("2"))


@program()
def durability_that_does_not_exist(E: Engine) -> Any:
    app = E.graph(Log, nodes("a"), "START > a").compile(checkpointer=E.saver())
    return isinstance(E.attempt(E.invoke, app, {"log": []}, E.config(), durability="sync"), dict)


@differs(
    "A checkpoint that cannot be written stops a `sync` run before its next step; `async` raises it, too",
    ours=lambda got: got["sync"] == ["OSError", ["a"]] and got["async"][0] == "OSError",
    theirs=lambda got: got["async"][0] == "OSError",
)
def saver_that_refuses_a_checkpoint(E: Engine) -> Any:
    class Full(E.InMemorySaver):  # type: ignore[misc]
        def put(self, config: Any, checkpoint: Any, metadata: Any, new: Any) -> Any:
            if metadata["step"] == 1:
                raise OSError("disk full")
            return super().put(config, checkpoint, metadata, new)

        async def aput(self, config: Any, checkpoint: Any, metadata: Any, new: Any) -> Any:
            return self.put(config, checkpoint, metadata, new)

    results = {}
    for durability in ("sync", "async"):
        ran: list[str] = []

        def note(name: str, ran: list[str] = ran) -> Any:
            return lambda state: ran.append(name) or {"log": [name]}

        app = E.graph(Log, {n: note(n) for n in "ab"}, "START > a > b").compile(checkpointer=Full())
        error = E.attempt(E.invoke, app, {"log": []}, E.config(), durability=durability)
        results[durability] = type(error).__name__, ran
    return results


@differs(
    "an API key or a user's token in `configurable` is readable in every checkpoint",
    ours=[["parents", "source", "step", "tenant"]],
    theirs=[["api_key", "parents", "source", "step", "tenant"]],
)
def secret_in_configurable(E: Engine) -> Any:
    app = E.graph(Log, nodes("a"), "START > a").compile(checkpointer=E.saver())
    E.invoke(app, {"log": []}, {**E.config(api_key="sk"), "metadata": {"tenant": "t"}})
    rows = E.rows(app.checkpointer, E.config())
    return [sorted(keys) for keys in {frozenset(row.metadata) for row in rows}]
