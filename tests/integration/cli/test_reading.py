"""What reading commands print of a real host: JSON alone, in any encoding, for a reader that goes away."""

import io
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine_host.cli import main
from engine_host.cli.output import Exit
from engine_host.cli.start import host
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.core.store import Store
from engine_host.engines.process.saved_engine import SavedEngines
from engine_host.engines.process.spawn import ProcessRecord
from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Reason
from tests.integration.host_process import serving, sndr
from tests.plan_samples import engine_of, plain_plan

NAME = "größe…模型\U0001f600"
KEY = "größe 模型"
PRESET = "qwen3-8b-k8v4-24"
READING = (
    *("alerts", "autopsy", "autostart show", "bench list", "bench quality --list", "bench sweeps"),
    *("chats list", "connect", "diagnostics --preview", "doctor", "engine list", "engine pin", "events"),
    *("events --all", "fit sndr-demo-q8-0", "gpu power", "host candidates", "host list", "host sheet gpu"),
    *("jobs", "keys list", "logs host", "models", "models downloads", "models list", "on-demand list"),
    *("patches list", "patches show json-whitespace-limit", "presets hardware", "presets list"),
    *(f"presets resolve {PRESET} --hardware rtx-3090", f"presets show {PRESET}", "presets verdicts"),
    *("prove --list", "render demo-llamacpp --target shell", "requests", "requests capture"),
    *("requests list", "requests prefix", "routes list", "run --demo --dry-run", "services list"),
    *("settings check", "settings get", "settings get models.folders", "setup", "status", "status --all"),
    *("telemetry energy", "telemetry memory", "top --once", "version"),
)
NEAR = {
    "fit --preset qwen3-8b-k8v4-42": PRESET,
    "host facts gqu": "gpu",
    "--host gqu status": "gpu",
    "host rollback codr": "coder",
    "host connect gqu": "gpu",
    "models verify sndr-demo-q8": "sndr-demo-q8-0",
    "on-demand load smal": "small",
    "patches list --family attenton": "attention",
    "patches show json-whitespace-limt": "json-whitespace-limit",
    "presets show qwen3-8b-k8v4-42": PRESET,
    "routes back codr": "coder",
    "run sndr-demo-q8": "the model sndr-demo-q8-0",
}
# Answered without a host, too; what is free now is another at each look, so fit is asked of named GPUs.
ALONE = (
    *("fit --preset qwen3-8b-k8v4-24 --hardware rtx-3090", "fit --starts", "fit sndr-demo-q8-0 --gpu 24"),
    *("fit nowhere", "models list", "models --scan", "patches check", "patches list"),
    "patches list --family attenton",
    f"patches plan --preset {PRESET} --hardware rtx-3090",
    *("patches show json-whitespace-limit", "presets export demo-llamacpp", "presets hardware"),
    *("presets lint", "presets list --engine vllm", "presets show nope", f"presets show {PRESET}"),
    *(f"presets resolve {PRESET} --hardware rtx-3090", "presets verdicts --hardware l4"),
)
Ran = tuple[int, bytes, str]


@contextmanager
def streams(out: "io.BufferedIOBase | io.RawIOBase", encoding: str) -> Iterator[io.StringIO]:
    """Let the program print to a stream in an encoding that refuses what it lacks; what it says aside."""
    err, kept = io.StringIO(), (sys.stdin, sys.stdout, sys.stderr)
    sys.stdin, sys.stderr = io.StringIO(), err
    sys.stdout = io.TextIOWrapper(out, encoding=encoding, errors="strict")
    try:
        yield err
    finally:
        # Otherwise it is flushed once more where nobody expects it.
        sys.stdout.detach()
        sys.stdin, sys.stdout, sys.stderr = kept


def ran(*words: str, encoding: str = "utf-8") -> Ran:
    """Run a command here; its exit code, what it printed, and what it said aside."""
    with io.BytesIO() as out, streams(out, encoding) as err:
        code = main(words)
        sys.stdout.flush()
        return code, out.getvalue(), err.getvalue()


