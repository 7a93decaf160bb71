"""A report is collected with and without a host, and written whole or not at all."""

import json
import os
import stat
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from engine_host.client.diagnostics import collected
from engine_host.client.diagnostics.bundle import Bundle, collect, place_of, save
from engine_host.client.diagnostics.from_host import told_event, told_job
from engine_host.client.diagnostics.mask import Mask
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.core.store import Store
from engine_host.protocol.bench.diagnosis import Diagnosis
from engine_host.protocol.engines import EnginePage, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import JobKind, JobPage, JobState
from engine_host.protocol.remote.hosts import RemoteHost, RemoteHostPage, RemoteMode
from tests.unit.cli.fake_host import TOKEN, VERSION, FakeHost, fake_host
from tests.unit.full_disk import small_disk
from tests.views.samples import host as samples

SECRET = "sk-hunter22hunter22"


def texts(bundle: Bundle) -> dict[str, str]:
    return {one.name: one.text for one in bundle.files}


def answer(host: FakeHost) -> None:
    """Let the fake answer all that a report asks for."""
    remote = RemoteHost(name="attic", destination="maxine@attic7.example.org", mode=RemoteMode.AGENTLESS)
    job = samples.job(JobKind.ENGINE_START, JobState.DONE)
    for path, value in {
        "hosts": RemoteHostPage(seq=0, hosts=(remote,)),
        "settings": samples.settings(),
        "host": samples.host(),
        "servers": samples.servers(),
        "installations": samples.installations(),
        "engines": EnginePage(seq=0, engines=(samples.engine(EngineState.READY),)),
        "diagnosis": Diagnosis(seq=0, seconds=600.0, busy={"demo": 1.0}, causes=()),
        "jobs": JobPage(seq=0, jobs=(job,)),
        "telemetry": samples.telemetry(),
    }.items():
        host.answers[f"GET /v1/{path}"] = (200, value.model_dump(mode="json"))
    host.answers["GET /v1/version"] = (200, {**VERSION, "seq": 5})
    notice = {"kind": "notice", "key": "k", "severity": "info", "text": f"{SECRET} on attic7.example.org"}
    host.answers["GET /v1/events"] = [
        {"seq": 1, "at": 1.0, **notice},
        {"seq": 2, "at": 1.0, "kind": "log.line", "lines": []},
        "no event",
        {"seq": 5, "at": 1.0, "kind": "job.done", "job": job.model_dump(mode="json")},
    ]


def test_with_a_host_everything_is_in_it_but_secrets_and_names(home: Path) -> None:
    with fake_host(home) as host:
        answer(host)
        logs = host.folders.logs / "engines"
        logs.mkdir(parents=True)
        (logs / "engine-1.log").write_text(f"\x1b[31m{SECRET}\x1b[0m {TOKEN}\n", encoding="utf-8")
        bundle = collect()
    found = texts(bundle)
    assert set(found) == {
        *("README.txt", "versions.json", "disks.json", "settings.json", "machine.json", "diagnosis.json"),
        *("engines/installed.json", "engines/starts.json", "jobs.json", "events.jsonl", "telemetry.jsonl"),
        "logs/engines/engine-1.log",
    }
    assert [one.name for one in bundle.missing] == ["engines/patches.json"]
    everything = "\n".join(found.values())
    for private in (SECRET, TOKEN, "workstation", "attic", "example.org", "\x1b"):
        assert private not in everything
    assert "hostname" not in json.loads(found["machine.json"])
    assert found["logs/engines/engine-1.log"] == "[redacted] [redacted]\n"
    events = [json.loads(line) for line in found["events.jsonl"].splitlines()]
    assert [one["seq"] for one in events] == [1, 5]
    assert events[0]["text"] == "[redacted] on [host]"
    assert "result" not in events[1]["job"]
    for name, text in found.items():
        if name.endswith(".json"):
            json.loads(text)
        assert f"{name}, " in found["README.txt"] or name == "README.txt"


