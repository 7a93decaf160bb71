"""Terminals that lack a sign, and words that are not UTF-8: real processes, whose streams Python chooses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.fake_host import FakeHost

SNDR = [sys.executable, "-m", "engine_host"]


def ran(home: Path, *words: str | bytes, encoding: str = "", given: bytes = b"") -> tuple[int, bytes, str]:
    """Run a command with standard streams of an encoding; its exit code, stdout and stderr."""
    environment = {**os.environ, "SNDR_HOME": str(home)}
    if encoding:
        environment["PYTHONIOENCODING"] = encoding
    done = subprocess.run([*SNDR, *words], input=given, capture_output=True, env=environment)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


@pytest.mark.parametrize("encoding", ["iso-8859-1", "ascii", "utf-8"])
def test_help_is_shown_in_any_encoding(home: Path, encoding: str) -> None:
    code, out, err = ran(home, "fit", "--help", encoding=encoding)
    assert (code, err) == (0, "")
    assert b"turboquant_k8v4" in out


@pytest.mark.parametrize("encoding", ["iso-8859-1", "utf-8"])
def test_json_keeps_every_sign_in_any_encoding(home: Path, host: FakeHost, encoding: str) -> None:
    model = "größer…\U0001f600"
    job = {
        "id": "j",
        "kind": "engine.build",
        "touches": "x",
        "state": "done",
        "title": model,
        "created_at": 0,
    }
    host.answers["GET /v1/jobs"] = (200, {"seq": 0, "jobs": [job]})
    code, out, err = ran(home, "jobs", "--json", encoding=encoding)
    assert (code, err) == (0, "")
    assert json.loads(out.decode(encoding))["jobs"][0]["title"] == model


@pytest.mark.parametrize("words", [("chat",), ("chat", b"gr\xfc\xdfe"), ("chat", "--system", b"\xff", "Hi")])
@pytest.mark.usefixtures("host")
def test_what_is_no_utf8_is_refused_in_a_sentence(home: Path, words: tuple[str | bytes, ...]) -> None:
    words = (*words, "--model", "demo")
    code, out, err = ran(home, *words, given=b"gr\xfc\xdfe", encoding="utf-8:strict")
    assert (code, out) == (2, b"")
    assert err.startswith("Error: What was given is not text in UTF-8")
    code, out, err = ran(home, *words, "--json", given=b"gr\xfc\xdfe", encoding="utf-8:strict")
    assert (code, err) == (2, "")
    assert json.loads(out)["error"]["reason"] == "bad_request"
