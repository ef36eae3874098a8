"""The bank's systems as the bot meets them: three that it asks, and one that moves money.

Every call appends a line to a file. The file is no part of any graph: after a crash it still tells how
often each system was really asked, and that is how the demo proves its claims.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

# Antifraud answers at once for these clients; for everybody else it is down today.
ANTIFRAUD_KNOWS = {"Vera", "Dora", "Emil"}
# Their refunds are paid at once, and the receipt comes this many seconds later.
LATE_RECEIPTS = {"Dora": 30.0, "Emil": 2.0}


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
        """Pay the amount back and return the receipt's number. This bank pays as often as it is told to."""
        self._note("refund", client, key)
        time.sleep(LATE_RECEIPTS.get(client, 0.0))
        return f"R-{amount}"

    def take_back(self, client: str, key: str) -> None:
        """Undo a refund."""
        self._note("take_back", client, key)

    def voucher(self, client: str) -> None:
        """Send a voucher to say sorry."""
        self._note("voucher", client)

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
