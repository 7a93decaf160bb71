"""The name of an engine that does not run: the nearest one is named."""

from collections.abc import Callable

import pytest

from tests.unit.cli.fake_host import FakeHost
from tests.unit.cli.test_commands import ENGINE, engines

Sndr = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("words", [("stop", "codr"), ("restart", "codr"), ("logs", "codr")])
def test_an_engine_of_nearly_that_name_is_named(words: tuple[str, ...], host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/engines"] = engines({**ENGINE, "name": "coder"})
    host.answers["GET /v1/logs"] = (200, {"seq": 0, "lines": [], "sources": ["host"]})
    code, _, err = sndr(*words)
    assert code == 4
    assert "What to do: Did you mean coder?" in err
    host.answers["GET /v1/engines"] = engines({**ENGINE, "name": "other-name"})
    assert "Did you mean" not in sndr(*words)[2]
