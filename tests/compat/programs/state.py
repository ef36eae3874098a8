"""What a state is made of: reducers, channels, several schemas, managed values, typed states."""

import dataclasses
import operator
from typing import Annotated, Any, TypedDict

import pydantic
from compat.registry import Log, differs, failed, kept, look, nodes, program, say
from harness.engine import Engine


def concat(a: str, b: str) -> str:
    return f"({a}{b})"


def smallest(a: Any, b: Any) -> Any:
    return b if a is None or b < a else a


def update(name: str, value: Any) -> Any:
    return lambda state: {name: value}


@program()
def reducers_fold_in_order(E: Engine) -> Any:
    kinds = {
        "text": Annotated[str, concat],
        "least": Annotated[int, smallest],
        "bag": Annotated[set, operator.or_],
        "table": Annotated[dict, operator.or_],
        "total": Annotated[int, operator.add],
        "factor": Annotated[float, operator.mul],
    }
    state = TypedDict("S", kinds)

    def write(name: str, n: int) -> Any:
        return lambda s: {
            "text": name,
            "least": -n,
            "bag": {n},
            "table": {"k": n, name: n},
            "total": n,
            "factor": n,
        }

    bodies = {name: write(name, i + 1) for i, name in enumerate("cab")}
    g = E.graph(state, bodies, *(f"START > {name}" for name in bodies))
    app = g.compile(checkpointer=E.saver())
    return look(E, app, {"text": "in", "least": 9, "factor": 2.0}), look(E, app, {"table": {}, "total": 1})


@program()
def overwrite_replaces_what_a_reducer_holds(E: Engine) -> Any:
    seen = []
    for value in (
        E.Overwrite(["new"]),
        {"__overwrite__": ["new"]},
        {"type": "__overwrite__", "value": ["new"]},
    ):
        g = E.graph(Log, {"a": say("a"), "b": update("log", value), "c": say("c")}, "START > a > b > c")
        seen.append(look(E, g.compile(checkpointer=E.saver()), {"log": ["in"]}))
    return seen


@program()
def overwrite_beside_other_writes(E: Engine) -> Any:
    def step(value: Any) -> Any:
        bodies = {"a": say("a"), "m": update("log", value), "z": say("z")}
        return E.graph(Log, bodies, *(f"START > {name}" for name in bodies)).compile(checkpointer=E.saver())

    one = look(E, step(E.Overwrite(["new"])), {"log": ["in"]})
    g = E.graph(Log, {n: update("log", E.Overwrite([n])) for n in "ab"}, "START > a", "START > b")
    return one, E.attempt(E.invoke, g.compile(), {"log": ["in"]})


@program()
def two_writers_of_one_plain_key(E: Engine) -> Any:
    state = TypedDict("S", {"x": str, "y": str})
    g = E.graph(state, {n: update("x", n) for n in "ab"}, "START > a", "START > b")
    app = g.compile(checkpointer=E.saver())
    error = E.attempt(E.invoke, app, {"x": "in"}, E.config())
    code = "INVALID_CONCURRENT_GRAPH_UPDATE" in str(error) and "'x'" in str(error)
    return error, code, E.rows(app.checkpointer, E.config())


@program()
def topics_with_and_without_memory(E: Engine) -> Any:
    keys = {
        "all": Annotated[list, E.Topic(str, accumulate=True)],
        "now": Annotated[list, E.Topic(str)],
        "log": Annotated[list, operator.add],
    }
    state = TypedDict("S", keys)

    def a(s: Any) -> Any:
        return {"all": ["a1", "a2"], "now": "a", "log": [dict(s)]}

    def b(s: Any) -> Any:
        return {"all": "b", "now": ["b1", "b2"], "log": [dict(s)]}

    def c(s: Any) -> Any:
        return {"log": [dict(s)]}

    app = E.graph(state, {"a": a, "b": b, "c": c}, "START > a", "START > b", "a > c").compile(checkpointer=E.saver())
    return look(E, app, {"all": "in", "now": "in"})


@program()
def channels_of_one_step(E: Engine) -> Any:
    keys = {
        "any": Annotated[str, E.AnyValue],
        "once": Annotated[str, E.EphemeralValue],
        "most": Annotated[str, E.EphemeralValue(str, guard=False)],
        "log": Annotated[list, operator.add],
    }
    state = TypedDict("S", keys)

    def see(name: str, **more: Any) -> Any:
        return lambda s: {"log": [(name, {k: v for k, v in sorted(s.items()) if k != "log"})], **more}

    bodies = {
        "a": see("a", any="a", most="a"),
        "b": see("b", any="b", once="b", most="b"),
        "c": see("c"),
        "d": see("d"),
    }
    app = E.graph(state, bodies, "START > a > c > d", "START > b").compile(checkpointer=E.saver())
    runs = look(E, app, {"once": "in", "any": "in"})
    clash = E.graph(state, {n: update("once", n) for n in "ab"}, "START > a", "START > b").compile()
    return runs, E.attempt(E.invoke, clash, {"log": []})


