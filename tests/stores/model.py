"""What a store does, in the plainest words: a list of items, gone through from one end to the other."""

from __future__ import annotations

from typing import Any

from surestep.store.base import GetOp, ListNamespacesOp, Op, PutOp, SearchOp


class Model:
    """Items as (namespace, key, value), the last written at the end."""

    def __init__(self) -> None:
        self.items: list[tuple[tuple[str, ...], str, dict[str, Any]]] = []

    def batch(self, ops: list[Op]) -> list[Any]:
        results = [self.read(op) for op in ops]
        last = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        self.items = [item for item in self.items if item[:2] not in last]
        for (namespace, key), op in sorted(last.items(), key=lambda entry: (".".join(entry[0][0]), entry[0][1])):
            if op.value is not None:
                self.items.append((namespace, key, dict(op.value)))
        return results

    def read(self, op: Op) -> Any:
        if isinstance(op, GetOp):
            return next((value for ns, key, value in self.items if (ns, key) == (op.namespace, op.key)), None)
        if isinstance(op, SearchOp):
            size = len(op.namespace_prefix)
            below = [item for item in self.items[::-1] if item[0][:size] == op.namespace_prefix]
            found = [item for item in below if all(holds(item[2], *part) for part in (op.filter or {}).items())]
            return found[op.offset :][: op.limit]
        if isinstance(op, ListNamespacesOp):
            found = {ns for ns, _, _ in self.items if all(fits(ns, *c) for c in op.match_conditions or ())}
            cut = sorted({ns[: op.max_depth] for ns in found})
            return cut[op.offset :][: op.limit]
        return None


def fits(namespace: tuple[str, ...], end: str, pattern: tuple[str, ...]) -> bool:
    if end == "suffix":
        namespace, pattern = namespace[::-1], pattern[::-1]
    return len(pattern) <= len(namespace) and all(p in ("*", n) for p, n in zip(pattern, namespace, strict=False))


def field_of(value: dict[str, Any], field: str) -> Any:
    if field in value:
        return value[field]
    found: Any = value
    for label in field.split("."):
        found = found[label] if isinstance(found, dict) and label in found else None
    return found


def holds(value: dict[str, Any], field: str, wanted: Any) -> bool:
    found = field_of(value, field)
    if not isinstance(wanted, dict):
        return bool(found == wanted)
    if not any(name.startswith("$") for name in wanted):
        return isinstance(found, dict) and all(holds(found, *part) for part in wanted.items())
    return all(compares(found, name[1:], operand) for name, operand in wanted.items())


def compares(found: Any, name: str, operand: Any) -> bool:
    if name in ("eq", "ne"):
        return bool((found == operand) == (name == "eq"))
    number = isinstance(found, int | float) and isinstance(operand, int | float)
    if not number and not (isinstance(found, str) and isinstance(operand, str)):
        return False
    more, same = found > operand, found == operand
    return bool({"gt": more, "gte": more or same, "lt": not (more or same), "lte": not more}[name])
