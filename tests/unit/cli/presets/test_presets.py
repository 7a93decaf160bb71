"""`sndr presets` against a host of canned answers, which the real catalogue gave."""

import asyncio
import hashlib
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.package_data import presets
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.presets.consents import PresetConsents
from engine_host.operations.presets.own import OwnPresetOperations
from engine_host.protocol.presets import ImportPreset, LintPreset, ResolvePreset, SavePreset
from tests.unit.cli.fake_host import FakeHost

Sndr = Callable[..., tuple[int, str, str]]
MINE = "format: 1\nid: mine\ntitle: Mine\nextends: demo-llamacpp\nsettings:\n  context: 4096\n"


@pytest.fixture
def services(tmp_path: Path) -> PresetOperations:
    """The real catalogue, with a folder of its own for a person's presets."""
    return PresetOperations(
        presets, tmp_path / "own", SettingsFile(tmp_path / "settings.toml"), EventLog(), lambda: ()
    )


@pytest.fixture
def own(services: PresetOperations, tmp_path: Path) -> OwnPresetOperations:
    """The person's own presets in that folder."""
    return OwnPresetOperations(services, PresetConsents(Store(tmp_path / "store.sqlite")))


def said(answer: Any) -> tuple[int, Any]:
    """Return the result of a service's coroutine, as an answer of the host."""
    return 200, asyncio.run(answer).model_dump(mode="json")


def test_lists_and_narrows(host: FakeHost, sndr: Sndr, services: PresetOperations) -> None:
    host.answers["GET /v1/presets"] = said(services.page())
    code, out, _ = sndr("presets", "list")
    assert code == 0
    assert len(out.splitlines()) > 30
    _, out, _ = sndr("presets", "list", "--gpus", "1", "--vram", "12", "--engine", "llama.cpp")
    listed, legend = out.split("\n\n")
    assert [line.split()[0] for line in listed.splitlines()[1:]] == [
        "demo-llamacpp",
        "llama-3.1-8b-q4-12",
        "qwen2.5-coder-7b-12",
        "qwen3-embedding-0.6b-cpu",
    ]
    # Each status that is listed is explained, and no other.
    statuses = {line.split()[1] for line in listed.splitlines()[1:]}
    assert {line.split(":")[0] for line in legend.splitlines()} == statuses
    _, out, _ = sndr("presets", "list", "--status", "verified", "--json")
    assert {item["preset"]["id"] for item in json.loads(out)["presets"]} == {"demo-llamacpp", "demo-vllm"}
    _, out, _ = sndr("presets", "list", "--family", "none")
    assert out == "No preset is like that.\n"


def test_shows_the_card_and_where_settings_are_from(
    host: FakeHost, sndr: Sndr, services: PresetOperations
) -> None:
    host.answers["GET /v1/presets/qwen3.6-27b-q4-24"] = said(services.detail("qwen3.6-27b-q4-24"))
    code, out, _ = sndr("presets", "show", "qwen3.6-27b-q4-24")
    assert code == 0
    for part in ("caveat: ", "not when several people share it", "reported by others", "15.9 GiB"):
        assert part in out
    assert "presets/presets/qwen3.6-27b-q4-24.yaml:" in out
    assert "needs a GPU of 24 GiB" in out
    assert "reported to run on rtx-3090" in out
    host.answers["GET /v1/presets/demo-llamacpp"] = said(services.detail("demo-llamacpp"))
    _, out, _ = sndr("presets", "show", "demo-llamacpp")
    assert "needs a CPU, 1 GiB of RAM" in out
    assert "measured by the project: " in out


def test_resolves_with_overrides_and_says_conflicts(
    host: FakeHost, sndr: Sndr, services: PresetOperations
) -> None:
    received = ResolvePreset.model_validate(
        {"preset": "demo-llamacpp", "hardware": "l4", "overrides": {"context": 9000}}
    )
    host.answers["POST /v1/presets/resolve"] = said(services.resolve(received))
    code, out, _ = sndr("presets", "resolve", "demo-llamacpp", "--hardware", "l4", "--set", "context=9000")
    assert code == 2
    assert "Conflict: context is 9000 by the layer override" in out
    assert "8192 (preset)" in out
    sent = host.received[-1][2]
    assert (sent["hardware"], sent.get("count"), sent["overrides"]["context"]) == ("l4", None, 9000)
    code, _, err = sndr("presets", "resolve", "demo-llamacpp", "--set", "contxt=9")
    assert code == 2
    assert "context" in err


