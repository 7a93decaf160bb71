"""Thousands of exchanges at once, what came of each, and how long a good question took meanwhile."""

import asyncio
import random
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tests.hostile import asked
from tests.hostile.http.answers import Judge
from tests.hostile.http.cases.case import Case, Kinds, choose
from tests.hostile.http.exchange import Outcome, carry_out

AT_ONCE = 24


@dataclass
class Tally:
    """What came of every exchange."""

    by_kind: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    faults: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def add(self, number: int, kind: str, case: Case, outcome: Outcome) -> None:
        """Count one; what is wrong is kept with what shows it."""
        self.by_kind[kind][outcome.result] += 1
        if outcome.fault:
            got = f"    got {outcome.received[:300]!r}"
            self.faults.append(f"{number} {kind}: {outcome.fault}\n    sent {case.shown()}\n{got}")

    def table(self) -> str:
        """Return one line for each kind of exchange."""
        results = sorted({result for counts in self.by_kind.values() for result in counts})
        lines = [f"{'kind':<18}{'all':>7}" + "".join(f"{result:>8}" for result in results)]
        for kind, counts in (*sorted(self.by_kind.items()), ("all", sum(self.by_kind.values(), Counter()))):
            figures = "".join(f"{counts[result] or '':>8}" for result in results)
            lines.append(f"{kind:<18}{counts.total():>7}{figures}")
        return "\n".join(lines)


async def fuzz(
    address: int | str, kinds: Kinds, numbers: range, tally: Tally, judge: Judge, question: Case
) -> None:
    """Carry out the exchanges with these numbers; each follows from the seed and its number alone.

    Meanwhile `question` is asked again and again, so that what holds up everybody is seen.
    """
    left, done = iter(numbers), asyncio.Event()

    async def client() -> None:
        for number in left:
            kind, case = choose(kinds, random.Random(f"{asked.fuzz_seed()}/{number}"))
            tally.add(number, kind, case, await carry_out(address, case, judge))

    async def ask_meanwhile() -> None:
        while not done.is_set():
            began = time.monotonic()
            outcome = await carry_out(address, question, judge)
            tally.waits.append(time.monotonic() - began)
            tally.add(-1, "asked meanwhile", question, outcome)
            await asyncio.sleep(0.05)

    asking = asyncio.create_task(ask_meanwhile())
    await asyncio.gather(*(client() for _ in range(AT_ONCE)))
    done.set()
    await asking
