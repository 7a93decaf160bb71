"""From a preset to the model of this machine that it starts: found, missing, ambiguous, damaged, replaced."""

import asyncio
import hashlib
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.package_data import presets, resources
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.launch.resolution import PresetStart
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.presets.consents import PresetConsents, Trust
from engine_host.operations.presets.launch import PresetLaunches
from engine_host.operations.presets.own import OwnPresetOperations
from engine_host.operations.presets.verify import PresetVerifyOperations
from engine_host.protocol.base import Severity
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.launch.plans import EngineKind, LaunchRequest, Layer
from engine_host.protocol.models import ModelFile, ModelOrigin
from engine_host.protocol.presets import CheckedFiles, SavePreset
from tests.unit.asynchronous import run

CPU = "qwen3-embedding-0.6b-cpu"
CPU_FILE = "Qwen3-Embedding-0.6B-Q8_0.gguf"
# Weights of which the catalogue knows neither size nor hash.
UNKNOWN = "gemma-3-27b-q4-24"
UNKNOWN_FILE = "gemma-3-27b-it-q4_0.gguf"
# The same weights, of which the test knows size and hash.
KNOWN = """
format: 1
id: tiny
title: Tiny
family: test
publisher: tests
licence: MIT
tasks: [chat]
modalities: [text]
context: 8192
variants:
  - id: q4
    format: gguf
    quantization: Q4_K_M
    repository: org/Tiny-GGUF
    revision: abcdef0123456789012345678901234567890123
    files:
      - name: tiny.gguf
        size: 5
        sha256: HASH
sources:
  - about: everything
    address: here
"""
PRESET = """
format: 1
id: tiny-cpu
title: Tiny
summary: A test.
model: tiny
variant: q4
engine: llama.cpp
profile: latency
needs:
  gpus: 0
card:
  status: computed
  caveats: [Nothing was measured.]
  audience: tests
  good_for: [chat]
"""


class Bench:
    """The catalogue that ships and a person's own, with the models and GPUs that a test names."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.models: list[ModelFile] = []
        self.later: list[ModelFile] = []
        self.scans = 0
        self.gpus: tuple[Gpu, ...] = ()
        self.own = home / "own"
        settings = SettingsFile(home / "settings.toml")
        self.events = EventLog()
        self.services = PresetOperations(presets, self.own, settings, self.events, lambda: self.gpus)
        self.store = Store(home / "store.sqlite")
        self.consents = PresetConsents(self.store)
        self.changes = OwnPresetOperations(self.services, self.consents)
        self.jobs = JobRunner(self.events.publish, self.store)
        self.checks = PresetVerifyOperations(self.jobs, self.store, self.services, self.list)
        self.starts = PresetLaunches(self.services, self.list, self.checks, self.consents)

    async def list(self, rescan: bool) -> Sequence[ModelFile]:
        if rescan:
            self.scans += 1
            self.models += self.later
        return self.models

    def add(self, path: Path, size: int | None = None, **fields: Any) -> ModelFile:
        known: dict[str, Any] = {
            "id": path.stem.lower(),
            "name": path.stem,
            "path": str(path),
            "origin": ModelOrigin.FOLDER,
            "found_in": "",
            "size": path.stat().st_size if size is None else size,
            "format": "GGUF",
        }
        file = ModelFile.model_validate(known | fields)
        self.models.append(file)
        return file

    def start(self, preset: str, **fields: Any) -> PresetStart:
        return run(self.starts(LaunchRequest(preset=preset, **fields)))

    def refused(self, preset: str, **fields: Any) -> Problem:
        with pytest.raises(HostError) as raised:
            self.start(preset, **fields)
        return raised.value.problem

    def tiny(self, content: bytes = b"12345", sha256: str | None = None) -> ModelFile:
        """A preset of the person's own, and a file of its name."""
        (self.own / "models").mkdir(parents=True, exist_ok=True)
        text = KNOWN.replace("HASH", sha256 or hashlib.sha256(b"12345").hexdigest())
        (self.own / "models" / "tiny.yaml").write_text(text.lstrip())
        # A person has consented to where its weights are from.
        self.consents.note(text.lstrip(), Trust.TRUSTED)
        (self.own / "tiny-cpu.yaml").write_text(PRESET.lstrip())
        path = self.home / "org" / "Tiny-GGUF" / "tiny.gguf"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return self.add(path)

    def verify(self, preset: str) -> Job:
        async def work() -> Job:
            return await self.jobs.ended((await self.checks.verify(preset)).id)

        return run(work())


@pytest.fixture
def bench(home: Path) -> Any:
    found = Bench(home)
    yield found
    found.store.close()
    found.events.close()