@program()
def untracked_values_are_not_stored(E: Engine) -> Any:
    state = TypedDict("S", {"secret": Annotated[str, E.UntrackedValue], "log": Annotated[list, operator.add]})

    def a(s: Any) -> Any:
        return {"log": ["a"], "secret": "s3"}

    def b(s: Any) -> Any:
        return {"log": ["b" + s.get("secret", "-")]}

    def c(s: Any) -> Any:
        return {"log": ["c" + s.get("secret", "-") + E.interrupt("?")]}

    app = E.graph(state, {"a": a, "b": b, "c": c}, "START > a > b > c").compile(checkpointer=E.saver())
    return look(E, app, {"log": [], "secret": "s1"}, E.Command(resume="!"))


@program()
def untracked_keys_inside_stored_sends(E: Engine) -> Any:
    state = TypedDict("S", {"secret": Annotated[str, E.UntrackedValue], "log": Annotated[list, operator.add]})

    def route(s: Any) -> Any:
        return [E.Send("w", {"secret": "s3", "k": 1})]

    def w(packet: Any) -> Any:
        return {"log": [sorted(packet)]}

    app = E.graph(state, {"a": say("a"), "w": w}, "START > a", ("a", route, ["w"])).compile(
        checkpointer=E.saver(), interrupt_before=["w"]
    )
    return look(E, app, {"log": []}, None)


@program()
def delta_channel_in_a_loop(E: Engine) -> Any:
    def fold(value: Any, writes: Any) -> Any:
        return [*(value or []), *(item for write in writes for item in write)]

    state = TypedDict("S", {"log": Annotated[list, E.DeltaChannel(fold)], "n": int})

    def a(s: Any) -> Any:
        return {"log": [f"a{len(s['log'])}"], "n": s.get("n", 0) + 1}

    def again(s: Any) -> str:
        return "a" if s["n"] % 3 else E.END

    app = E.graph(state, {"a": a}, "START > a", ("a", again, ["a", E.END])).compile(checkpointer=E.saver())
    runs = [E.invoke(app, {"log": [word]}, E.config()) for word in ("one", "two")]
    return runs, [(s.values, s.next) for s in E.history(app, E.config())]


@program()
def input_and_output_schemas(E: Engine) -> Any:
    state = TypedDict("State", {"question": str, "answer": str, "scratch": str})
    given, told = TypedDict("In", {"question": str}), TypedDict("Out", {"answer": str})

    def think(s: Any) -> Any:
        return {"scratch": sorted(s), "answer": "?", "unknown": 1}

    def say_it(s: Any) -> Any:
        return {"answer": s["question"] + s["answer"]}

    g = E.graph(state, {"think": think, "say": say_it}, "START > think > say", input_schema=given, output_schema=told)
    app = g.compile(checkpointer=E.saver())
    seen = look(E, app, {"question": "q", "scratch": "not an input", "other": 1})
    return (
        seen,
        E.invoke(app, {"question": "r"}, E.config()),
        E.attempt(E.invoke, app, {"scratch": 1}, E.config("2")),
    )


@program()
def private_channels_between_nodes(E: Engine) -> Any:
    private = TypedDict("Private", {"note": str, "log": Annotated[list, operator.add]})

    def a(s: Any) -> Any:
        return {"log": ["a"], "note": "psst"}

    def b(s: private) -> Any:  # type: ignore[valid-type]
        return {"log": ["b:" + s["note"]]}

    def c(s: Any) -> Any:
        return {"log": ["c:" + s.get("note", "nothing")]}

    app = E.graph(Log, {"a": a, "b": b, "c": c}, "START > a > b > c").compile(checkpointer=E.saver())
    return look(E, app, {"log": []}), E.invoke(app, {"log": []}, E.config("2"))


