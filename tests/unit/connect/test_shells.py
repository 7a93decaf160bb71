"""Variables in a shell's words: what a value holds is never more than text."""

from engine_host.connect.shells import Shell, lines


def test_fish_and_powershell() -> None:
    assert lines({"A": "it's \\ $x", "B": "$OTHER"}, Shell.FISH) == [
        "set -gx A 'it\\'s \\\\ $x'", "set -gx B $OTHER",
    ]  # fmt: skip
    assert lines({"A": "it's \u2019 $x", "B": "$OTHER"}, Shell.POWERSHELL) == [
        "$env:A = 'it''s \u2019\u2019 $x'", "$env:B = $env:OTHER",
    ]  # fmt: skip
