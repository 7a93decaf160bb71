"""The plain file of keys: its lines, and who may be able to read it."""

from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.core.keys.plain import read_api_keys
from engine_host.protocol.errors import Reason


def test_api_keys_are_the_lines_of_a_private_file(home: Path) -> None:
    assert read_api_keys(home) is None
    path = home / "api-keys"
    path.write_text("# mine\n one \n\ntwo\none\n", encoding="utf-8")
    path.chmod(0o600)
    assert read_api_keys(home) == ("one", "two")


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_api_keys_that_others_can_read_are_refused(home: Path, mode: int) -> None:
    path = home / "api-keys"
    path.write_text("one\n", encoding="utf-8")
    path.chmod(mode)
    with pytest.raises(HostError) as raised:
        read_api_keys(home)
    assert raised.value.reason is Reason.SETTING_INVALID
    assert "one" not in raised.value.problem.sentence()


def test_api_keys_that_are_no_text_are_refused(home: Path) -> None:
    path = home / "api-keys"
    path.write_bytes(b"\xff\xfe")
    path.chmod(0o600)
    with pytest.raises(HostError) as raised:
        read_api_keys(home)
    assert raised.value.reason is Reason.SETTING_INVALID
