"""A language model from a script, so that the demo needs no key and no network.

A real one goes here: the graph only needs the two functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


def read_amount(complaint: str) -> int:
    """The sum that the client wants back, in whole euros; 0 when none is named."""
    found = re.search(r"\d+", complaint)
    return int(found.group()) if found else 0


def write_reply(client: str, amount: int, outcome: Mapping[str, str]) -> str:
    """What the client gets to read at the end."""
    if "receipt" in outcome:
        return f"{client}, we have paid {amount} back, receipt {outcome['receipt']}."
    return f"{client}, we cannot refund {amount}: {outcome['declined']}."
