"""A real shell reads back what `sndr connect` writes for it, whatever the names of models hold."""

import subprocess
from pathlib import Path

import pytest

from engine_host.connect.clients.table import client_named
from engine_host.connect.facts import Facts
from engine_host.connect.machine import Machine
from engine_host.connect.settings import settings_of
from engine_host.connect.shells import Shell, lines

VALUE = 'it\'s "a" \\ $(id) `id` $HOME !x %y \u2019 \n é'
HOSTILE = Facts("http://127.0.0.1:8020/v1", VALUE.replace("\n", ""), 4096, key_needed=False)


def test_a_shell_reads_back_what_was_written() -> None:
    text = "\n".join(lines({"A": VALUE, "B": "$OTHER"}, Shell.SH))
    script = f"OTHER='two words'\n{text}\nprintf '%s|%s' \"$A\" \"$B\""
    ran = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    assert ran.stdout.decode() == f"{VALUE}|two words"


@pytest.mark.parametrize("name", ["curl", "env", "open-webui"])
def test_what_is_to_be_copied_into_a_shell_is_whole(name: str) -> None:
    machine = Machine(Path("/person"), "linux", {})
    text = settings_of(client_named(name), machine, HOSTILE).texts[0].text
    checked = subprocess.run(["sh", "-n"], input=text.encode(), capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b"")