def without_reader(*words: str) -> tuple[int, str]:
    """Run a command whose output nobody reads any more."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb", buffering=0) as pipe, streams(pipe, "utf-8") as err:
        return main(words), err.getvalue()


def faults_of(words: list[str]) -> Iterator[str]:
    """Yield what is wrong with the output of a reading command."""
    code, out, err = ran(*words)
    if code not in (Exit.OK, Exit.NOT_FOUND, Exit.ENGINE):
        yield f"ended with {code}: {err}"
    told = b"" if code == Exit.NOT_FOUND else out
    again, _, err = ran(*words, encoding="ascii")
    if again != code:
        yield f"in ascii it ended with {again}: {err}"
    for encoding in ("utf-8", "ascii"):
        again, out, err = ran(*words, "--json", encoding=encoding)
        try:
            values = [json.loads(line) for line in out.decode(encoding).splitlines()]
        except ValueError as error:
            yield f"--json in {encoding} is no JSON: {error}"
            continue
        if err or again != code or not (values or words[0] == "events"):
            yield f"--json in {encoding} ended with {again} and said {err!r}"
    for form in ([], ["--json"]):
        again, err = without_reader(*words, *form)
        if again != Exit.PIPE_CLOSED and (told or form):
            yield f"without a reader {form} ended with {again}: {err}"
        if "Traceback" in err or "Error" in err:
            yield f"without a reader it said {err}"


def without_seq(printed: bytes) -> bytes:
    """Return what was printed without the number of the newest event, which only a host has."""
    return re.sub(rb'"seq": ?\d+', b'"seq": 0', printed)


def without_waiting(said: str) -> str:
    """Return what was said aside without what a busy machine has it wait for."""
    return "".join(
        line for line in said.splitlines(True) if not line.startswith(("At work: ", "Waiting for"))
    )


def test_what_only_reads_is_the_same_without_a_host_and_starts_none(home: Path) -> None:
    asked = [[*line.split(), *form] for line in ALONE for form in ([], ["--json"])]
    alone = [ran(*words) for words in asked]
    assert not Folders.resolve().token.exists()
    assert not Folders.resolve().logs.exists()
    with serving(LC_ALL="C"):
        for words, (code, out, err) in zip(asked, alone, strict=True):
            again, of_host, said = ran(*words)
            assert (code, without_waiting(err)) == (again, without_waiting(said)), words
            assert without_seq(out) == without_seq(of_host), words


def test_a_host_says_what_the_engines_hold_that_an_earlier_one_left(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(Folders.resolve().store)
    saved = engine_of(plain_plan(), EngineState.READY)
    SavedEngines(store).save(saved, ProcessRecord(1234, "b/1"), "")
    store.close()

    def started(folders: Folders, daemon: bool) -> None:
        raise HostError(Reason.HOST_GONE, "A host was started.")

    monkeypatch.setattr(host, "_find_or_start", started)
    for words in ("fit sndr-demo-q8-0", "presets verdicts"):
        assert "A host was started." in ran(*words.split())[2]
    assert ran("models", "list")[0] == Exit.OK


def test_reading_commands_print_for_programs_any_terminal_and_nobody(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    with serving(LC_ALL="C"):
        for words in (
            ["keys", "create", KEY],
            ["host", "add", "gpu", "--notes", NAME],
            ["routes", "set", "coder", "nobody", "--anyway"],
            ["on-demand", "add", "sndr-demo-q8-0", "--name", "small"],
            ["settings", "set", "models.folders", json.dumps([str(home / NAME)])],
        ):
            code, _, err = ran(*words)
            assert code == 0, err
        faults = {line: found for line in READING if (found := list(faults_of(line.split())))}
        assert not faults, "\n".join(f"{line}: {found}" for line, found in faults.items())
        for line, name in NEAR.items():
            code, _, err = ran(*line.split())
            assert code == Exit.NOT_FOUND
            assert f"Did you mean {name}" in err, (line, err)
        # A shell without a language: the signs are kept, on the way in and out.
        assert KEY in sndr("keys", "list", LC_ALL="C").out
        assert sndr("keys", "revoke", KEY, LC_ALL="C").code == 0
