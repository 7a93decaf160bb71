"""The manual page: it tells of every command, and no word of it is taken for a request of roff."""

import re
from collections.abc import Callable
from types import ModuleType

Script = Callable[[str], ModuleType]
_REQUEST = re.compile(r"\.(TH|SH|SS|TP|PP|B|ad l|nh|nf|fi)\b")


def test_the_manual_tells_of_every_command_and_option(script: Script) -> None:
    text = script("shell_files").manual("2026-11-27")
    for command in ("sndr run", "sndr bench compare", "sndr host install", r"sndr on\-demand list"):
        assert f"\n.SS \\fB{command}\\fR" in text
    assert text.startswith('.TH SNDR 1 "2026-11-27"')
    assert r"\fB\-\-context\fR INTEGER RANGE" in text
    assert "\n.PP\n.nf\nExamples:\n  sndr bench compare 20261126 latest\n  sndr bench" in text
    assert "\n.SH EXIT STATUS\n" in text
    lines = text.splitlines()
    assert [line for line in lines if line.startswith((".", "'")) and not _REQUEST.match(line)] == []
    assert not [line for line in lines if re.search(r"(?<!\\)-", line) and ".TH" not in line]
    assert "\x08" not in text


def test_words_that_look_like_requests_are_words(script: Script) -> None:
    shell = script("shell_files")
    assert shell._escaped(".so /etc/passwd") == r"\&.so /etc/\:passwd"
    assert shell._escaped("'a\\b - c") == r"\&'a\eb \- c"
