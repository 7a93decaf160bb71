"""A host of canned answers, and the command line in this process."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine_host.cli import main
from tests.unit.cli.fake_host import FakeHost, fake_host

Ran = tuple[int, str, str]


@pytest.fixture
def host(home: Path) -> Iterator[FakeHost]:
    """A fake host that answers where the command line looks."""
    with fake_host(home) as running:
        yield running


@pytest.fixture
def sndr(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run a command; its exit code, stdout and stderr."""

    def run(*arguments: str) -> Ran:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
