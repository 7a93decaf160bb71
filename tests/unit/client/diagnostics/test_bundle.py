"""A report is collected with and without a host, and written whole or not at all."""

import json
import os
import stat
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from engine_host.client.address import RemoteAddress
from engine_host.client.diagnostics import collected
from engine_host.client.diagnostics.bundle import Bundle, collect, place_of, save
from engine_host.client.diagnostics.from_host import told_event, told_job
from engine_host.client.diagnostics.mask import Mask
from engine_host.client.diagnostics.quoting_logs import quoting_option
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.core.store import Store
from engine_host.protocol.base import Severity
from engine_host.protocol.bench.autopsy import AutopsyPage
from engine_host.protocol.bench.diagnosis import Diagnosis
from engine_host.protocol.endpoint.routes import Provider, Route, RoutePage, RouteStatus, RouteTargets
from engine_host.protocol.engines import EnginePage, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import JobKind, JobPage, JobState
from engine_host.protocol.logs import LogLine, LogPage
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
    provider = Provider(url="https://llm7.provider.example/v1", model="m", context=4096)
    route = Route(id="chat", targets=RouteTargets(provider=provider), changed_at=1.0)
    status = RouteStatus(route=route, answers=None, targets=())
    job = samples.job(JobKind.ENGINE_START, JobState.DONE)
    for path, value in {
        "hosts": RemoteHostPage(seq=0, hosts=(remote,)),
        "routes": RoutePage(seq=0, routes=(status,)),
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
    gone = remote.model_copy(update={"name": "cellar", "destination": "paul7@cellar5"})
    told = "cellar5 and cellar, of paul7 and maxine, by llm7.provider.example"
    host.answers["GET /v1/events"] = [
        {"seq": 1, "at": 1.0, **notice},
        {"seq": 2, "at": 1.0, "kind": "log.line", "lines": []},
        "no event",
        {"seq": 3, "at": 1.0, **notice, "text": told},
        {
            "seq": 4,
            "at": 1.0,
            "kind": "hosts.changed",
            "remote": gone.model_dump(mode="json"),
            "removed": True,
        },
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
    for private in (
        *(SECRET, TOKEN, "workstation", "attic", "example.org", "\x1b"),
        *("cellar", "paul7", "maxine", "llm7", "provider.example"),
    ):
        assert private not in everything
    assert "hostname" not in json.loads(found["machine.json"])
    assert found["logs/engines/engine-1.log"] == "[redacted] [redacted]\n"
    events = [json.loads(line) for line in found["events.jsonl"].splitlines()]
    assert [one["seq"] for one in events] == [1, 3, 4, 5]
    assert events[0]["text"] == "[redacted] on [host]"
    assert events[1]["text"] == "[host] and [host], of [user] and [user], by [host]"
    assert "result" not in events[3]["job"]
    for name, text in found.items():
        if name.endswith(".json"):
            json.loads(text)
        assert f"{name}, " in found["README.txt"] or name == "README.txt"


def test_of_another_machine_its_host_tells_and_it_is_masked_here(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ssh").write_text("Host deckbox\n User kaetchen\n", encoding="utf-8")
    monkeypatch.setenv("SNDR_SSH_CONFIG", str(tmp_path / "ssh"))
    here = Folders.resolve()
    here.logs.mkdir(parents=True)
    (here.logs / "host.log").write_text("lines-of-here\n", encoding="utf-8")
    (tmp_path / "there").mkdir(mode=0o700)
    with fake_host(tmp_path / "there") as host:
        answer(host)
        line = LogLine(
            source="host", number=1, at=1.0, severity=Severity.INFO, text=f"{SECRET} deckbox kaetchen gpubox"
        )
        logs = LogPage(seq=0, lines=(line,), sources=("host",))
        host.answers["GET /v1/logs"] = (200, logs.model_dump(mode="json"))
        ends = AutopsyPage(seq=0, folder="/home/wilma7/.local/share/sndr/data/autopsies", autopsies=())
        host.answers["GET /v1/autopsies"] = (200, ends.model_dump(mode="json"))
        bundle = collect(there=RemoteAddress("gpubox", host.folders.socket, host.folders.token))
    found, missing = texts(bundle), {one.name: one.why for one in bundle.missing}
    assert found["logs/host.log"] == "INFO [redacted] [host] [user] [host]\n"
    assert json.loads(found["versions.json"])["program"] == VERSION["program"]
    assert {"disks.json", "logs/engines"} < set(missing)
    everything = "\n".join((*found.values(), *missing.values()))
    for private in (SECRET, TOKEN, "gpubox", "deckbox", "attic", "lines-of-here"):
        assert private not in everything


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
    assert {"engines/starts.json", "jobs.json", "logs"} < {one.name for one in bundle.missing}
    (told,) = (one.text for one in bundle.files if one.name == "settings.json")
    assert "is not valid TOML" in told
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
    (lines,), missing = into.masked()
    assert lines.text.endswith('{"number": 49}\n')
    assert 80 < len(lines.text) <= 100
    assert [one.name for one in missing] == ["a.jsonl", "b.log"]


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


def test_machines_people_and_keys_are_known_without_a_host(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stands in the database, the settings, the ssh configuration and the files of keys."""
    folders = Folders.resolve()
    (config := home / "ssh").write_text(
        "Host rack9 *.corp7.example !other\n HostName rack9.inner.example\n User gerlinde\n"
        " ProxyJump jumper@bastion3,bastion4\nMatch originalhost loft8 exec true\n"
        "Host *\n ProxyCommand nc -X 5 -x relay6.example.org %h %p\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("SNDR_SSH_CONFIG", str(config))
    monkeypatch.setenv("MY_PROVIDER", "geheim4711")
    monkeypatch.setenv("HF_HOME", str(home))
    (home / "token").write_text("plain-words-only\n", encoding="utf-8")
    (key := home / "provider-key").write_text("no-form-of-a-key\n", encoding="utf-8")
    folders.config.mkdir(parents=True)
    folders.settings.write_text('[endpoint]\nallowed_hosts = ["desk5.example.org"]\n', encoding="utf-8")
    provider = {
        "url": "https://llm7.provider.example/v1",
        "key_variable": "MY_PROVIDER",
        "key_file": str(key),
    }
    plan = {
        "settings": [{"name": "variables", "value": ["MY_ACCOUNT=meier:geheim", "MY_PIN=47"]}],
        "argv": ["llama-server", "--chat-template", "You are the Duke of Ankh"],
        "environment": {},
        "command": "sndr run m --env MY_ACCOUNT=meier:geheim --env MY_PIN=47",
    }
    words = ["--hf-token", "refused-word-9", "--chat-template", "You are the Patrician"]
    refused = {
        "settings": [{"name": "extra_arguments", "value": words}],
        "argv": [],
        "command": f"sndr run m --set extra_arguments=--hf-token --set extra_arguments={words[1]} "
        f"--set extra_arguments=--chat-template --set 'extra_arguments={words[3]}'",
    }
    store = Store(folders.store)
    store.put("engine", "engine-2", 2.0, json.dumps({"engine": {"id": "engine-2", "plan": refused}}))
    for kind, body in {
        "remote_host": {"name": "attic", "destination": "ops7@attic7.example.org"},
        "remote_removed": {"name": "cellar", "destination": "cellar5"},
        "remote_facts": {"host": "attic", "user": "waltraud", "home": "/srv/walti"},
        "route": {"id": "chat", "targets": {"provider": provider}},
        "engine": {"engine": {"id": "engine-1", "plan": plan}},
        "job": {"id": "job-1", "command": "sndr run m --env 'OF_A_JOB=vimes:sybil and sam' --demo"},
    }.items():
        store.put(kind, "x", 1.0, json.dumps(body))
    store.close()
    private = (
        *("rack9", "corp7", "gerlinde", "jumper", "bastion3", "bastion4", "loft8", "relay6", "desk5", "llm7"),
        *(
            "attic",
            "attic7",
            "ops7",
            "cellar",
            "cellar5",
            "waltraud",
            "walti",
            "geheim4711",
            "plain-words-only",
        ),
        *("no-form-of-a-key", "meier:geheim", "MY_PIN=47", "You are the Duke of Ankh", "provider.example"),
        *("vimes:sybil and sam", "refused-word-9", "You are the Patrician"),
    )
    folders.logs.mkdir(parents=True)
    (folders.logs / "host.log").write_text("\n".join(private), encoding="utf-8")
    bundle = collect()
    everything = "\n".join(texts(bundle).values())
    assert [word for word in private if word in everything] == []
    assert "logs/host.log" in texts(bundle)
    assert "MY_PIN" in texts(bundle)["engines/starts.json"], "that there was one may explain the end"


@pytest.mark.parametrize(
    ("plan", "log"),
    [
        ({"argv": ["llama-server", "-v"]}, "all is well"),
        ({"argv": ["vllm", "--enable_log_requests"]}, "all is well"),
        ({"argv": ["vllm", "--enable-log-outputs=true"]}, "all is well"),
        ({"argv": ["llama-server", "--log-verbosity", "5"]}, "all is well"),
        ({"argv": [], "environment": {"VLLM_LOGGING_LEVEL": "DEBUG"}}, "all is well"),
        ({}, "0.02.269.837 D slot operator(): id 0 | task 1 | a riddle"),
        ({}, "parse: error parsing grammar: expecting name at a riddle"),
        ({}, "(APIServer pid=1) INFO 11-21 03:24:50 [logger.py:40] Received request cmpl-1: a riddle"),
        ({}, 'srv  log_server_r: request:  {"messages":[{"role":"user","content":"a riddle"}]}'),
    ],
)
def test_a_log_that_quotes_requests_is_left_out(plan: dict[str, Any], log: str, home: Path) -> None:
    folders = Folders.resolve()
    (logs := folders.logs / "engines").mkdir(parents=True)
    (logs / "engine-1.log").write_text(f"{log}\n", encoding="utf-8")
    (logs / "engine-2.log").write_text("0.00.1.2 I all is well\n", encoding="utf-8")
    engine = {"id": "engine-1", "plan": plan, "last_lines": [log], "problem": {"reason": "x", "message": log}}
    store = Store(folders.store)
    store.put("engine", "engine-1", 1.0, json.dumps({"engine": engine}))
    store.close()
    folders.autopsies.mkdir(parents=True)
    (folders.autopsies / "a.json").write_text(json.dumps({"id": "a", "engine": engine}), encoding="utf-8")
    bundle = collect()
    found, missing = texts(bundle), {one.name: one.why for one in bundle.missing}
    assert missing["logs/engines/engine-1.log"].startswith("Left out: ")
    assert "logs/engines/engine-2.log" in found
    for text in found.values():
        assert "riddle" not in text
    assert "all is well" not in found["autopsies/a.json"]
    assert json.loads(found["autopsies/a.json"])["engine"]["problem"] == {"reason": "x"}


@pytest.mark.parametrize(
    "argv",
    [
        ["llama-server", "--log-verbosity", "4"],
        ["vllm", "--no-enable-log-requests"],
        ["vllm", "--enable-log-requests=False"],
    ],
)
def test_the_log_of_a_usual_start_is_there(argv: list[str]) -> None:
    assert quoting_option({"argv": argv, "environment": {"VLLM_LOGGING_LEVEL": "INFO"}}) == ""
