"""What reading commands print of a real host: JSON alone, in any encoding, for a reader that goes away."""

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine_host.cli import main
from engine_host.cli.output import Exit
from tests.integration.host_process import serving, sndr

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
