"""An environment's folder: one host at a time, out of use in one step, and the truth about what stays."""

from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.vllm.environment_folder import (
    clear,
    delete,
    keep,
    leftovers,
    lock_environment,
    not_deleted,
    read_record,
    restore,
    restore_kept,
    retire,
    retired,
    size,
)
from engine_host.protocol.errors import Reason
from tests.unit.asynchronous import run
from tests.unit.engines.vllm.undeletable import undeletable


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A folder with files, a link out of it, and a record."""
    home = tmp_path / "environments" / "0.32.0-cpu"
    (home / "lib" / "deep").mkdir(parents=True)
    (home / "lib" / "deep" / "a.py").write_text("x" * 5000)
    (home / "lib" / "b.py").touch()
    (home / "lib" / "deep" / "c.py").touch()
    (home / "lib" / "twin.py").hardlink_to(home / "lib" / "deep" / "a.py")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").touch()
    (home / "link").symlink_to(tmp_path / "outside")
    (home / "installation.json").write_text('{"pin": "0.32.0-cpu"}')
    return home


def test_all_of_it_is_deleted_and_nothing_beside_it(environment: Path, tmp_path: Path) -> None:
    assert clear(environment) == ()
    assert list(environment.parent.iterdir()) == []
    assert (tmp_path / "outside" / "kept").exists()
    assert clear(environment) == (), "what is not there needs no deleting"


def test_it_is_out_of_use_at_once(environment: Path) -> None:
    aside = retire(environment)
    assert aside is not None
    assert (not environment.exists(), retired(environment)) == (True, (aside,))
    assert read_record(aside) == {"pin": "0.32.0-cpu"}
    assert retire(environment) is None
    assert clear(environment) == ()
    assert not aside.exists()


def test_what_cannot_be_deleted_is_told(environment: Path) -> None:
    with undeletable(environment / "lib" / "deep" / "c.py"):
        kept = clear(environment)
        assert not environment.exists(), "it is out of use all the same"
        (aside,) = retired(environment)
        assert [Path(error.filename) for error in kept] == [aside / "lib" / "deep" / "c.py"]
        assert not (aside / "lib" / "b.py").exists(), "everything else is gone"
        problem = not_deleted("vLLM is removed", environment, kept).problem
        assert problem.reason is Reason.NOT_WRITABLE
        assert "1 of its files" in problem.message
        assert str(kept[0].strerror) in problem.cause
        assert problem.fix is not None
        assert str(aside) in problem.fix.text
        assert problem.evidence["left"] == [str(aside)]
    assert delete(aside) == ()


def test_what_cannot_be_moved_is_unchanged(tmp_path: Path) -> None:
    # A folder's name may have 255 bytes: this one can be made, and no longer one beside it.
    home = tmp_path / ("e" * 250)
    home.mkdir()
    with pytest.raises(HostError) as raised:
        retire(home)
    assert raised.value.reason is Reason.NOT_WRITABLE
    assert "unchanged" in raised.value.problem.message
    assert home.is_dir()


def finish(home: Path, pin: str) -> None:
    """A finished environment in this place."""
    home.mkdir()
    (home / "installation.json").write_text(f'{{"pin": "{pin}"}}')


def test_what_is_kept_comes_back_unless_another_one_is_finished(environment: Path) -> None:
    assert keep(environment) is not None
    assert (environment.exists(), leftovers(environment)) == (False, ()), "what comes back is no leftover"
    environment.mkdir()
    assert leftovers(environment) == (environment,)
    assert restore_kept(environment)
    assert read_record(environment) == {"pin": "0.32.0-cpu"}
    assert len(retired(environment)) == 1, "the unfinished one is out of use"
    assert keep(environment) is not None
    finish(environment, "new")
    assert len(leftovers(environment)) == 2
    assert not restore_kept(environment)
    assert read_record(environment) == {"pin": "new"}
    assert len(retired(environment)) == 2
    assert keep(environment) is not None
    finish(environment, "newer")
    assert clear(environment) == ()
    assert list(environment.parent.iterdir()) == [], "a removal takes what was kept, too"


def test_a_host_brings_back_what_a_cut_off_reinstall_kept(environment: Path) -> None:
    assert not run(restore(environment)), "nothing was cut off"
    keep(environment)

    async def act() -> None:
        async with lock_environment(environment):
            with pytest.raises(HostError) as raised:
                await restore(environment)
            assert raised.value.reason is Reason.CONFLICT
        assert await restore(environment)

    run(act())
    assert read_record(environment) == {"pin": "0.32.0-cpu"}
    assert list(environment.parent.iterdir()) == [environment]


def test_a_link_in_its_place_costs_nothing_behind_it(environment: Path, tmp_path: Path) -> None:
    other = tmp_path / "another-disk"
    environment.rename(other)
    environment.symlink_to(other)
    assert clear(environment) == ()
    assert not environment.is_symlink()
    assert (other / "installation.json").exists()


def test_a_file_with_two_names_counts_once(environment: Path) -> None:
    blocks = (environment / "lib" / "twin.py").stat().st_blocks * 512
    before = size(environment)
    (environment / "lib" / "twin.py").unlink()
    assert size(environment) == before
    assert blocks > 0
