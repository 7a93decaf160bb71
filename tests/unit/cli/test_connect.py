"""`sndr connect` with a host of canned answers: what is printed, written and undone in a home of its own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
MODELS = {
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


def test_settings_go_to_the_output_and_the_rest_beside_it(sndr: Sndr, person: Path) -> None:
    code, out, err = sndr("connect", "opencode", "--url", "https://box.example.org/llm/")
    assert code == 0
    assert json.loads(out)["provider"]["sndr"]["options"]["baseURL"] == "https://box.example.org/llm/v1"
    assert "NODE_EXTRA_CA_CERTS" in err
    code, out, _ = sndr("connect", "env", "--shell", "fish")
    assert (code, out.splitlines()[0]) == (0, "set -gx OPENAI_BASE_URL 'http://127.0.0.1:8020/v1'")
    assert list(person.iterdir()) == []


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
