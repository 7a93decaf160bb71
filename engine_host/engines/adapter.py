"""The interface of an engine adapter, as the manager uses it."""

from collections.abc import Sequence
from typing import Protocol

import httpx

from engine_host.core.outside import answers
from engine_host.engines.readiness import READ_SECONDS
from engine_host.engines.served_lines import ServedLines
from engine_host.engines.stage_reader import StageReader
from engine_host.protocol.engines import Readings, Verification
from engine_host.protocol.errors import Problem
from engine_host.protocol.launch.plans import LaunchPlan

_MOST_BYTES = 1 << 20


class Adapter(Protocol):
    """One kind of engine: how to read, verify and explain it; processes are the manager's."""

    @property
    def name(self) -> str:
        """The name of the engine in plans."""

    @property
    def stripped_environment(self) -> tuple[str, ...]:
        """Beginnings of variables that must not reach the engine: they would change it behind the plan."""

    @property
    def stops_by_leader(self) -> bool:
        """True if only its first process is signalled to end, because it ends the others in order."""

    @property
    def served_lines(self) -> ServedLines:
        """The lines of its log that are written down once requests may come."""

    def stage_reader(self) -> StageReader:
        """A reader for one start."""

    def is_noise(self, line: str) -> bool:
        """Return True for a log line that only answers our own polling."""

    async def healthy(self, client: httpx.AsyncClient) -> bool:
        """Return True if the engine can answer; False while it loads or does not listen yet."""
        try:
            answer = await answers.fetch(client, "/health", most=_MOST_BYTES, seconds=READ_SECONDS)
        except (httpx.TransportError, answers.AnswerError):
            return False
        return answer.status == httpx.codes.OK

    async def verify(self, client: httpx.AsyncClient, plan: LaunchPlan, began: float) -> Verification:
        """Prove that it answers as the plan says. Raises HostError(engine_not_ready), httpx.HTTPError."""

    async def read(self, client: httpx.AsyncClient) -> Readings:
        """Read the engine's metrics. Raises httpx.HTTPError when it does not answer."""

    def explain_exit(self, code: int | None, tail: Sequence[str], plan: LaunchPlan) -> Problem:
        """Why the engine ended by itself, from its exit code and its last lines."""
