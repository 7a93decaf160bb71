"""`sndr prove` against a host of canned answers."""

from collections.abc import Callable

from engine_host.protocol.bench.proofs import ProofVerdict
from tests.unit.cli.fake_host import FakeHost
from tests.unit.launch.proofs import proof

Sndr = Callable[..., tuple[int, str, str]]


def job(**update: object) -> tuple[int, dict[str, object]]:
    found = {
        "id": "job-1",
        "kind": "kernel.proof",
        "title": "Prove",
        "touches": "x",
        "state": "done",
        "created_at": 1.0,
        "result": proof(**update).model_dump(mode="json"),
    }
    return 202, found


def test_a_proof_tells_its_figures(host: FakeHost, sndr: Sndr) -> None:
    host.answers["POST /v1/proofs"] = job()
    code, out, _ = sndr("prove", "--gpu", "GPU-0")
    assert code == 0
    assert "RIGHT on NVIDIA GeForce RTX 3090, driver 580.1, vLLM 0.32.0, turboquant_k8v4" in out
    assert "40 of 40 equal, 60 of 900 drafts taken" in out
    assert "0.100 ms, bf16 0.190 ms (FLASH_ATTENTION), 1.90 × as fast" in out
    body = next(body for name, _, body in host.received if name == "POST /v1/proofs")
    assert body == {"gpu": "GPU-0", "kv_cache_dtype": "turboquant_k8v4"}


def test_wrong_kernels_have_an_exit_code_of_their_own(host: FakeHost, sndr: Sndr) -> None:
    host.answers["POST /v1/proofs"] = job(verdict=ProofVerdict.WRONG, why="off by \x1b[31m0.5", speed=None)
    code, out, _ = sndr("prove")
    assert code == 5
    assert "off by" in out
    assert "\x1b" not in out


def test_the_list_says_what_holds(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/proofs"] = (200, {"seq": 0, "proofs": []})
    assert "sndr prove" in sndr("prove", "--list")[1]
    kept = [proof(stale="the kernels have changed"), proof()]
    host.answers["GET /v1/proofs"] = (
        200,
        {"seq": 0, "proofs": [one.model_dump(mode="json") for one in kept]},
    )
    code, out, _ = sndr("prove", "--list")
    assert code == 0
    assert "the kernels have changed" in out
    assert out.splitlines()[2].endswith("holds")
