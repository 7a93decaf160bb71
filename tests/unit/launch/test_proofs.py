"""Proofs are kept, and hold for one GPU, driver, vLLM, KV type and for these kernels."""

from pathlib import Path

from engine_host.core.store import Store
from engine_host.launch.proofs import Circumstances, KernelProofs
from tests.unit.launch.proofs import proof
from tests.unit.launch.vllm_desk import gpu

CARD = gpu(0).model_copy(update={"name": "NVIDIA GeForce RTX 3090", "compute_capability": "8.6"})


def asked(vllm: str = "0.32.0", driver: str = "580.1", kind: str = "turboquant_k8v4") -> Circumstances:
    return Circumstances(CARD, driver, vllm, kind)


def test_a_proof_holds_until_driver_vllm_or_kernels_change(home: Path) -> None:
    store, kernels = Store(home / "s.db"), ["k1"]
    proofs = KernelProofs(store, lambda: kernels[0])
    assert proofs.of(asked()) is None
    proofs.keep(proof())
    found = proofs.of(asked())
    assert found is not None
    assert found.stale == ""
    assert proofs.of(asked(kind="turboquant_4bit_nc")) is None
    other = proofs.of(asked(driver="590.2"))
    assert other is not None
    assert other.stale == "the driver was 580.1"
    newer = proofs.of(asked(vllm="0.33.0"))
    assert newer is not None
    assert newer.stale == "it was with vLLM 0.32.0"
    kernels[0] = "k2"
    changed = proofs.of(asked())
    assert changed is not None
    assert changed.stale == "the kernels have changed"
    # One that holds is taken before a newer one that does not.
    proofs.keep(proof(id="proof-2", kernels="k2", at=1.0))
    found = proofs.of(asked())
    assert found is not None
    assert (found.id, found.stale) == ("proof-2", "")
    assert [one.stale for one in proofs.all("580.1")] == ["the kernels have changed", ""]
    store.close()


def test_what_another_version_or_a_stranger_wrote_is_passed_over(home: Path) -> None:
    store = Store(home / "s.db")
    for number, body in enumerate(("", "[]", '{"id": 1}', "\x00", '{"at": 1e400}')):
        store.put("kernel proof", str(number), float(number), body)
    proofs = KernelProofs(store, lambda: "k1")
    assert proofs.of(asked()) is None
    assert proofs.all("") == []
    store.close()
