"""The facts of a machine, read over the real ssh; the engine that is found is FAKE."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from engine_host.remote.run import SCRIPTS
from tests.integration.remote.conftest import Fleet
from tests.integration.remote.machines import Machines, free_port
from tests.unit.asynchronous import run

Open = Callable[..., AbstractAsyncContextManager[Fleet]]
FAKE = """#!/usr/bin/env python3
import socket, sys, time
listening = socket.create_server(("127.0.0.1", int(sys.argv[-1])))
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """The pid and port of a FAKE vLLM with a hostile name of its model."""
    program = tmp_path / "vllm"
    program.write_text(FAKE)
    program.chmod(0o700)
    port = free_port()
    words = [str(program), "serve", "'; touch pwned; $(id)", "--port", str(port)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process.pid, port
        process.kill()


def test_facts_are_read_with_one_program_that_changes_nothing(
    fleet: Open, machines: Machines, engine: tuple[int, int]
) -> None:
    before = sorted(machines.far.rglob("*"))
    hostile = machines.far / "$(touch pwned) '; models"

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "gpu", model_root=str(hostile))
            found.hosts.connect("gpu")
            await found.reach("gpu")
            facts = await found.hosts.probe("gpu")
            assert facts.kernel is not None
            assert facts.kernel.startswith("Linux ")
            assert facts.python is not None
            assert "Python 3." in facts.python
            assert facts.cpus
            assert facts.memory_total
            assert facts.memory_free
            assert any(disk.is_root for disk in facts.disks)
            assert "No such file" in facts.problems["disks"], "the folder of the models is not there"
            assert facts.home == str(machines.far)
            assert "python3" in facts.tools
            (one,) = [one for one in facts.engines if one.pid == engine[0]]
            assert (one.kind, one.listens) == ("vllm", (f"127.0.0.1:{engine[1]}",))
            assert "'; touch pwned; $(id)" in one.arguments
            assert found.hosts.shown("gpu").facts_at is not None
            assert found.hosts.book.facts("gpu") == facts

    run(work())
    assert sorted(machines.far.rglob("*")) == before


def test_the_model_root_is_found_on_its_disk(fleet: Open, machines: Machines) -> None:
    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct", model_root=str(machines.far))
            found.hosts.connect("gpu")
            await found.reach("gpu")
            facts = await found.hosts.probe("gpu")
            assert sum(disk.holds_models for disk in facts.disks) == 1

    run(work())


def test_the_shell_programs_are_sound() -> None:
    scripts = sorted(map(str, SCRIPTS.glob("*.sh")))
    told = subprocess.run(["shellcheck", "-s", "sh", *scripts], capture_output=True, text=True, check=False)
    assert scripts
    assert told.returncode == 0, told.stdout