def command(problem: Problem) -> list[str]:
    assert problem.fix is not None
    assert problem.fix.command is not None
    return shlex.split(problem.fix.command)


def test_the_bundled_model_is_found_by_its_place(bench: Bench) -> None:
    path = resources() / "models" / "sndr-demo" / "sndr-demo-q8_0.gguf"
    bench.add(path)
    start = bench.start("demo-llamacpp", overrides=Overrides(context=1024))
    assert start.model == str(path)
    assert start.findings == ()
    by = {setting.name: setting.by.layer for setting in start.resolved.settings}
    assert (by["context"], by["streams"]) == (Layer.OVERRIDE, Layer.PROFILE)
    assert start.mark


def test_a_model_that_is_not_here_is_named_with_its_download(bench: Bench) -> None:
    problem = bench.refused(CPU)
    assert problem.reason is Reason.MODEL_FILE_MISSING
    assert bench.scans == 1, "it may have been fetched since the last look"
    words = command(problem)
    assert words[:5] == ["sndr", "models", "download", "Qwen/Qwen3-Embedding-0.6B-GGUF", "--revision"]
    assert words[6:] == ["--choice", CPU_FILE]
    assert problem.evidence["repository"] == "Qwen/Qwen3-Embedding-0.6B-GGUF"


def test_what_was_fetched_meanwhile_is_found(bench: Bench) -> None:
    path = bench.home / "Qwen" / "Qwen3-Embedding-0.6B-GGUF" / CPU_FILE
    path.parent.mkdir(parents=True)
    path.write_bytes(b"weights")
    bench.later = [bench.add(path, quantization="Q8_0")]
    bench.models = []
    known = bench.start(CPU)
    assert known.model == str(path)


def test_files_that_only_share_a_name_are_a_conflict(bench: Bench) -> None:
    for name, size in (("a", 3), ("b", 4)):
        path = bench.home / name / UNKNOWN_FILE
        path.parent.mkdir()
        path.write_bytes(b"x" * size)
        bench.add(path)
    bench.gpus = (_card(),)
    problem = bench.refused(UNKNOWN)
    assert problem.reason is Reason.CONFLICT
    assert command(problem)[:4] == ["sndr", "launch", UNKNOWN, "--model"]
    named = bench.start(UNKNOWN, model=bench.models[1].path)
    assert named.model == bench.models[1].path


def _card(memory: int = 24 << 30, name: str = "NVIDIA GeForce RTX 3090", sm: str = "8.6") -> Gpu:
    return Gpu(index=0, uuid="GPU-1", name=name, memory_total=memory, memory_used=0, compute_capability=sm)


def test_a_name_alone_is_said_to_be_one(bench: Bench) -> None:
    path = bench.home / UNKNOWN_FILE
    path.write_bytes(b"x")
    bench.add(path)
    bench.gpus = (_card(),)
    assert "weights.by_name" in {one.id for one in bench.start(UNKNOWN).findings}


def test_a_file_of_another_size_is_an_unfinished_download(bench: Bench) -> None:
    file = bench.tiny(b"1234")
    problem = bench.refused("tiny-cpu")
    assert problem.reason is Reason.MODEL_FILE_DAMAGED
    assert (problem.evidence["size"], problem.evidence["expected"]) == (4, 5)
    words = command(problem)
    assert words[:4] == ["sndr", "models", "download", "org/Tiny-GGUF"]
    assert words[-2:] == ["--choice", "tiny.gguf"]
    assert "--revision" in words
    assert bench.start("tiny-cpu", model=file.path).model == file.path, "who means it may have it"


def test_a_damaged_file_says_what_is_wrong_with_it(bench: Bench) -> None:
    file = bench.tiny()
    wrong = Problem(reason=Reason.GGUF_TRUNCATED, message="The file ends too early.")
    bench.models = [file.model_copy(update={"problem": wrong})]
    problem = bench.refused("tiny-cpu")
    assert problem.reason is Reason.GGUF_TRUNCATED
    assert "The file ends too early." in problem.message


def test_another_model_with_a_presets_settings_is_told(bench: Bench) -> None:
    bench.tiny()
    start = bench.start("tiny-cpu", model="other")
    assert start.model == "other"
    (finding,) = start.findings
    assert (finding.id, finding.severity) == ("preset.other_weights", Severity.INFO)
    assert bench.start("tiny-cpu", model="tiny").findings == (), "it is the preset's own"


