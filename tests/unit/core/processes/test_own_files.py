"""An update under a host that runs: it is noticed, and what the host needs is loaded before."""

import os
import sys
from pathlib import Path

import pytest

from engine_host.core.processes import own_files
from engine_host.core.processes.own_programs import OwnProgram


def test_other_files_in_the_place_of_this_program_are_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert not own_files.replaced()
    program = tmp_path / "sndr"
    program.write_text("one")
    monkeypatch.setattr(own_files, "_FILE", program)
    monkeypatch.setattr(own_files, "_AT_START", own_files._identity())
    assert not own_files.replaced()
    # As dpkg and pip do it; the same version again is an update too.
    (tmp_path / "new").write_text("one")
    os.replace(tmp_path / "new", program)
    assert own_files.replaced()
    program.unlink()
    assert own_files.replaced()


def test_all_that_a_host_may_import_can_be_loaded() -> None:
    names = set(own_files.modules_of_a_host())
    assert names.isdisjoint(set(OwnProgram) - {OwnProgram.SNDR})
    assert {"engine_host.daemon.host", "engine_host.operations.host"} <= names
    own_files.load_all()
    assert names <= set(sys.modules)
