"""The overlay in the real vLLM, through a real host: three starts that the tests of this file share.

The first start compiles a model whose source a patch of the test changes, the second finds what the first
compiled, the third is the same without that patch.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.engines.temporary_folder import HEADERS
from engine_host.engines.vllm.installations import tree_hash
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import EngineKind, LaunchRequest, StartRequest
from engine_host.protocol.logs import LogQuery
from engine_host.protocol.operations import table as ops
from engine_host.protocol.patches import (
    EnginePatches,
    PatchOutcome,
    PatchReason,
    ProcessRole,
)
from tests.integration.host.conftest import RunningHost, alive, home_left_empty, wait_for
from tests.small_demo_model import write_small_demo_model
from tests.vllm_environment import share_model_infos, site_packages, vllm_venv

START = 500.0
pytestmark = pytest.mark.timeout(3 * START)
HALVED = """
id = "halved-logits"
title = "Halves what the head sees"
family = "test"
problem = "A test wants to see its own change in the answers of a compiled model."
risk = "high"
[applies_to]
vllm = ">=0.26"
[[text]]
module = "vllm.model_executor.models.qwen3_next"
find = "        hidden_states, _ = self.norm(hidden_states, residual)\\n"
replace = '''
        hidden_states, _ = self.norm(hidden_states, residual)
        hidden_states = hidden_states * 0.5
'''
"""
DRIFTED = """
id = "drifted"
title = "Looks for text that is not there"
family = "test"
problem = "A test wants to see a skipped patch."
risk = "low"
[applies_to]
vllm = ">=0.26"
[[text]]
module = "vllm.v1.core.sched.scheduler"
find = "this text is in no module of vLLM"
replace = ""
"""
RAISING = """
id = "raising"
title = "Raises when its code is loaded"
family = "test"
problem = "A test wants to see that the engine goes on."
risk = "low"
[applies_to]
vllm = ">=0.26"
[[rebind]]
module = "vllm.v1.core.sched.scheduler"
target = "Scheduler.has_requests"
replacement = "patch:replace"
signature = "(self)"
"""
SETTINGS = Overrides(context=1024, streams=2, kv_cache_gib=1, eager=False)


# What vLLM says when it finds a compiled graph (compilation/decorators.py, backends.py).
FOUND_COMPILED = "Directly load"


class Starts:
    """A host in folders of its own, and what its three starts of vLLM showed."""

    def __init__(self, home: Path, model: Path) -> None:
        self.home = home
        self.request = LaunchRequest(
            model=str(model), engine=EngineKind.VLLM, installation=str(vllm_venv()), overrides=SETTINGS
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SNDR_HOME", str(home))
            # What an earlier run of the tests compiled must not be found.
            patch.delenv("SNDR_CACHE", raising=False)
            # Else each compiles seven programs to see which instructions the processor knows.
            patch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "1")
            self.host = RunningHost().connect()
        share_model_infos(self.host.folders.cache)
        self.hash_before = tree_hash(site_packages() / "vllm")
        self._write_patches()
        self.first, self.first_patches, self.first_logprobs = self._start()
        self.second, self.second_patches, self.second_logprobs = self._start()
        self.probed = self.client.call(ops.PROBE_PATCHES, id=self.second.id)
        started = self.client.call(ops.START_WITHOUT, id=self.second.id, patch="halved-logits")
        self.third = self.host.until(started.id, EngineState.READY, seconds=START)
        self.third_patches = self.patches(self.third)
        self.third_logprobs = self._logprobs(self.third)
        self.hash_after = tree_hash(site_packages() / "vllm")

    @property
    def client(self) -> ControlClient:
        """The control API's client."""
        return self.host.client

    def patches(self, engine: Engine) -> EnginePatches:
        """The apply summary of an engine."""
        return self.client.call(ops.ENGINE_PATCHES, id=engine.id)

    def _start(self) -> tuple[Engine, EnginePatches, dict[str, float]]:
        engine = self.host.launch(self.request, START)
        logprobs = self._logprobs(engine)
        return engine, self.patches(engine), logprobs

    def found_compiled(self, engine: Engine) -> bool:
        """Return True if this start found compiled graphs, by vLLM's own log."""
        lines = self.client.call(ops.LOGS, LogQuery(source=engine.id, limit=5000)).lines
        return any(FOUND_COMPILED in line.text for line in lines)

    def _logprobs(self, engine: Engine) -> dict[str, float]:
        """The first token's candidates after one prompt, asked from the engine itself."""
        transport = httpx.HTTPTransport(uds=str(self.host.folders.run / f"{engine.plan.id}.sock"))
        with httpx.Client(transport=transport, base_url="http://engine", timeout=120) as client:
            body = {"model": engine.name, "prompt": "def add(a, b):", "max_tokens": 1, "logprobs": 5}
            answer = client.post("/v1/completions", json={**body, "temperature": 0})
        found: dict[str, float] = answer.json()["choices"][0]["logprobs"]["top_logprobs"][0]
        return found

    def _write_patches(self) -> None:
        for name, text in (("halved-logits", HALVED), ("drifted", DRIFTED), ("raising", RAISING)):
            folder = self.host.folders.config / "patches" / name
            folder.mkdir(parents=True)
            (folder / "patch.toml").write_text(text, encoding="utf-8")
        code = self.host.folders.config / "patches" / "raising" / "patch.py"
        code.write_text('raise RuntimeError("on purpose")\n', encoding="utf-8")

    def end(self) -> None:
        """End host and engine."""
        self.host.end()


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starts]:
    """Three starts of vLLM; what they leave is found at the end."""
    model = write_small_demo_model(tmp_path_factory.mktemp("small"))
    with home_left_empty("sndr-o-") as folder:
        found = Starts(folder, model)
        yield found
        found.end()


