"""A captured request as a command, read by a real shell."""

import json
import subprocess
from typing import Any

import pytest

from engine_host.gateway.inspection.curl import curl_command

BASE = "http://127.0.0.1:8020"
CHAT = "/v1/chat/completions"

HOSTILE = [
    "'; touch pwned; '",
    "$(touch pwned) `touch pwned` ${HOME} !!",
    "\x1b[201~\ntouch pwned\n",
    "\nSNDR_BODY\ntouch pwned\n",
    "\\'; touch pwned; \\",
    "\u202e\u2028\x00\x7f\x85",
    '"; touch pwned; "',
    "%s%n & | > pwned < /dev/null",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("long", [False, True])
def test_a_command_says_the_same_and_runs_nothing(text: str, long: bool, tmp_path: Any) -> None:
    body = {
        "model": text,
        "messages": [{"role": "user", "content": text}],
        text: "x" * (200_000 if long else 1),
    }
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": text, "x-evil": text}
    made = curl_command(BASE, CHAT, headers, json.dumps(body).encode())
    assert made is not None
    assert made.isascii()
    assert all(letter.isprintable() or letter == "\n" for letter in made)
    assert made.count("\n") == (2 if long else 0)
    # A real shell reads it; in the place of curl stands a FAKE that says what it was given.
    fake = tmp_path / "curl"
    fake.write_text('#!/bin/sh\nfor word; do printf "%s\\n" "$word"; done\ncase "$*" in *@-*) cat;; esac\n')
    fake.chmod(0o755)
    script = tmp_path / "pasted"
    script.write_text(made)
    ran = subprocess.run(
        ["/bin/sh", str(script)],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SNDR_API_KEY": "the key"},
        input=b"",
        capture_output=True,
        timeout=20,
        check=True,
    )
    lines = ran.stdout.decode().splitlines()
    assert json.loads(lines[-1]) == body
    assert f"{BASE}{CHAT}" in lines
    assert "authorization: Bearer the key" in lines
    assert "anthropic-version: 2023-06-01" in lines
    assert not any(line.startswith(("anthropic-beta", "x-evil")) for line in lines)
    assert not (tmp_path / "pwned").exists()