def test_what_a_host_cannot_tell_is_missing_and_the_rest_is_there(home: Path) -> None:
    with fake_host(home) as host:
        host.lies = True
        answer(host)
        host.answers["GET /v1/telemetry"] = (200, b"[" * 100_000)
        host.answers["GET /v1/diagnosis"] = (500, b"\xff")
        bundle = collect()
    missing = {one.name: one.why for one in bundle.missing}
    assert {"telemetry.jsonl", "diagnosis.json"} < set(missing)
    assert "could not be read" in missing["telemetry.jsonl"]
    assert {"machine.json", "events.jsonl"} < set(texts(bundle))


def test_without_a_host_files_tell(home: Path) -> None:
    folders = Folders.resolve()
    folders.config.mkdir(parents=True)
    folders.settings.write_text("[engine]\nstreams = 4\n", encoding="utf-8")
    (folders.logs / "engines").mkdir(parents=True)
    (folders.logs / "host.log").write_text("all is well\n", encoding="utf-8")
    (folders.logs / "engines" / "engine-1.log").mkdir()
    installed = folders.cache / "vllm-environments" / "0.32.0-cpu"
    installed.mkdir(parents=True)
    (installed / "installation.json").write_text('{"version": "0.32.0"}', encoding="utf-8")
    store = Store(folders.store)
    bisect = {"id": "j", "kind": "patch.bisect", "command": "ask a riddle", "result": {"x": 1}}
    store.put("job", "j", 1.0, json.dumps(bisect))
    store.close()
    bundle = collect()
    found, missing = texts(bundle), {one.name: one.why for one in bundle.missing}
    assert {
        key: value
        for one in json.loads(found["settings.json"])["settings"]
        if one["name"] == "engine.streams"
        for key, value in one.items()
        if key in {"name", "value"}
    } == {"name": "engine.streams", "value": 4}
    assert json.loads(found["engines/installed.json"])["vllm"]["0.32.0-cpu"]["version"] == "0.32.0"
    assert json.loads(found["jobs.json"])[0]["id"] == "j"
    assert "riddle" not in found["jobs.json"]
    assert found["logs/host.log"] == "all is well\n"
    assert "regular file" in missing["logs/engines/engine-1.log"]
    assert "No engine host runs" in missing["telemetry.jsonl"]
    assert "telemetry.jsonl: " in found["README.txt"]


def test_engines_that_died_are_told_without_who_asked_them(home: Path) -> None:
    folders = Folders.resolve()
    folders.autopsies.mkdir(parents=True)
    record = {
        "id": "a",
        "engine": {"last_lines": [SECRET]},
        "requests": [{"client_name": "x", "ttft": 0.5}, 1],
    }
    (folders.autopsies / "a.json").write_text(json.dumps(record), encoding="utf-8")
    (folders.autopsies / "b.json").write_text("{", encoding="utf-8")
    (folders.autopsies / "c.json").mkdir()
    bundle = collect()
    told = json.loads(texts(bundle)["autopsies/a.json"])
    assert told == {"id": "a", "engine": {"last_lines": ["[redacted]"]}, "requests": [{"ttft": 0.5}]}
    assert {"autopsies/b.json", "autopsies/c.json"} < {one.name for one in bundle.missing}


def test_damaged_files_are_missing_and_named(home: Path) -> None:
    folders = Folders.resolve()
    folders.config.mkdir(parents=True)
    folders.settings.write_bytes(b"\xff = [")
    folders.store.parent.mkdir(parents=True)
    folders.store.write_bytes(b"no database" * 1000)
    folders.logs.write_text("a file", encoding="utf-8")
    broken = folders.cache / "vllm-environments" / "x"
    broken.mkdir(parents=True)
    (broken / "installation.json").write_bytes(b"{")
    bundle = collect()
    assert {"settings.json", "engines/starts.json", "jobs.json", "logs"} < {
        one.name for one in bundle.missing
    }
    assert "cannot be read" in texts(bundle)["engines/installed.json"]


