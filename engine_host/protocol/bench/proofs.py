"""Proofs of the TurboQuant kernels on one GPU: what was compared there, and what came out."""

import shlex
from enum import StrEnum

from pydantic import Field

from engine_host.protocol.base import Command, Page, Seconds, Wire
from engine_host.protocol.language.spoken import Sentence, Spoken


class ProveKernels(Command):
    """Prove the kernels on one GPU: by its UUID or number, else the one with the most free memory."""

    gpu: str | None = None
    installation: str | None = Field(None, description="which vLLM; the newest for CUDA when absent")
    kv_cache_dtype: str = Field("turboquant_k8v4", pattern="^turboquant_(k8v4|4bit_nc)$")

    @property
    def command(self) -> str:
        """The command of the command line that does the same."""
        words = ["sndr", "prove"]
        usual = type(self)()
        for name in type(self).model_fields:
            value = getattr(self, name)
            if value != getattr(usual, name):
                words += [f"--{name.replace('_', '-')}", value]
        return shlex.join(words)


class ProofVerdict(StrEnum):
    """The outcome of a proof; `undecided` when a part could not be run."""

    RIGHT = "right"
    WRONG = "wrong"
    UNDECIDED = "undecided"


class SelfTest(Spoken):
    """Every kernel beside float64: the largest relative error, and rows that depend on those beside them."""

    passed: bool
    shapes: int
    worst_error: float | None = Field(None, description="None when an answer was no number")
    rows_that_differ: int = 0
    kernels: str = Field("", description="which were tested: for Hopper, for every GPU, or both")
    why: Sentence = ""


class EqualAnswers(Wire):
    """Answers with MTP on beside those with MTP off, token by token, in batch-invariant mode."""

    equal: int
    of: int
    drafted: int = 0
    accepted: int = 0
    differing: tuple[str, ...] = Field((), description="which prompt, from which token")
    kernels: str = Field("", description="as the engine with MTP told them; an older proof has none")

    @property
    def passed(self) -> bool:
        """True if all are equal, there were any, and some drafts were taken."""
        return 0 < self.of == self.equal and self.accepted > 0


class DecodeSpeed(Wire):
    """Milliseconds of attention over one cache, ours and in bf16, medians; `error` against float64."""

    shape: str
    ours: float
    bf16: float | None = None
    bf16_by: str = ""
    error: float | None = None

    @property
    def times_bf16(self) -> float | None:
        """The factor over bf16; None when that was not measured."""
        return self.bf16 / self.ours if self.bf16 and self.ours > 0 else None


class Proof(Spoken):
    """One proof and the circumstances it holds for: this GPU, driver, vLLM, KV type and these kernels."""

    id: str
    at: Seconds
    gpu: str
    uuid: str
    compute_capability: str
    driver: str
    vllm: str
    installation: str
    kernels: str = Field(description="hash of the kernels' files")
    kv_cache_dtype: str
    verdict: ProofVerdict
    self_test: SelfTest | None = None
    answers: EqualAnswers | None = None
    speed: DecodeSpeed | None = None
    why: Sentence = Field("", description="what was wrong, or could not be run")
    seconds: float = 0.0
    command: str = ""
    stale: str = Field("", description="what changed since; empty while it holds")

    def summary(self) -> str:
        """The figures in a line: self-test, answers, speed."""
        parts = []
        if self.self_test is not None:
            parts.append(f"self-test {'ok' if self.self_test.passed else 'wrong'}")
        if self.answers is not None:
            parts.append(f"{self.answers.equal} of {self.answers.of} answers equal")
        if self.speed is not None and self.speed.times_bf16 is not None:
            parts.append(f"{self.speed.times_bf16:.1f} × bf16")
        return ", ".join(parts)


class ProofPage(Page):
    """The proofs of this machine, newest first."""

    seq: int
    proofs: tuple[Proof, ...]
