"""A bisection over starts of the real vLLM: one of two patches keeps the engine from starting."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobState
from engine_host.protocol.launch.plans import (
    BisectRequest,
    BisectResult,
    BisectVerdict,
    EngineKind,
    LaunchRequest,
    StartRequest,
)
from engine_host.protocol.operations import table as ops
from engine_host.protocol.patches import BisectCheck, PatchChoice
from tests.integration.host.conftest import RunningHost, home_left_empty, wait_for
from tests.vllm_environment import import_once, linked_vllm, share_model_infos

TRIALS = 1200.0
pytestmark = pytest.mark.timeout(TRIALS + 60)
PATCH = """
id = "{name}"
title = "A patch of a test"
family = "test"
problem = "A test wants to find it."
risk = "low"
[applies_to]
vllm = ">=0.26"
[[rebind]]
module = "{module}"
target = "{target}"
replacement = "patch:wrap"
signature = "{signature}"
"""
# It refuses in the engine's own process, before that one starts and fills a worker.
REFUSED = (
    "vllm.v1.engine.core",
    "EngineCore.__init__",
    "(self, vllm_config, executor_class, log_stats, executor_fail_callback = ..., "
    "include_finished_set = ...)",
)
KEPT = ("vllm.v1.core.sched.scheduler", "Scheduler.has_requests", "(self)")
DEADLY = """
def wrap(original):
    def refuse(self, *args, **kwargs):
        raise RuntimeError("this patch lets no engine start")
    return refuse
"""
HARMLESS = """
def wrap(original):
    return original
"""
# Answers through the public endpoint, as an editor would ask.
CHECK = """
import json, os, urllib.request
with urllib.request.urlopen(os.environ["SNDR_ENDPOINT"] + "/models") as answer:
    names = [model["id"] for model in json.load(answer)["data"]]
raise SystemExit(os.environ["SNDR_MODEL"] not in names)
"""


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningHost]:
    """A host with two patches of the person's; nothing may be left of it."""
    with home_left_empty("sndr-b-") as home:
        monkeypatch.setenv("SNDR_HOME", str(home))
        monkeypatch.delenv("SNDR_CACHE", raising=False)
        made = RunningHost().connect()
        share_model_infos(made.folders.cache)
        for name, (module, target, signature), code in (
            ("a-deadly", REFUSED, DEADLY),
            ("b-harmless", KEPT, HARMLESS),
        ):
            folder = made.folders.config / "patches" / name
            folder.mkdir(parents=True)
            text = PATCH.format(name=name, module=module, target=target, signature=signature)
            (folder / "patch.toml").write_text(text, encoding="utf-8")
            (folder / "patch.py").write_text(code, encoding="utf-8")
        yield made
        made.end()


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """VLLM for this test; a start is not its subject."""
    return import_once(linked_vllm(tmp_path / "vllm"))


def asked(check: BisectCheck, environment: Path) -> BisectRequest:
    launch = LaunchRequest(
        model="sndr-demo",
        engine=EngineKind.VLLM,
        installation=str(environment),
        overrides=Overrides(context=512, streams=1, kv_cache_gib=0.5, eager=True),
        patches=PatchChoice(only=("a-deadly", "b-harmless")),
    )
    return BisectRequest(launch=launch, check=check)


def test_the_patch_that_breaks_a_start_is_named(host: RunningHost, environment: Path) -> None:
    client = host.client
    check = BisectCheck(command=(sys.executable, "-c", CHECK), folder=os.getcwd())
    job = client.call(ops.BISECT_PATCHES, asked(check, environment))
    with pytest.raises(HostError) as second:
        client.call(ops.BISECT_PATCHES, asked(check, environment))
    assert second.value.reason is Reason.CONFLICT
    other = client.call(ops.PLAN, asked(check, environment).launch)
    with pytest.raises(HostError, match="bisection is under way") as start:
        client.call(ops.START, StartRequest(plan=other.id))
    assert start.value.reason is Reason.CONFLICT

    def ended() -> Job | None:
        now = client.call(ops.JOB, id=job.id)
        return now if now.ended else None

    done = wait_for(ended, "the bisection", TRIALS)
    assert done.state is JobState.DONE, done.error
    found = BisectResult.model_validate(done.result)
    assert found.verdict is BisectVerdict.FOUND
    assert found.culprits == (("a-deadly",),)
    assert [(trial.patches, trial.passed) for trial in found.trials] == [
        ((), True),
        (("a-deadly", "b-harmless"), False),
        (("a-deadly",), False),
        (("b-harmless",), True),
    ]
    assert "this patch lets no engine start" in found.trials[1].why
    assert "--without a-deadly" in found.command
    assert found.engine is not None
    running = host.engine(found.engine)
    assert running.state in {EngineState.READY, EngineState.BUSY}
    assert running.plan.patches is not None
    assert running.plan.patches.chosen == ("b-harmless",)
    assert done.command.startswith("sndr patches bisect sndr-demo")


def test_a_cancelled_bisection_leaves_no_engine(host: RunningHost, environment: Path) -> None:
    client = host.client
    job = client.call(ops.BISECT_PATCHES, asked(BisectCheck(builtin="starts"), environment))

    def starting() -> Engine | None:
        engines = client.call(ops.ENGINES).engines
        return next((one for one in engines if one.state is EngineState.STARTING), None)

    engine = wait_for(starting, "the first trial")
    client.call(ops.CANCEL_JOB, id=job.id)

    def ended() -> Job | None:
        now = client.call(ops.JOB, id=job.id)
        return now if now.ended else None

    assert wait_for(ended, "the end", 60).state is JobState.CANCELLED
    assert host.engine(engine.id).state is EngineState.UNLOADED
