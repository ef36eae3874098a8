"""The bank's systems as the bot meets them: three that it asks, one that pays.

Every call appends a line to a file. The file is no part of any graph: after a crash it still tells how
often each system was really asked, and that is how the demo proves its claims.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

# Antifraud answers at once for these clients; for everybody else it is down today.
ANTIFRAUD_KNOWS = {"Vera"}


@dataclass(frozen=True)
class Bank:
    """The way to the bank's systems; `ledger` is the file in which every call is noted."""

    ledger: Path

    def limits(self, client: str) -> str:
        """What the client's card may spend today."""
        self._note("limits", client)
        return "card limit 5000 a day, not exceeded"

    def history(self, client: str) -> str:
        """What the client asked for before."""
        self._note("history", client)
        return "two complaints in a year, both justified"

    async def antifraud(self, client: str) -> str:
        """The verdict on the client's last payments. Takes half a second, or never answers."""
        self._note("antifraud", client)
        await asyncio.sleep(0.5 if client in ANTIFRAUD_KNOWS else 3600)
        return "no suspicion"

    def refund(self, client: str, amount: int, key: str) -> str:
        """Pay the amount back and return the receipt's number. One key is paid once, however often it comes."""
        if ["refund", client, key] not in self._notes():
            self._note("refund", client, key)
        return f"R-{amount}-{key}"

    def calls(self, client: str) -> Counter[str]:
        """How often each system was called for this client."""
        return Counter(system for system, whom, *_ in self._notes() if whom == client)

    def _notes(self) -> list[list[str]]:
        return [line.split() for line in self.ledger.read_text().splitlines()] if self.ledger.exists() else []

    def _note(self, *words: str) -> None:
        # One write to a file opened for appending: it is there even if the process dies right after it.
        ledger = os.open(self.ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(ledger, f"{' '.join(words)}\n".encode())
        finally:
            os.close(ledger)
