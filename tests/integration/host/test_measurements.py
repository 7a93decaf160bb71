"""The quality of llama.cpp's KV types, measured by the real server; and a proof where there is no GPU."""

import os
import sys
from pathlib import Path

import pytest

from engine_host.bench import proof as parts
from engine_host.core.errors import HostError
from engine_host.protocol.bench.proofs import ProveKernels
from engine_host.protocol.bench.quality import MeasureQuality, QualityReport
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job
from engine_host.protocol.operations import table as ops
from tests.integration.host.conftest import RunningHost, wait_for
from tests.unit.asynchronous import run


def test_the_bundled_model_keeps_its_answers_in_8_bits_and_loses_some_in_4(host: RunningHost) -> None:
    asked = MeasureQuality(
        kv=("q8_0", "no type", "q4_0"), positions=32, context=160, answers=1, answer_tokens=8
    )
    started = host.client.call(ops.MEASURE_QUALITY, asked)

    def ended() -> Job | None:
        job = host.client.call(ops.JOB, id=started.id)
        return job if job.ended else None

    job = wait_for(ended, "the end of the measurement", 240.0)
    assert job.error is None
    report = QualityReport.model_validate(job.result)
    reference, eight, none, four = report.rows
    assert none.perplexity is None
    assert none.problem is not None
    assert none.problem.reason is Reason.SETTING_INVALID
    assert (reference.kv, reference.divergence) == ("f16", None)
    assert reference.perplexity is not None
    assert 1.0 < reference.perplexity < 3.0, "the text is one that the model has learned to write"
    assert report.measured_positions == 32
    assert eight.divergence is not None
    assert four.divergence is not None
    assert 0 < eight.divergence < four.divergence
    assert len(reference.needles) == 5
    assert "--cache-type-k" in four.argv
    assert host.client.call(ops.QUALITIES).reports[0].id == report.id
    assert not list(host.folders.run.glob("*.sock.*"))


def test_without_a_gpu_a_proof_is_refused_with_the_reason(host: RunningHost) -> None:
    if host.client.call(ops.HOST).gpus:
        pytest.skip("there is a GPU")
    with pytest.raises(HostError) as raised:
        host.client.call(ops.PROVE, ProveKernels())
    assert raised.value.reason is Reason.NOT_FOUND
    assert host.client.call(ops.PROOFS).proofs == ()


def test_the_tools_of_a_proof_run_in_a_process_of_their_own(tmp_path: Path) -> None:
    """A Python without torch stands for a machine on which nothing can be proven."""
    tools = parts.Tools(
        Path(sys.executable), tmp_path, {"CUDA_VISIBLE_DEVICES": "7"}, tmp_path, dict(os.environ)
    )
    with pytest.raises(HostError) as raised:
        run(parts.self_test(tools, "turboquant_k8v4", lambda _line: None))
    assert raised.value.reason is Reason.ENGINE_UNUSABLE
    assert "torch" in raised.value.problem.cause
    script = tmp_path / "said.py"
    script.write_text(
        "import json, os, sys\n"
        "said = {'gpu': os.environ['CUDA_VISIBLE_DEVICES'], 'words': sys.argv[1:-2]}\n"
        "json.dump(said, open(sys.argv[-1], 'w'))\n"
    )
    assert run(tools.run(script, "--kv", "x")) == {"gpu": "7", "words": ["--kv", "x"]}
    script.write_text("import sys\nopen(sys.argv[-1], 'w').write('{')\n")
    with pytest.raises(HostError):
        run(tools.run(script))
