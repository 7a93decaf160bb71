"""The private folder of a connection, and its short stand-in."""

from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.remote.ssh.folder import HostFolder, folder_of


def test_its_sockets_fit_whatever_the_run_folder_is_called() -> None:
    for run in (Path("/run/user/1000/sndr"), Path("/" + "long/" * 40)):
        folder = folder_of(run, "a" * 63)
        assert max(len(str(path)) for path in (*folder.files(), folder.engine("127.0.0.1:8000"))) <= 103
        # ssh makes its own under a longer name first.
        assert len(str(folder.ssh)) + 17 <= 103
    assert folder_of(Path("/run"), "a") != folder_of(Path("/run"), "b")
    assert folder_of(Path("/" + "x" * 90), "a") != folder_of(Path("/" + "y" * 90), "a")


def test_what_ssh_or_a_shell_would_expand_is_never_in_its_path() -> None:
    for run in ("/run/${HF_TOKEN}", "/run/%u", "/run/a b", "/run/$(id)", "/run/`id`;"):
        path = str(folder_of(Path(run), "gpu").path)
        assert not set(path) & set("$% `;()"), path
    assert folder_of(Path("/run/user/1000/sndr"), "gpu").path == Path("/run/user/1000/sndr/hosts/gpu")


def test_what_others_may_enter_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "gpu"
    path.mkdir()
    path.chmod(0o777)
    (path / "control.token").write_text("theirs")
    folder = HostFolder(path)
    with pytest.raises(HostError) as refused:
        folder.make()
    assert refused.value.reason is Reason.RUN_FOLDER_UNSAFE
    folder.remove()
    assert (path / "control.token").read_text() == "theirs"


def test_what_a_killed_one_left_is_cleared(tmp_path: Path) -> None:
    folder = HostFolder(tmp_path / "hosts" / "gpu")
    folder.make()
    for file in (*folder.files(), folder.engine("127.0.0.1:1")):
        file.write_text("old")
    folder.make()
    assert not list(folder.path.iterdir())
    folder.remove()
    assert not folder.path.exists()