def test_what_the_hardware_lacks_is_an_exit_code_too(
    host: FakeHost, sndr: Sndr, services: PresetOperations
) -> None:
    received = ResolvePreset(preset="qwen3.6-27b-q4-24", hardware="here")
    host.answers["POST /v1/presets/resolve"] = said(services.resolve(received))
    code, out, _ = sndr("presets", "resolve", received.preset, "--hardware", "here")
    assert (code, "Error: It needs a GPU of 24 GiB; this machine has none." in out) == (5, True)
    plain = said(services.resolve(ResolvePreset(preset=received.preset)))
    host.answers["POST /v1/presets/resolve"] = plain
    assert sndr("presets", "resolve", received.preset)[0] == 0


def test_lints_files_and_the_catalogue(
    host: FakeHost, sndr: Sndr, services: PresetOperations, own: OwnPresetOperations, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(MINE)
    bad.write_text(MINE.replace("context", "contxt"))
    host.answers["POST /v1/presets/lint"] = said(own.lint(LintPreset(text=good.read_text())))
    assert sndr("presets", "lint", str(good))[:2] == (0, "Nothing is wrong in 1 preset.\n")
    host.answers["POST /v1/presets/lint"] = said(own.lint(LintPreset(text=bad.read_text())))
    code, out, _ = sndr("presets", "lint", str(bad))
    assert code == 2
    assert f"error {bad}:6: settings.contxt: there is no such key." in out
    assert "Did you mean context?" in out
    bad.write_text(asyncio.run(own.export("demo-llamacpp")).text)
    host.answers["POST /v1/presets/lint"] = said(own.lint(LintPreset(text=bad.read_text())))
    assert "sndr presets import" in sndr("presets", "lint", str(bad))[1]
    bad.write_text(MINE.replace("context", "contxt"))
    host.answers["POST /v1/presets/lint"] = said(own.lint(LintPreset(text=bad.read_text())))
    code, out, _ = sndr("presets", "lint", str(bad), "--json")
    assert json.loads(out)["faults"][0]["line"] == 6
    code, _, err = sndr("presets", "lint", str(tmp_path / "gone.yaml"))
    assert (code, "What to do: Check the path" in err) == (4, True)
    _, _, err = sndr("presets", "lint", str(tmp_path))
    assert "is a folder, not a file.\n  What to do: Name the files in it." in err
    host.answers["GET /v1/presets"] = said(services.page())
    resolved = services.resolve(ResolvePreset(preset="demo-llamacpp"))
    host.answers["POST /v1/presets/resolve"] = said(resolved)
    assert sndr("presets", "lint")[0] == 0


def test_exports_and_imports(host: FakeHost, sndr: Sndr, own: OwnPresetOperations, tmp_path: Path) -> None:
    host.answers["GET /v1/presets/demo-vllm/export"] = said(own.export("demo-vllm"))
    file = tmp_path / "demo.yaml"
    assert sndr("presets", "export", "demo-vllm", "-o", str(file))[0] == 0
    code, _, err = sndr("presets", "export", "demo-vllm", "-o", str(file))
    assert (code, "is there already" in err) == (6, True)
    assert f"$ sndr presets export demo-vllm -o {file} --replace" in err
    code, _, err = sndr("presets", "export", "demo-vllm", "-o", str(tmp_path / "no" / "where.yaml"))
    assert (code, "$ sndr presets export demo-vllm -o demo-vllm.yaml" in err) == (7, True)
    assert sndr("presets", "export", "demo-vllm", "-o", str(file), "--replace")[0] == 0
    code, out, _ = sndr("presets", "export", "demo-vllm")
    assert out == file.read_text()
    taken = own.take_in(ImportPreset(text=out, id="mine"))
    host.answers["POST /v1/presets/import"] = said(taken)
    code, out, _ = sndr("presets", "import", str(file), "--as", "mine")
    assert (code, out.startswith("mine: wrote ")) == (0, True)
    assert host.received[-1][2] == {"text": file.read_text(), "id": "mine"}


def test_saves_what_is_right(host: FakeHost, sndr: Sndr, own: OwnPresetOperations, tmp_path: Path) -> None:
    file = tmp_path / "any-name.yaml"
    file.write_text(MINE.replace("context", "contxt"))
    host.answers["POST /v1/presets/lint"] = said(own.lint(LintPreset(text=file.read_text())))
    code, out, err = sndr("presets", "save", str(file))
    assert (code, out, err.startswith(f"error {file}:6: settings.contxt")) == (2, "", True)
    file.write_text(MINE)
    host.answers["POST /v1/presets/lint"] = said(own.lint(LintPreset(text=MINE)))
    host.answers["PUT /v1/presets/mine"] = said(own.save("mine", SavePreset(text=MINE)))
    code, out, _ = sndr("presets", "save", str(file))
    assert (code, out.startswith("mine is saved (")) == (0, True)
    assert host.received[-1][2] == {"text": MINE}
    assert sndr("presets", "save", str(file), "--replace")[0] == 0
    assert host.received[-1][2].get("digest") is None
    host.answers["GET /v1/presets/mine/file"] = said(own.file("mine"))
    assert sndr("presets", "save", str(file), "--replace")[0] == 0
    assert host.received[-1][2]["digest"]


def test_hardware_and_removing(host: FakeHost, sndr: Sndr, services: PresetOperations) -> None:
    host.answers["GET /v1/catalog"] = said(services.entries())
    code, out, _ = sndr("presets", "hardware")
    assert code == 0
    assert any(line.startswith("h200 ") and "140 GiB" in line for line in out.splitlines())
    host.answers["DELETE /v1/presets/mine"] = (200, {"id": "mine", "file": "own/mine.yaml"})
    assert sndr("presets", "remove", "mine")[:2] == (0, "mine is removed (own/mine.yaml).\n")


def _asking(own: OwnPresetOperations, host: FakeHost, tmp_path: Path) -> Path:
    """Put what somebody else exports into a file, and the real answers to taking it in behind the route."""
    (tmp_path / "own").mkdir()
    mine = tmp_path / "own" / "mine.yaml"
    mine.write_text(MINE + "  extra_arguments: [--tools, all, --made-up]\n")
    file = tmp_path / "theirs.yaml"
    file.write_text(asyncio.run(own.export("mine")).text)
    mine.unlink()

    with pytest.raises(HostError) as caught:
        asyncio.run(own.take_in(ImportPreset(text=file.read_text())))
    problem = caught.value.problem

    def answer() -> tuple[int, Any]:
        if host.received[-1][2].get("consent") == problem.evidence["digest"]:
            return 200, {"id": "mine", "written": ["own/mine.yaml"]}
        return 403, {"error": problem.model_dump(mode="json")}

    host.answers["POST /v1/presets/import"] = answer
    return file


def test_what_a_file_asks_for_is_shown_and_needs_consent(
    host: FakeHost, sndr: Sndr, own: OwnPresetOperations, tmp_path: Path
) -> None:
    file = _asking(own, host, tmp_path)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    code, _, err = sndr("presets", "import", str(file), "--as", "theirs")
    assert code == 6
    assert "  --tools all  (line " in err
    assert "      Lets the model run shell commands" in err
    assert "      This program does not know this flag" in err
    assert f"$ sndr presets import {file} --as theirs --accept {digest}" in err
    code, out, _ = sndr("presets", "import", str(file), "--json")
    assert (code, json.loads(out)["error"]["evidence"]["digest"]) == (6, digest)
    assert sndr("presets", "import", str(file), "--accept", "0" * 64)[0] == 6
    assert sndr("presets", "import", str(file), "--as", "theirs", "--accept", digest)[0] == 0


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 6), ("\n", 6)])
def test_at_a_terminal_a_person_is_asked(
    host: FakeHost,
    sndr: Sndr,
    own: OwnPresetOperations,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    code: int,
) -> None:
    file = _asking(own, host, tmp_path)
    terminal = io.StringIO(answer)
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _self: True, raising=False)
    assert sndr("presets", "import", str(file))[0] == code


def test_a_file_that_is_kept_as_ones_own_is_shown_first(
    host: FakeHost, sndr: Sndr, own: OwnPresetOperations, tmp_path: Path
) -> None:
    text = MINE + "  extra_arguments: [--tools, all]\n"
    file = tmp_path / "theirs.yaml"
    file.write_text(text)
    host.answers["POST /v1/presets/lint"] = said(own.lint(LintPreset(text=text)))
    host.answers["PUT /v1/presets/mine"] = said(own.save("mine", SavePreset(text=text)))
    code, _, err = sndr("presets", "save", str(file))
    assert (code, f"{file} asks for:" in err, "--tools all" in err) == (6, True, True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert sndr("presets", "save", str(file), "--accept", digest)[0] == 0