@program()
def node_with_its_own_input_schema(E: Engine) -> Any:
    part = TypedDict("Part", {"n": int})
    state = TypedDict("State", {"n": int, "m": int, "log": Annotated[list, operator.add]})

    def keys(s: Any) -> Any:
        return {"log": [sorted(s)]}

    bodies = {"part": (keys, {"input_schema": part}), "whole": keys}
    return look(
        E,
        E.graph(state, bodies, "START > part", "START > whole").compile(checkpointer=E.saver()),
        {"n": 1, "m": 2},
    )


@program()
def managed_values(E: Engine) -> Any:
    keys = {"log": Annotated[list, operator.add], "last": E.IsLastStep, "left": E.RemainingSteps}
    state = TypedDict("S", keys)

    def a(s: Any) -> Any:
        return {"log": [(s["left"], s["last"])]}

    def again(s: Any) -> str:
        return E.END if s["last"] or len(s["log"]) > 3 else "a"

    app = E.graph(state, {"a": a}, "START > a", ("a", again, ["a", E.END]), input_schema=Log, output_schema=Log)
    app = app.compile(checkpointer=E.saver())
    limits = [E.config(str(n)) | {"recursion_limit": n} for n in (2, 3, 4, 9)]
    return [E.attempt(E.invoke, app, {"log": []}, config) for config in limits], kept(E, app, E.config("3"))


@program()
def managed_values_are_refused_in_output(E: Engine) -> Any:
    state = TypedDict("S", {"log": list, "last": E.IsLastStep})
    return E.attempt(E.StateGraph, Log, output_schema=state), E.attempt(E.StateGraph, Log, input_schema=state)


class Order(pydantic.BaseModel):
    number: int
    note: str | None = None
    items: Annotated[list[str], operator.add] = []


@program()
def pydantic_state(E: Engine) -> Any:
    def a(s: Order) -> Any:
        return {"items": [type(s).__name__, type(s.number).__name__]}

    def b(s: Order) -> Any:
        return Order(number=s.number + 1, items=["b"])

    def c(s: Order) -> Any:
        return Order(number=s.number, note=None, items=[repr(s.note)])

    app = E.graph(Order, {"a": a, "b": b, "c": c}, "START > a > b > c").compile(checkpointer=E.saver())
    runs = [E.attempt(E.invoke, app, x, E.config(n)) for n, x in enumerate(({"number": "7"}, Order(number=1)))]
    wrong = [E.attempt(E.invoke, app, x, E.config("w")) for x in ({"number": "seven"}, {"note": "n"})]
    return look(E, app, {"number": 1}, config=E.config("look")), runs, wrong


@differs(
    "A value that breaks the schema fails the node that reads it; the thread can still be read",
    ours=lambda got: failed(got[0]) and [values["number"] for values in got[1][:-1]] == ["eight", 1],
    theirs=lambda got: failed(got[0]) and failed(got[1]),
)
def pydantic_state_is_read_checked_and_written_unchecked(E: Engine) -> Any:
    def a(s: Order) -> Any:
        return {"number": "eight"}

    app = E.graph(Order, {"a": a, "b": lambda s: {"note": "b"}}, "START > a > b").compile(checkpointer=E.saver())
    error = E.attempt(E.invoke, app, {"number": 1}, E.config())
    return error, E.attempt(lambda: [snapshot.values for snapshot in E.history(app, E.config())])


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0
    path: Annotated[list, operator.add] = dataclasses.field(default_factory=list)


@program()
def dataclass_state(E: Engine) -> Any:
    def a(s: Point) -> Any:
        return Point(x=s.x + 1, path=[(s.x, s.y)])

    def b(s: Any) -> Any:
        return {"y": 5, "path": [type(s).__name__]}

    app = E.graph(Point, {"a": a, "b": b}, "START > a > b").compile(checkpointer=E.saver())
    return look(E, app, Point(1, 1)), E.invoke(app, {"x": 3}, E.config("2"))


@program()
def root_state(E: Engine) -> Any:
    app = E.graph(Annotated[list, operator.add], {"a": lambda s: [len(s)], "b": lambda s: ["b"]}, "START > a > b")
    number = E.graph(int, {"a": lambda s: s + 1, "b": lambda s: s * 2}, "START > a > b").compile()
    seen = look(E, app.compile(checkpointer=E.saver()), ["in"])
    return seen, E.invoke(number, 3), E.stream(number, 3, stream_mode=["values", "updates"])