def test_three_processes_say_what_took_effect(starts: Starts) -> None:
    found = starts.first_patches
    # vLLM also looks at the model's class in a short-lived process, which is a helper.
    serving = [process for process in found.processes if process.role is not ProcessRole.HELPER]
    assert [process.role for process in serving] == [
        ProcessRole.API_SERVER,
        ProcessRole.ENGINE_CORE,
        ProcessRole.WORKER,
    ]
    by_role = {process.role: process for process in serving}
    results = {
        (role, result.patch): result for role, process in by_role.items() for result in process.results
    }
    assert results[ProcessRole.WORKER, "halved-logits"].outcome is PatchOutcome.APPLIED
    (edit,) = results[ProcessRole.WORKER, "halved-logits"].operations
    assert edit.before != edit.after
    assert results[ProcessRole.API_SERVER, "responses-tool-stream"].outcome is PatchOutcome.APPLIED
    assert results[ProcessRole.ENGINE_CORE, "oom-keeps-engine"].outcome is PatchOutcome.APPLIED
    for role in by_role:
        skipped = results[role, "drifted"]
        assert (skipped.outcome, skipped.reason) == (PatchOutcome.SKIPPED, PatchReason.ANCHOR_MISSING)
    failed = results[ProcessRole.ENGINE_CORE, "raising"]
    assert (failed.outcome, failed.reason) == (PatchOutcome.FAILED, PatchReason.RAISED)
    assert "on purpose" in failed.detail
    assert found.summary.startswith("API server ")
    assert "skipped (anchor moved)" in found.summary


def test_the_patch_is_in_the_answers(starts: Starts) -> None:
    """The compiled model must hold the edit, also when it comes from the cache."""
    patched, cached, without = starts.first_logprobs, starts.second_logprobs, starts.third_logprobs
    assert cached == pytest.approx(patched, abs=1e-3)
    best = max(without, key=lambda token: without[token])
    assert abs(without[best] - patched.get(best, -100.0)) > 0.05
    names = {result.patch for process in starts.third_patches.processes for result in process.results}
    assert "halved-logits" not in names
    planned = starts.third.plan.patches
    assert planned is not None
    (left_out,) = [one for one in planned.left_out if one.patch == "halved-logits"]
    assert left_out.reason is PatchReason.LEFT_OUT


def test_the_second_start_finds_what_the_first_compiled(starts: Starts) -> None:
    assert starts.found_compiled(starts.second)
    assert not starts.found_compiled(starts.first)
    assert not starts.found_compiled(starts.third), "without that patch the model is another one"
    headers = starts.host.folders.cache / "vllm" / HEADERS
    assert len(list(headers.glob("*.gch"))) == 1, "PyTorch's headers are translated once for all three"


def test_what_is_live_is_asked(starts: Starts) -> None:
    worker = next(one for one in starts.probed.processes if one.role is ProcessRole.WORKER)
    (halved,) = [result for result in worker.results if result.patch == "halved-logits"]
    assert halved.probe is not None
    assert halved.probe.live, halved.probe.why
    (counted,) = [result for result in worker.results if result.patch == "oom-keeps-engine"]
    assert counted.probe is not None
    assert counted.probe.hits


def test_vllm_itself_is_untouched(starts: Starts) -> None:
    assert starts.hash_after == starts.hash_before


def test_the_overlay_says_what_it_costs(starts: Starts) -> None:
    """Its own clock, in every process of every start; `make bench FULL=1` holds the cost to 150 ms."""
    for found in (starts.first_patches, starts.second_patches, starts.third_patches):
        for process in found.processes:
            assert process.overhead_ms is not None
            assert process.overhead_ms > 0, process.role


def test_stages_begin_with_the_overlay(starts: Starts) -> None:
    names = [stage.name for stage in starts.first.stages]
    assert names.index("Overlay applied") < names.index("Weights") < names.index("Serving")
    assert "Compile" in names


def test_killed_while_starting_it_leaves_a_clear_message_and_nothing_else(starts: Starts) -> None:
    request = starts.request.model_copy(
        update={"overrides": starts.request.overrides.model_copy(update={"eager": True})}
    )
    plan = starts.client.call(ops.PLAN, request)
    started = starts.client.call(ops.START, StartRequest(plan=plan.id))

    def overlay_seen() -> Engine | None:
        engine = starts.host.engine(started.id)
        return engine if any(stage.name == "Overlay applied" for stage in engine.stages) else None

    engine = wait_for(overlay_seen, "the overlay in the API server", START)
    assert engine.pid is not None
    signal_to(engine.pid)
    failed = wait_for(
        lambda: found if (found := starts.host.engine(started.id)).state is EngineState.FAILED else None,
        "the failure",
    )
    assert failed.problem is not None
    assert "SIGKILL" in failed.problem.message
    assert failed.problem.fix is not None
    assert not alive(engine.pid)
    assert not (starts.host.folders.run / f"{plan.id}.sock").exists()
    assert not (starts.host.folders.run / f"{plan.id}.tmp").exists()
    assert not (starts.host.folders.run / "ledger" / plan.id).exists()
    assert starts.patches(failed).summary, "the last summary stays with the failed engine"
    with pytest.raises(HostError, match="does not run") as caught:
        starts.client.call(ops.PROBE_PATCHES, id=failed.id)
    assert caught.value.reason is Reason.NO_ENGINE_RUNS


def signal_to(pid: int) -> None:
    """Kill it as the system does when memory runs out."""

    os.kill(pid, signal.SIGKILL)
