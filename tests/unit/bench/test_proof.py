"""The parts of a proof are judged one by one; the engine that answers here is a fake."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine_host.bench.proof import PATCH, Answered, ask, compared, judged, start
from engine_host.core.errors import HostError
from engine_host.engines.temporary import TemporaryEngine
from engine_host.protocol.bench.proofs import ProofVerdict, SelfTest
from engine_host.protocol.patches import PlannedPatches
from tests.plan_samples import vllm_plan
from tests.unit.asynchronous import run
from tests.unit.launch.proofs import proof
from tests.unit.launch.vllm_desk import Desk, after, gpu
from tests.unit.library.checkpoints import checkpoint, tensors

COUNTERS = "vllm:spec_decode_num_draft_tokens_total 30.0\nvllm:spec_decode_num_accepted_tokens_total 3.0\n"
GOOD = SelfTest(passed=True, shapes=4, worst_error=1e-3)
ALIKE = compared(Answered([[1], [2]], 9, 3), Answered([[1], [2]]))


def engine(answer: Any, counters: str = COUNTERS) -> TemporaryEngine:
    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/metrics":
            return httpx.Response(200, text=counters)
        prompt = json.loads(request.content)["prompt"]
        return httpx.Response(200, content=answer(prompt) if callable(answer) else answer)

    client = httpx.AsyncClient(transport=httpx.MockTransport(handler), base_url="http://engine")
    return TemporaryEngine(vllm_plan(), client, 1.0, Path("/none"))


def test_answers_are_compared_token_by_token() -> None:
    def answer(prompt: list[int]) -> bytes:
        return json.dumps({"choices": [{"token_ids": [len(prompt), prompt[0]]}]}).encode()

    told: list[int] = []
    first = run(ask(engine(answer), told.append))
    assert len(first.tokens) == 40
    assert (first.drafted, first.accepted) == (30, 3)
    assert told[-1] == 40
    equal = compared(first, first)
    assert (equal.equal, equal.of, equal.passed) == (40, 40, True)
    others = Answered([*first.tokens[:-1], [first.tokens[-1][0], -1]])
    wrong = compared(first, others)
    assert (wrong.equal, wrong.passed, wrong.differing) == (39, False, ("39 from token 1",))


@pytest.mark.parametrize(
    "said",
    [b"", b"\xff{", b"[]", b'{"choices": []}', b'{"choices": [{"token_ids": ["x"]}]}', b'{"choices": 1}'],
)
def test_an_engine_that_answers_otherwise_ends_the_part_with_a_reason(said: bytes) -> None:
    with pytest.raises(HostError) as raised:
        run(ask(engine(said)))
    assert raised.value.reason == "engine_not_ready"


def test_the_verdict_needs_both_and_taken_drafts() -> None:
    assert judged(GOOD, ALIKE, ()) == (ProofVerdict.RIGHT, "")
    wrong = SelfTest(passed=False, shapes=4, why="k8v4 off by 0.5")
    assert judged(wrong, None, ()) == (ProofVerdict.WRONG, "the self-test failed: k8v4 off by 0.5")
    other = compared(Answered([[1], [2]], 9, 3), Answered([[1], [3]]))
    assert judged(GOOD, other, ())[0] is ProofVerdict.WRONG
    assert "1 of 2 answers" in judged(GOOD, other, ())[1]
    undrafted = compared(Answered([[1]]), Answered([[1]]))
    assert judged(GOOD, undrafted, ())[0] is ProofVerdict.UNDECIDED
    assert judged(GOOD, None, ["it did not start"]) == (ProofVerdict.UNDECIDED, "it did not start")
    assert judged(None, ALIKE, ["no GPU"]) == (ProofVerdict.UNDECIDED, "no GPU")


def test_the_start_is_batch_invariant_and_not_refused_for_an_earlier_proof(tmp_path: Any) -> None:
    asked = start(tmp_path, "0.32.0-cuda", "GPU-0", "turboquant_k8v4", drafts=True)
    overrides = asked.overrides
    assert (overrides.batch_invariant, overrides.allow_wrong_answers, overrides.speculation) == (
        True,
        True,
        "mtp",
    )
    assert start(tmp_path, "x", "GPU-0", "turboquant_k8v4", drafts=False).overrides.speculation == "off"


def test_a_plan_takes_the_start_on_a_gpu_that_nobody_has_proven(home: Path) -> None:
    desk = Desk(home)
    checkpoint(desk.folder, tensors(a=(8,), mtp__b=(2,)), head_dim=128, num_nextn_predict_layers=1)
    card = gpu(0, used=60 << 30).model_copy(update={"name": "RTX", "compute_capability": "8.6"})
    desk.cuda(card)
    desk.patches = PlannedPatches(digest="d", chosen=(PATCH,))
    plan = desk.make(start(desk.folder, desk.venv.id, "GPU-0", "turboquant_k8v4", drafts=True))
    assert plan.startable, [one.message for one in plan.findings]
    assert plan.environment["VLLM_BATCH_INVARIANT"] == "1"
    assert after(plan, "--gpu-memory-utilization") == "0.25"
    assert plan.gpus == ("GPU-0",)
    desk.proof = proof(verdict=ProofVerdict.WRONG, why="3 of 40")
    again = desk.make(start(desk.folder, desk.venv.id, "GPU-0", "turboquant_k8v4", drafts=True))
    assert again.startable, "an earlier proof that failed does not keep this one from being made"
