"""`sndr connect` with a host of canned answers: what is printed, written and undone in a home of its own."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine_host.connect.words import outcome_of
from engine_host.protocol.endpoint.connect import ProbeOutcome, ProbeReport, ProbeStep
from tests.unit.cli.fake_host import FakeHost

Sndr = Callable[..., tuple[int, str, str]]
ENDPOINT = {
    "url": "http://127.0.0.1:8020/v1", "local_url": "http://127.0.0.1:8020/v1", "host": "127.0.0.1",
    "port": 8020, "wanted_port": 8020, "reach": "this_machine", "key_required": False,
}  # fmt: skip
HOST: dict[str, Any] = {
    "seq": 1, "run_id": "r", "program": "0.1.0", "pid": 1, "started_at": 1.0, "hostname": "h", "os": "o",
    "python": "p", "cpu_name": "c", "cpu_cores": 1, "cpu_threads": 1, "ram_total": 1, "ram_used": 1,
    "gpus": [], "gpu_absence": "no_driver", "driver": None, "cuda": None, "run_folder": "/r",
    "data_folder": "/d", "log_folder": "/l", "endpoint": ENDPOINT, "ends_with_window": False,
}  # fmt: skip
MODELS: dict[str, Any] = {
    "seq": 1,
    "models": [{"id": "qwen", "context": 65536, "chat": True, "tools": True, "images": False}],
}


@pytest.fixture
def person(host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's empty home folder, and a host with a model."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "OPENCODE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    host.answers["GET /v1/host"] = (200, HOST)
    host.answers["GET /v1/endpoint/models"] = (200, MODELS)
    return tmp_path


def test_write_and_undo(sndr: Sndr, person: Path) -> None:
    folder = person / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").write_text('{\n  // mine\n  "theme": "x"\n}\n')
    code, _, err = sndr("connect", "opencode", "--write")
    assert (code, "--write --yes" in err) == (6, True), "nobody can be asked in a test"
    assert '+  "provider": {' in err
    code, out, _ = sndr("connect", "opencode", "--write", "--yes", "--json")
    done = json.loads(out)
    assert (code, done["done"], done["files"][0]["backup"]) == (
        0,
        True,
        f"{folder}/opencode.jsonc.sndr-backup",
    )
    code, out, _ = sndr("connect", "--json")
    entry = next(one for one in json.loads(out)["clients"] if one["name"] == "opencode")
    assert (code, entry["state"], entry["undo"], entry["found"]) == (0, "connected", True, [str(folder)])
    assert "already" in sndr("connect", "opencode", "--write")[1]
    assert sndr("connect", "opencode", "--undo")[0] == 0
    assert (folder / "opencode.jsonc").read_text() == '{\n  // mine\n  "theme": "x"\n}\n'
    assert [path.name for path in folder.iterdir()] == ["opencode.jsonc"]
    assert sndr("connect", "opencode", "--undo")[0] == 4
    (folder / "opencode.jsonc").unlink()
    assert sndr("connect", "opencode", "--write", "--yes")[0] == 0
    code, out, _ = sndr("connect", "opencode", "--undo")
    assert (code, "Removed: " in out, "Put back" in out) == (0, True, False), "there was none before"


def test_settings_go_to_the_output_and_the_rest_beside_it(sndr: Sndr, person: Path) -> None:
    code, out, err = sndr("connect", "opencode", "--url", "https://box.example.org/llm/")
    assert code == 0
    assert json.loads(out)["provider"]["sndr"]["options"]["baseURL"] == "https://box.example.org/llm/v1"
    assert "NODE_EXTRA_CA_CERTS" in err
    code, out, _ = sndr("connect", "env", "--shell", "fish")
    assert (code, out.splitlines()[0]) == (0, "set -gx OPENAI_BASE_URL 'http://127.0.0.1:8020/v1'")
    assert list(person.iterdir()) == []
    assert "# Left out: " in out.splitlines()[-1], (
        "an Ollama and a Claude Code of that shell go where they went"
    )
    assert not {"OLLAMA_HOST", "ANTHROPIC_BASE_URL"} & set(out.split("# Left out")[0].split())
    whole = sndr("connect", "env", "--shell", "sh", "--for", "all")[1]
    for name in ("OPENAI_BASE_URL", "OLLAMA_HOST", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN"):
        assert f"export {name}=" in whole
    assert sndr("connect", "env", "--shell", "sh", "--for", "ollama")[1].startswith("export OLLAMA_HOST=")


def test_an_empty_key_is_told_where_one_is_needed(
    sndr: Sndr, host: FakeHost, person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SNDR_API_KEY", raising=False)
    assert "401" not in sndr("connect", "env")[2]
    host.answers["GET /v1/host"] = (200, {**HOST, "endpoint": {**ENDPOINT, "key_required": True}})
    code, out, err = sndr("connect", "env", "--shell", "fish")
    assert code == 0
    assert "401" in err
    assert "set -gx SNDR_API_KEY 'KEY'" in err, "in the words of the shell"
    assert "401" not in out, "which the shell reads"
    monkeypatch.setenv("SNDR_API_KEY", "sndr-x")
    assert "401" not in sndr("connect", "env")[2]


def test_a_key_that_no_header_carries_is_refused_and_not_shown(
    sndr: Sndr, person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNDR_API_KEY", "sk-secret\r\nx")
    code, out, err = sndr("connect", "claude", "--probe")
    assert code != 0
    assert "SNDR_API_KEY holds no key" in err
    assert "secret" not in out + err


def test_the_list_needs_no_host(
    sndr: Sndr, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    code, out, err = sndr("connect")
    assert (code, "Claude Code" in out, "No engine host runs" in err) == (0, True, True)
    assert sndr("connect", "opencode")[0] == 3
    code, _, err = sndr("connect", "cursor")
    assert (code, "its own servers" in err) == (2, True)


def test_a_model_that_does_not_run_is_no_guess(sndr: Sndr, host: FakeHost, person: Path) -> None:
    host.answers["GET /v1/endpoint/models"] = (200, {"seq": 1, "models": []})
    code, _, err = sndr("connect", "codex")
    assert (code, "never a guess" in err) == (4, True)
    assert "No model runs" in sndr("connect")[2]


@pytest.mark.parametrize("words", [("--write",), ("--undo",), ("codex", "--write", "--undo"), ("nobody",)])
def test_what_makes_no_sense_is_refused(sndr: Sndr, home: Path, words: tuple[str, ...]) -> None:
    code, _, err = sndr("connect", *words)
    assert code in {2, 4}
    assert "Traceback" not in err


def test_what_is_set_already_and_what_is_broken_is_said_first(sndr: Sndr, person: Path) -> None:
    assert sndr("connect", "codex", "--write", "--yes")[0] == 0
    code, _, err = sndr("connect", "codex")
    assert code == 0
    assert err.index("Set to this endpoint (") < len(err) / 2
    assert "Write it:" not in err
    (person / ".codex" / "config.toml").write_text("[broken")
    code, _, err = sndr("connect", "codex")
    assert (code, "is left alone" in err) == (0, True)
    assert "Write it:" not in err
    (person / ".codex" / "config.toml").write_text("")
    assert "Write it: sndr connect codex --write" in sndr("connect", "codex")[2]


def test_an_edited_file_is_undone_when_that_is_said_and_kept(sndr: Sndr, person: Path) -> None:
    sndr("connect", "codex", "--write", "--yes")
    file = person / ".codex" / "config.toml"
    file.write_text(edited := file.read_text() + "mine = 1\n")
    code, _, err = sndr("connect", "codex", "--undo")
    assert (code, "--undo --yes" in err) == (6, True), "nobody can be asked in a test"
    assert file.read_text() == edited
    code, out, _ = sndr("connect", "codex", "--undo", "--yes")
    assert (code, "what stood there is in" in out) == (0, True)
    assert not file.exists()
    assert file.with_name("config.toml.sndr-undone").read_text() == edited


@pytest.mark.parametrize("answer", ["y\n", "n\n"])
def test_what_undoing_would_lose_is_shown_before_the_question(
    sndr: Sndr, person: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    sndr("connect", "codex", "--write", "--yes")
    file = person / ".codex" / "config.toml"
    file.write_text(file.read_text() + "mine = 1\n")
    monkeypatch.setattr("engine_host.cli.connect._can_ask", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    code, _, err = sndr("connect", "codex", "--undo")
    assert "-mine = 1" in err
    assert (code, file.exists()) == ((0, False) if answer == "y\n" else (130, True))


def test_of_several_models_it_says_which(sndr: Sndr, host: FakeHost, person: Path) -> None:
    other = {"id": "other", "context": 4096, "chat": True}
    host.answers["GET /v1/endpoint/models"] = (200, {"seq": 1, "models": [*MODELS["models"], other]})
    code, out, err = sndr("connect", "env")
    assert (code, err) == (0, "The model is qwen; --model takes another: other.\n")
    assert "takes another" not in out
    assert sndr("connect", "env", "--model", "other")[2] == ""


def test_a_model_that_a_request_loads_can_be_told(sndr: Sndr, host: FakeHost, person: Path) -> None:
    asked = {"id": "asked", "context": 16384, "chat": True, "on_demand": True}
    host.answers["GET /v1/endpoint/models"] = (200, {"seq": 1, "models": [*MODELS["models"], asked]})
    code, out, err = sndr("connect", "opencode", "--model", "asked")
    assert (code, "16384" in out) == (0, True)
    assert "the first request for it loads it" in err
    host.answers["GET /v1/endpoint/models"] = (200, {"seq": 1, "models": [asked]})
    assert "asked at http" in sndr("connect", "opencode")[2]
    code, _, err = sndr("connect", "opencode", "--model", "other")
    assert (code, "Those that can be asked: asked." in err) == (4, True)


def test_a_probe_claims_no_more_than_was_seen() -> None:
    def report(*outcomes: ProbeOutcome, warnings: tuple[str, ...] = ()) -> ProbeReport:
        steps = tuple(ProbeStep(name=f"step {one}", outcome=one, detail="") for one in outcomes)
        return ProbeReport(client="c", dialect="d", url="u", model="m", steps=steps, warnings=warnings)

    passed, failed, unclear = ProbeOutcome.PASSED, ProbeOutcome.FAILED, ProbeOutcome.UNCLEAR
    assert outcome_of(report(passed, passed)) == "All of it works."
    assert outcome_of(report(passed, failed)) == "Not all of it works."
    assert "step unclear" in outcome_of(report(passed, unclear))
    assert outcome_of(report(passed, warnings=("short",))) == "Nothing failed. Mind the warning above."


def test_help_cuts_no_sentence(sndr: Sndr) -> None:
    for words in ((), ("routes",), ("on-demand",), ("presets",), ("requests",)):
        assert "..." not in sndr(*words, "--help")[1].partition("Commands:")[2].partition("Exit codes")[0]
