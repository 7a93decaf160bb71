"""Without a display the program ends with one sentence."""

import os
import subprocess
import sys

import pytest

from engine_host.cli.output import Exit
from sndr_gui.kit.display import NO_DISPLAY


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a display")
@pytest.mark.parametrize(
    ("named", "sentence"), [({}, "There is no display"), ({"DISPLAY": ":4713"}, "No display answers")]
)
def test_the_program_ends_with_one_sentence(named: dict[str, str], sentence: str) -> None:
    hidden = {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [sys.executable, "-m", "sndr_gui"],
        env=environment | named,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == NO_DISPLAY == Exit.NO_DISPLAY
    assert done.stdout == ""
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