@pytest.mark.parametrize("kind", ["patch.bisect", "kv.quality", "route.cutover"])
def test_of_jobs_about_texts_no_text_is_told(kind: str) -> None:
    word = "riddle"
    job = {
        "id": "j",
        "kind": kind,
        "title": word,
        "command": word,
        "result": {"answer": word},
        "step": {"number": 1, "name": "trial", "detail": word},
        "error": {"reason": "verification_failed", "message": word},
    }
    assert word not in json.dumps(told_job(job))
    assert word not in json.dumps(told_event({"kind": "job.done", "job": job}))


def test_of_what_is_too_long_the_end_is_kept_and_the_rest_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "MOST", 100)
    into = collected.Collected(Mask())
    into.add_lines("a.jsonl", [{"number": number} for number in range(50)])
    into.add_text("b.log", "b" * 101)
    (lines,) = into.files
    assert lines.text.endswith('{"number": 49}\n')
    assert 80 < len(lines.text) <= 100
    assert [one.name for one in into.missing] == ["a.jsonl", "b.log"]


def test_an_event_of_an_engine_goes_without_its_plan() -> None:
    changed = {"kind": "engine.state", "engine": samples.engine(EngineState.READY).model_dump(mode="json")}
    told = told_event(changed)
    assert told is not None
    assert told["engine"]["state"] == "ready"
    assert "plan" not in told["engine"]
    assert told_event({"kind": "engine.stage", "engine": "engine-1"}) == {
        "kind": "engine.stage",
        "engine": "engine-1",
    }


def test_of_a_request_who_asked_is_not_told() -> None:
    asked: dict[str, Any] = {"id": "r", "client": "x", "key": "x", "conversation": "x", "ttft": 0.5}
    assert told_event({"kind": "engine.request", "request": asked}) == {
        "kind": "engine.request",
        "request": {"id": "r", "ttft": 0.5},
    }


def test_the_zip_is_its_owners_alone_and_is_what_was_shown(home: Path) -> None:
    bundle = collect()
    target = place_of(bundle, str(home))
    before = os.umask(0)
    try:
        size = save(bundle, target)
    finally:
        os.umask(before)
    assert target.parent == home
    assert target.stat().st_size == size
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None
        shown = {f"sndr-diagnostics/{name}": text for name, text in texts(bundle).items()}
        assert {name: archive.read(name).decode() for name in archive.namelist()} == shown


def test_what_is_there_already_is_left(home: Path) -> None:
    bundle = Bundle((), (), time.time())
    (there := home / "there.zip").write_text("mine", encoding="utf-8")
    (link := home / "link.zip").symlink_to("nowhere")
    for target in (there, link):
        with pytest.raises(HostError, match="is there already") as refused:
            save(bundle, target)
        assert refused.value.reason is Reason.CONFLICT
    assert there.read_text(encoding="utf-8") == "mine"
    with pytest.raises(HostError, match="is no folder") as missing:
        save(bundle, home / "typo" / "x.zip")
    assert missing.value.reason is Reason.NOT_WRITABLE
    assert not (home / "typo").exists()


def test_a_place_that_cannot_be_written_is_a_clear_error() -> None:
    # Of /proc nobody can write, not even root.
    with pytest.raises(HostError, match="could not be saved") as refused:
        save(Bundle((), (), time.time()), Path("/proc/x.zip"))
    problem = refused.value.problem
    assert problem.reason is Reason.NOT_WRITABLE
    assert problem.fix is not None
    assert "SNDR_HOME" not in problem.fix.text


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    bundle = collect()
    with small_disk(tmp_path / "disk") as disk, disk.full():
        with pytest.raises(HostError) as refused:
            save(bundle, disk.folder / "x.zip")
        assert refused.value.reason is Reason.DISK_FULL
        assert {path.name for path in disk.folder.iterdir()} <= {"ballast"}
