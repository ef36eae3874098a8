"""Names of entries as one text, so that no two entries have the same."""

from __future__ import annotations

from collections.abc import Iterable


def joined(labels: Iterable[str], separator: str) -> str:
    """The labels with the separator between them. Labels without it, without "%" and not empty look as they
    do in LangGraph's caches; in others those are escaped."""
    return separator.join(_escaped(label, separator) for label in labels)


def _escaped(label: str, separator: str) -> str:
    if not label:
        return "%"
    return label.replace("%", "%25").replace(separator, f"%{ord(separator):02X}")