@program()
def what_a_node_may_return(E: Engine) -> Any:
    class Partial(pydantic.BaseModel):
        log: list = []
        extra: int = 1

    fine = [
        None,
        {},
        {"log": ["x"], "nobody": 1},
        Partial(log=["p"]),
        [E.Command(update={"log": ["c"]}), {"log": ["d"]}],
    ]
    wrong = ["text", 7, ["list"], ("tuple",)]
    results = []
    for value in [*fine, *wrong]:
        app = E.graph(Log, {"a": lambda s, value=value: value, "b": say("b")}, "START > a > b").compile()
        result = E.attempt(E.invoke, app, {"log": ["in"]})
        results.append((result, "INVALID_GRAPH_NODE_RETURN_VALUE" in str(result)))
    return results


@program()
def empty_inputs(E: Engine) -> Any:
    app = E.graph(Log, nodes("a"), "START > a").compile(checkpointer=E.saver())
    fresh = [E.attempt(E.invoke, app, x, E.config(str(n))) for n, x in enumerate((None, {}, {"nobody": 1}))]
    return fresh, [E.rows(app.checkpointer, E.config(str(n))) for n in range(3)]


@program()
def keys_without_a_value_are_absent(E: Engine) -> Any:
    state = TypedDict("S", {"x": int, "y": int, "log": Annotated[list, operator.add]})
    app = E.graph(state, {"a": lambda s: {"log": [sorted(s)]}}, "START > a").compile(checkpointer=E.saver())
    return look(E, app, {"x": None})


@differs(
    "A first Overwrite is unwrapped; the reference stores the wrapper itself",
    ours=lambda got: got == {"v": 5},
    theirs=lambda got: got["v"][0] == "Overwrite",
)
def overwrite_as_the_first_write(E: Engine) -> Any:
    class Ticket:
        def __init__(self, n: int) -> None:
            self.n = n

    state = TypedDict("S", {"v": Annotated[Ticket, smallest]})
    return E.invoke(E.graph(state, {"a": lambda s: {"v": E.Overwrite(5)}}, "START > a").compile(), {})


@differs(
    "A Send that a node returns is control only; the reference writes its attributes into equal keys",
    ours=lambda got: "node" not in got and "arg" not in got,
    theirs=lambda got: got["node"] == "b",
)
def bare_send_beside_keys_of_its_names(E: Engine) -> Any:
    state = TypedDict("S", {"log": Annotated[list, operator.add], "node": str, "arg": dict})
    app = E.graph(state, {"a": lambda s: E.Send("b", {"k": 1}), "b": say("b")}, "START > a").compile()
    return E.invoke(app, {"log": []})


@differs(
    "The error names the key and both nodes; reading the state afterwards does not raise",
    ours=lambda got: got == [True, True, True],
    theirs=lambda got: got[0] is False and got[2] is False,
)
def two_writers_are_named(E: Engine) -> Any:
    state = TypedDict("S", {"x": str})
    g = E.graph(state, {n: update("x", n) for n in ("north", "south")}, "START > north", "START > south")
    app = g.compile(checkpointer=E.saver())
    error = str(E.attempt(E.invoke, app, {"x": "in"}, E.config()))
    read = E.attempt(E.state, app, E.config())
    return "north" in error and "south" in error, "'x'" in error, not isinstance(read, Exception)


@differs(
    "What invoke returns is what the output keys hold at the end, not the last value that was streamed",
    ours=lambda got: got == {"log": ["a", "b"]},
    theirs=lambda got: got == {"log": ["a", "b"], "once": "gone"} or got == {"log": ["a", "b"]},
)
def invoke_returns_current_values(E: Engine) -> Any:
    state = TypedDict("S", {"once": Annotated[str, E.EphemeralValue], "log": Annotated[list, operator.add]})
    g = E.graph(state, {"a": say("a", once="gone"), "b": say("b")}, "START > a > b")
    return E.invoke(g.compile(), {"log": []})


@differs(
    "What a node changes in its input in place stays with the node: out of the caller's object, a sibling's "
    "input and the stored past",
    ours=lambda got: got == [["in"]] * 4,
    theirs=lambda got: got[0] == ["in", "MUT"],
)
def input_changed_in_place(E: Engine) -> Any:
    state = TypedDict("S", {"items": list, "out": str, "saw": list})

    def change(s: Any) -> Any:
        s["items"].append("MUT")
        return {"out": "x"}

    async def sibling(s: Any) -> Any:
        await E.sleep(0.02)
        return {"saw": list(s["items"])}

    g = E.graph(state, {"a": change, "b": sibling}, "START > a", "START > b")
    app = g.compile(checkpointer=E.saver())
    mine = ["in"]
    result = E.invoke(app, {"items": mine}, E.config())
    return mine, result["items"], result["saw"], E.state(app, E.config()).values["items"]
