"""Profiles of vLLM's steps, recorded through its own profiler."""

import shlex

from pydantic import Field

from engine_host.protocol.base import Command, Seconds, Share, Wire

USUAL_STEPS = 32


class ProfileEngine(Command):
    """A profile of an engine of vLLM by its name or id, the only one where none is named."""

    engine: str | None = None
    steps: int = Field(USUAL_STEPS, ge=1, le=512, description="decode steps that are recorded")

    @property
    def command(self) -> str:
        """The command line that does the same."""
        named = [] if self.engine is None else [self.engine]
        steps = [] if self.steps == USUAL_STEPS else ["--steps", str(self.steps)]
        return shlex.join(["sndr", "bench", "profile", *named, *steps])


class KernelTime(Wire):
    """A kernel, or on a processor an operation without those inside it: milliseconds and calls a step."""

    name: str
    ms: float
    calls: float
    share: Share


class ProfileReport(Wire):
    """A profile: where the time of a step goes. `busy_ms` are those in which anything of it ran.

    Recording slows a step down, so that its milliseconds are no speed; what counts are the shares.
    """

    engine: str
    name: str
    started_at: Seconds
    steps: int
    of: str = Field(description="kernels of the GPU, or operations of the processor")
    busy_ms: float
    kernels: tuple[KernelTime, ...]
    trace: str = Field(description="the Chrome trace, a file of the host's machine")
    command: str


class TraceSummary(Wire):
    """The kernels of one trace, as the process that reads it says."""

    of: str
    busy_ms: float
    kernels: tuple[KernelTime, ...]
