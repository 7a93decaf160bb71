"""Variables in a shell's words: what a value holds is never more than text."""

import pytest

from engine_host.connect.shells import NAMES, Shell, lines


def test_fish_and_powershell() -> None:
    assert lines({"A": "it's \\ $x", "B": "$OTHER"}, Shell.FISH) == [
        "set -gx A 'it\\'s \\\\ $x'", "set -gx B $OTHER",
    ]  # fmt: skip
    assert lines({"A": "it's \u2019 $x", "B": "$OTHER"}, Shell.POWERSHELL) == [
        "$env:A = 'it''s \u2019\u2019 $x'", "$env:B = $env:OTHER",
    ]  # fmt: skip


def test_a_shell_has_the_names_of_its_programs() -> None:
    assert {Shell.named(name) for name in ("sh", "bash", "zsh", "dash")} == {Shell.SH}
    assert Shell.named("pwsh") is Shell.POWERSHELL
    assert {Shell.named(name) for name in NAMES} == set(Shell)
    with pytest.raises(ValueError, match="csh"):
        Shell.named("csh")
