"""`sndr keys` with a host of canned answers, and without one."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.fake_host import FakeHost

Sndr = Callable[..., tuple[int, str, str]]
KEY = {"id": "0a1b2c3d", "name": "laptop", "permissions": ["infer"], "created_at": 1.0}


def test_a_host_makes_lists_and_revokes(host: FakeHost, sndr: Sndr) -> None:
    host.answers["POST /v1/keys"] = (201, {"entry": KEY, "key": "sndr-secret"})
    page = {"seq": 1, "keys": [KEY], "needed": True, "plain_file": "/c/api-keys"}
    host.answers["GET /v1/keys"] = (200, page)
    host.answers["DELETE /v1/keys/laptop"] = (200, {"seq": 2, "keys": [], "needed": False})
    code, out, err = sndr("keys", "create", "laptop")
    assert (code, out) == (0, "sndr-secret\n"), "the output is the key alone, for a script"
    assert "not shown again" in err
    assert "from now on" in err, "it locks out what is set up here, and that is said"
    assert "SNDR_API_KEY" in err
    assert "sndr keys revoke 0a1b2c3d" in err
    host.answers["GET /v1/keys"] = (200, {**page, "keys": [KEY, {**KEY, "id": "2", "name": "robot"}]})
    assert "from now on" not in sndr("keys", "create", "laptop")[2], "a key was needed before"
    code, out, _ = sndr("keys", "list")
    assert code == 0
    assert "laptop" in out
    assert "/c/api-keys" in out
    code, out, _ = sndr("keys", "revoke", "laptop")
    assert (code, "is revoked" in out) == (0, True)


def test_without_a_host_the_file_is_changed(sndr: Sndr, home: Path) -> None:
    code, out, _ = sndr("keys", "create", "robot", "--may", "admin", "--json")
    assert code == 0
    made = json.loads(out)
    assert made["entry"]["permissions"] == ["admin"]
    assert made["key"] not in (home / "config" / "keys.json").read_text()
    code, out, _ = sndr("keys", "list", "--json")
    assert [key["name"] for key in json.loads(out)["keys"]] == ["robot"]
    assert sndr("settings", "set", "endpoint.host", "0.0.0.0")[0] == 0, "there is a key now"
    code, _, err = sndr("keys", "revoke", "robot")
    assert (code, "last key" in err) == (6, True)
    assert sndr("settings", "unset", "endpoint.host")[0] == 0
    assert sndr("keys", "revoke", made["entry"]["id"])[0] == 0
    assert "any is accepted" in sndr("keys", "list")[1]


@pytest.mark.parametrize("name", ["a\nb", "x" * 70, "\x1b[0m"])
def test_a_name_that_is_none_is_refused_with_a_sentence(sndr: Sndr, name: str) -> None:
    code, out, err = sndr("keys", "create", name)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert "\x1b" not in err
