"""Proofs of the TurboQuant kernels as this machine keeps them, and which of them still hold."""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

from engine_host.core.store import Store
from engine_host.protocol.bench.proofs import Proof
from engine_host.protocol.host import Gpu

_KIND = "kernel proof"
_KEPT = 200


@dataclass(frozen=True)
class Circumstances:
    """The circumstances of a start: a GPU with its driver, vLLM's version and the type of the KV cache."""

    gpu: Gpu
    driver: str
    vllm: str
    kv_cache_dtype: str


@dataclass(frozen=True)
class KernelProofs:
    """The kept proofs; `kernels` tells the hash of the kernels as they are now."""

    store: Store
    kernels: Callable[[], str]

    def keep(self, proof: Proof) -> None:
        """Remember one. Raises HostError when the database cannot be used."""
        self.store.put(_KIND, proof.id, proof.at, proof.model_dump_json())
        self.store.prune(_KIND, _KEPT)

    def all(self, driver: str) -> list[Proof]:
        """Every proof, newest first, each with what changed since. Raises HostError, OSError."""
        kernels = self.kernels()
        return [_judged(one, driver, kernels) for one in self._kept()]

    def of(self, asked: Circumstances) -> Proof | None:
        """The proof that holds, else the newest of this GPU and type with what changed since; None without.

        Raises HostError, OSError.
        """
        gpu, kernels = asked.gpu, None
        newest = None
        for one in self._kept():
            if (one.gpu, one.compute_capability) != (gpu.name, gpu.compute_capability or ""):
                continue
            if one.kv_cache_dtype != asked.kv_cache_dtype:
                continue
            kernels = kernels or self.kernels()
            judged = _judged(one, asked.driver, kernels)
            if not judged.stale and one.vllm == asked.vllm:
                return judged
            if newest is None:
                other = f"it was with vLLM {one.vllm}" if one.vllm != asked.vllm else judged.stale
                newest = judged.model_copy(update={"stale": other})
        return newest

    def _kept(self) -> list[Proof]:
        found = []
        for body in self.store.newest(_KIND, _KEPT):
            try:
                found.append(Proof.model_validate_json(body))
            except ValidationError:
                continue  # Of another version of this program.
        return found


def _judged(proof: Proof, driver: str, kernels: str) -> Proof:
    if driver and proof.driver != driver:
        return proof.model_copy(update={"stale": f"the driver was {proof.driver}"})
    if proof.kernels != kernels:
        return proof.model_copy(update={"stale": "the kernels have changed"})
    return proof.model_copy(update={"stale": ""})
