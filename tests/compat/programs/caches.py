"""Results that a cache answers for."""

import operator
from typing import Annotated, Any, TypedDict

from compat.registry import MODES, Log, differs, look, nodes, program, say
from harness.engine import Boom, Engine


class Numbers(TypedDict):
    log: Annotated[list, operator.add]
    n: int


def counted(runs: list[Any], body: Any) -> Any:
    """A node that notes each of its runs."""

    def counted_body(state: Any) -> Any:
        runs.append(1)
        return body(state)

    return counted_body


def cached(E: Engine, body: Any, **policy: Any) -> tuple[Any, dict[str, Any]]:
    return body, {"cache_policy": E.CachePolicy(**policy)}


@program()
def a_hit_in_every_mode(E: Engine) -> Any:
    runs: list[Any] = []
    bodies = {"a": cached(E, counted(runs, say("a"))), **nodes("bc")}
    app = E.graph(Log, bodies, "START > a > b", "a > c").compile(cache=E.InMemoryCache(), checkpointer=E.saver())
    return [look(E, app, {"log": ["in"]}, config=E.config(thread)) for thread in "abc"], runs


@program()
def hits_and_misses_side_by_side(E: Engine) -> Any:
    runs: list[Any] = []
    work = counted(runs, lambda s: {"log": [s["n"]]})
    g = E.graph(Numbers, {"work": cached(E, work)}, ("START", lambda s: [E.Send("work", {"n": k}) for k in s["log"]]))
    app, seen = g.compile(cache=E.InMemoryCache(), checkpointer=E.saver()), []
    for thread, numbers in (("a", [1]), ("b", [1, 2]), ("c", [2, 3, 1])):
        seen.append(look(E, app, {"log": numbers, "n": 0}, config=E.config(thread)))
    return seen, len(runs)


@program()
def control_of_a_hit(E: Engine) -> Any:
    bodies = {
        "a": cached(E, lambda s: E.Command(update={"log": ["a"]}, goto="c")),
        "r": cached(E, say("r")),
        **nodes("bcd"),
    }
    g = E.graph(Log, bodies, "START > a > b", "START > r", ("r", lambda s: ["d", "c"], ["c", "d"]))
    app = g.compile(cache=E.InMemoryCache())
    return [E.stream(app, {"log": ["in"]}, stream_mode=["updates", "values"]) for _ in range(2)]


@program()
def nothing_written(E: Engine) -> Any:
    runs: list[Any] = []
    app = E.graph(Log, {"a": cached(E, counted(runs, lambda s: None))}, "START > a").compile(cache=E.InMemoryCache())
    return [E.stream(app, {"log": ["in"]}, stream_mode=["updates", "values", "tasks"]) for _ in range(2)], runs


@program()
def failures(E: Engine) -> Any:
    runs: list[Any] = []

    def fails_once(state: Any) -> Any:
        runs.append(1)
        if len(runs) == 1:
            raise Boom("no")
        return {"log": ["done"]}

    app = E.graph(Log, {"a": cached(E, fails_once)}, "START > a").compile(cache=E.InMemoryCache())
    return [E.attempt(E.stream, app, {"log": []}, stream_mode=MODES) for _ in range(3)], runs


@program()
def keys_of_ones_own(E: Engine) -> Any:
    runs: list[Any] = []
    body = cached(E, counted(runs, say("a")), key_func=lambda s: str(len(s["log"])), ttl=60)
    app = E.graph(Log, {"a": body}, "START > a").compile(cache=E.InMemoryCache())
    return [E.invoke(app, {"log": log}) for log in (["x"], ["y"], ["x", "y"])], runs


@program()
def cleared(E: Engine) -> Any:
    runs: list[Any] = []
    app = E.graph(Log, {"a": cached(E, counted(runs, say("a")))}, "START > a").compile(cache=E.InMemoryCache())
    seen = []
    for nodes_ in ((), (["a"],), (None,)):
        for _ in range(2):
            E.invoke(app, {"log": []})
        seen.append(len(runs))
        E.wait(app.aclear_cache(*nodes_)) if E.is_async else app.clear_cache(*nodes_)
    bare = E.graph(Log, nodes("a"), "START > a").compile()
    return seen, type(E.attempt(bare.clear_cache)).__name__


@program()
def in_a_file(E: Engine) -> Any:
    runs: list[Any] = []
    g = E.graph(Log, {"a": cached(E, counted(runs, say("a", {"k": (1,)})))}, "START > a")
    path = E.file("cache.sqlite")
    return [E.invoke(g.compile(cache=E.SqliteCache(path=path)), {"log": []}) for _ in range(2)], runs