def test_too_few_gpus_make_no_plan(bench: Bench) -> None:
    assert bench.refused("qwen3.6-27b-int4-2x24").reason is Reason.ENGINE_UNUSABLE
    bench.gpus = (_card(),)
    problem = bench.refused("qwen3.6-27b-int4-2x24")
    assert (
        problem.message == "qwen3.6-27b-int4-2x24 cannot run here. It needs 2 GPUs of 24 GiB; there is one."
    )


def test_a_gpu_that_nobody_knows_is_checked_by_what_the_driver_tells(bench: Bench) -> None:
    path = bench.home / UNKNOWN_FILE
    path.write_bytes(b"x")
    bench.add(path)
    bench.gpus = (_card(16 << 30, "Some card", "7.0"),)
    start = bench.start(UNKNOWN)
    assert (start.resolved.hardware, start.resolved.count) == (None, 1)
    vram = next(one for one in start.findings if one.id == "preset.vram")
    assert vram.severity is Severity.WARNING, "the arithmetic decides"
    assert "Some card has 16" in vram.message


def test_an_engine_that_is_not_started_says_who_can(bench: Bench) -> None:
    problem = bench.refused("qwen3.6-35b-a3b-sglang-4xl4")
    assert problem.reason is Reason.UNSUPPORTED
    assert command(problem) == ["sndr", "launch", "qwen3.6-35b-a3b-sglang-4xl4", "--render", "docker"]


def test_another_engine_than_the_presets_is_refused(bench: Bench) -> None:
    bench.tiny()
    assert bench.refused("tiny-cpu", engine=EngineKind.VLLM).reason is Reason.SETTING_INVALID
    assert bench.start("tiny-cpu", engine=EngineKind.LLAMA_CPP).model


def test_a_model_is_no_preset_and_the_error_says_how_to_start_it(bench: Bench) -> None:
    bench.tiny()
    problem = bench.refused("tiny")
    assert problem.reason is Reason.NOT_FOUND
    assert command(problem) == ["sndr", "run", "tiny"]
    near = bench.refused("tiny-cp").fix
    assert near is not None
    assert near.text == "Did you mean tiny-cpu?"


def test_an_edited_file_of_the_preset_changes_its_mark(bench: Bench) -> None:
    bench.tiny()
    before = bench.start("tiny-cpu").mark
    saved = run(bench.changes.file("tiny-cpu"))
    text = saved.text.replace("A test.", "Another test.")
    run(bench.changes.save("tiny-cpu", SavePreset(text=text, digest=saved.digest)))
    assert bench.start("tiny-cpu").mark != before


def test_hashes_are_checked_by_a_job_and_remembered_until_the_file_changes(bench: Bench) -> None:
    file = bench.tiny()
    (finding,) = bench.start("tiny-cpu").findings
    assert (finding.id, finding.severity) == ("weights.not_verified", Severity.INFO)
    assert finding.fix is not None
    assert finding.fix.command == "sndr presets verify tiny-cpu"
    job = bench.verify("tiny-cpu")
    assert (job.kind, job.state) == (JobKind.PRESET_VERIFY, JobState.DONE)
    found = CheckedFiles.model_validate(job.result)
    assert found.right
    assert found.files[0].path == file.path
    assert bench.start("tiny-cpu").findings == ()
    Path(file.path).write_bytes(b"54321")
    assert [one.id for one in bench.start("tiny-cpu").findings] == ["weights.not_verified"]
    assert not CheckedFiles.model_validate(bench.verify("tiny-cpu").result).right
    (finding,) = bench.start("tiny-cpu").findings
    assert (finding.id, finding.severity, finding.reason) == (
        "weights.hash",
        Severity.ERROR,
        Reason.MODEL_FILE_DAMAGED,
    )


def test_a_file_that_cannot_be_read_is_part_of_the_answer(bench: Bench) -> None:
    file = bench.tiny()
    Path(file.path).unlink()
    Path(file.path).mkdir()
    checked = CheckedFiles.model_validate(bench.verify("tiny-cpu").result)
    assert not checked.right
    assert checked.files[0].problem


def test_without_a_hash_there_is_nothing_to_verify(bench: Bench) -> None:
    path = bench.home / UNKNOWN_FILE
    path.write_bytes(b"x")
    bench.add(path)
    with pytest.raises(HostError) as raised:
        bench.verify(UNKNOWN)
    assert raised.value.reason is Reason.UNSUPPORTED


def test_a_verification_that_is_cancelled_ends(bench: Bench) -> None:
    bench.tiny(b"1" * 5)

    async def work() -> Job:
        job = await bench.checks.verify("tiny-cpu")
        bench.jobs.cancel(job.id)
        await asyncio.sleep(0)
        return await bench.jobs.ended(job.id)

    assert run(work()).state is JobState.CANCELLED
