"""A proof as one run on a GPU would leave it; no GPU was asked."""

from typing import Any

from engine_host.protocol.bench.proofs import DecodeSpeed, EqualAnswers, Proof, ProofVerdict, SelfTest


def proof(**update: Any) -> Proof:
    """A proof that holds, with some fields changed."""
    found = Proof(
        id="proof-1",
        at=1_795_348_800.0,
        gpu="NVIDIA GeForce RTX 3090",
        uuid="GPU-0",
        compute_capability="8.6",
        driver="580.1",
        vllm="0.32.0",
        installation="0.32.0-cuda",
        kernels="k1",
        kv_cache_dtype="turboquant_k8v4",
        verdict=ProofVerdict.RIGHT,
        self_test=SelfTest(passed=True, shapes=4, worst_error=1.8e-3),
        answers=EqualAnswers(equal=40, of=40, drafted=900, accepted=60),
        speed=DecodeSpeed(shape="128", ours=0.1, bf16=0.19, bf16_by="FLASH_ATTENTION", error=1.8e-3),
    )
    return found.model_copy(update=update)