@program()
def tasks_of_an_entrypoint(E: Engine) -> Any:
    runs: list[Any] = []

    def double(x: int) -> int:
        runs.append(x)
        return 2 * x

    async def adouble(x: int) -> int:
        return double(x)

    doubled = E.task(name="double", cache_policy=E.CachePolicy())(adouble if E.is_async else double)

    async def aflow(numbers: list[int]) -> list[int]:
        return [await doubled(n) for n in numbers]

    def flow(numbers: list[int]) -> list[int]:
        return [doubled(n).result() for n in numbers]

    cache = E.InMemoryCache()
    app = E.entrypoint(checkpointer=E.saver(), cache=cache)(aflow if E.is_async else flow)
    seen = [look(E, app, numbers, config=E.config(str(numbers))) for numbers in ([1, 2], [2, 1, 3])]
    E.wait(doubled.aclear_cache(cache)) if E.is_async else doubled.clear_cache(cache)
    return seen, E.invoke(app, [1], E.config("last")), runs


@program()
def an_entrypoint_itself(E: Engine) -> Any:
    runs: list[Any] = []

    def flow(x: int, *, previous: Any = None) -> Any:
        runs.append(x)
        return x + (previous or 0)

    app = E.entrypoint(checkpointer=E.saver(), cache=E.InMemoryCache(), cache_policy=E.CachePolicy())(E.node(flow))
    return [look(E, app, 1, config=E.config(thread)) for thread in ("a", "a", "b")], runs


@differs(
    "A result that took somebody's answer is not served to others: they are asked themselves.",
    ours={"log": ["no"]},
    theirs={"log": ["yes"]},
)
def a_node_that_asks(E: Engine) -> Any:
    app = E.graph(Log, {"a": cached(E, lambda s: {"log": [E.interrupt("sure?")]})}, "START > a")
    app = app.compile(cache=E.InMemoryCache(), checkpointer=E.saver())
    for thread, answer in (("a", "yes"), ("b", "no")):
        E.invoke(app, {"log": []}, E.config(thread))
        E.attempt(E.invoke, app, E.Command(resume=answer), E.config(thread))
    return E.state(app, E.config("b")).values


@differs(
    "Tasks of a step with equal inputs are all answered by the cache, not one of them.",
    ours=1,
    theirs=lambda runs: runs > 1,
)
def equal_inputs_in_one_step(E: Engine) -> Any:
    runs: list[Any] = []
    work = counted(runs, lambda s: {"log": [s["n"]]})
    g = E.graph(Numbers, {"work": cached(E, work)}, ("START", lambda s: [E.Send("work", {"n": k}) for k in s["log"]]))
    app = g.compile(cache=E.InMemoryCache())
    E.invoke(app, {"log": [1], "n": 0})
    E.invoke(app, {"log": [1, 1, 1], "n": 0})
    return len(runs)


def closure(word: str) -> Any:
    def node(state: Any) -> Any:
        return {"log": [word]}

    return node


@differs(
    "Closures of one factory don't find each other's results.",
    ours=[{"log": ["a"]}, {"log": ["b"]}],
    theirs=[{"log": ["a"]}, {"log": ["a"]}],
    drivers=("sync",),
)
def closures_of_one_factory(E: Engine) -> Any:
    cache = E.InMemoryCache()
    apps = [E.graph(Log, {"n": cached(E, closure(word))}, "START > n").compile(cache=cache) for word in "ab"]
    return [E.invoke(app, {"log": []}) for app in apps]


@differs("Graphs inside use the cache of the graph around them.", ours=1, theirs=2)
def a_graph_inside_without_a_cache_of_its_own(E: Engine) -> Any:
    runs: list[Any] = []
    inner = E.graph(Log, {"a": cached(E, counted(runs, say("a")))}, "START > a").compile()
    app = E.graph(Log, {"g": inner}, "START > g").compile(cache=E.InMemoryCache())
    for _ in range(2):
        E.invoke(app, {"log": []})
    return len(runs)


@differs(
    "A cache that fails costs time, not the run.",
    ours={"log": ["a"]},
    theirs=lambda got: got[0] == "error",
)
def a_cache_that_fails(E: Engine) -> Any:
    class Broken(E.InMemoryCache):  # type: ignore[misc, name-defined]
        def get(self, keys: Any) -> Any:
            raise Boom("no")

        async def aget(self, keys: Any) -> Any:
            raise Boom("no")

    app = E.graph(Log, {"a": cached(E, say("a"))}, "START > a").compile(cache=Broken())
    return E.attempt(E.invoke, app, {"log": []})
