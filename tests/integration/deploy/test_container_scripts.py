"""What Docker and Podman are told by the scripts, word for word; both are stand-ins that take notes."""

import csv
import itertools
import os
import shlex
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine_host.deploy.targets.container import command
from engine_host.protocol.launch.deploy import RenderTarget
from tests.integration.host.conftest import free_port
from tests.unit.deploy.samples import UUIDS, by_uuid, deployed, rendered, wanted_of, write
from tests.unit.deploy.targets.golden import SELECTION

_NOTES = """#!/bin/bash
printf '%s\\0' "$@" >>"$NOTES"
printf '\\n\\0' >>"$NOTES"
[ "$1" != ps ] || echo "$RUNNING"
"""
TOOLS = (RenderTarget.DOCKER, RenderTarget.PODMAN)


def run(folder: Path, tool: RenderTarget, tmp_path: Path, **variables: str) -> list[list[str]]:
    """The calls of a tool that a start script makes."""
    programs = tmp_path / "programs"
    programs.mkdir(exist_ok=True)
    program = programs / tool.value
    program.write_text(_NOTES, encoding="utf-8")
    program.chmod(0o755)
    notes = tmp_path / "notes"
    notes.unlink(missing_ok=True)
    environment = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path / "home of $someone"),
        "NOTES": str(notes),
        "RUNNING": "",
        **variables,
    }
    subprocess.run([folder / "start.sh"], env=environment, capture_output=True, check=True)
    calls = notes.read_text(encoding="utf-8").split("\n\0")
    return [call.split("\0")[:-1] for call in calls if call]


def options(words: list[str], name: str) -> list[str]:
    """Every value of an option."""
    return [after for before, after in itertools.pairwise(words) if before == name]


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("preset_id", SELECTION)
def test_the_engine_gets_its_arguments_unchanged(preset_id: str, tool: RenderTarget, tmp_path: Path) -> None:
    wanted = wanted_of(preset_id, tmp_path / "resources, of $someone")
    made = deployed(wanted, tool)
    folder = write(rendered(wanted, tool), tmp_path / "a b")
    (words,) = [call for call in run(folder, tool, tmp_path) if call[0] == "run"]
    image = words.index(made.image)
    assert tuple(words[image + 1 :]) == command(made)
    assert options(words, "--entrypoint") == [made.entry[0]]
    assert options(words, "--publish") == ["127.0.0.1:8000:8000"]
    assert options(words, "--restart") == ["unless-stopped"]
    assert options(words, "--shm-size") == [str(made.shm)]
    given = dict(one.split("=", 1) for one in options(words, "--env"))
    assert set(given) == set(made.environment)
    assert not any("\x01" in word for word in words)
    for mount in options(words, "--mount"):
        # Docker reads it as a line of CSV (docs.docker.com, bind mounts).
        parts = dict(part.split("=", 1) for part in next(csv.reader([mount])) if "=" in part)
        if parts["type"] == "bind" and "resources" not in parts["source"]:
            assert Path(parts["source"]).exists()
        if "resources" in parts.get("source", ""):
            assert "resources, of $someone/models" in parts["source"]


@pytest.mark.parametrize("tool", TOOLS)
def test_gpus_by_uuid_by_number_and_by_choice(tool: RenderTarget, tmp_path: Path) -> None:
    wanted = wanted_of("qwen3.6-27b-k8v4-2x24")

    def told(folder: Path, **variables: str) -> list[str]:
        (words,) = [call for call in run(folder, tool, tmp_path, **variables) if call[0] == "run"]
        return options(words, "--gpus" if tool is RenderTarget.DOCKER else "--device")

    by_number = write(rendered(wanted, tool), tmp_path / "number")
    named = write(rendered(by_uuid(wanted), tool), tmp_path / "uuid")
    if tool is RenderTarget.DOCKER:
        assert told(by_number) == ["2"]
        assert told(named) == [f'"device={",".join(UUIDS)}"']
        assert told(named, SNDR_GPUS="GPU-x,GPU-y") == ['"device=GPU-x,GPU-y"']
    else:
        assert told(by_number) == ["nvidia.com/gpu=0", "nvidia.com/gpu=1"]
        assert told(named) == [f"nvidia.com/gpu={uuid}" for uuid in UUIDS]
        assert told(named, SNDR_GPUS="GPU-x") == ["nvidia.com/gpu=GPU-x"]


@pytest.mark.parametrize("tool", TOOLS)
def test_only_its_own_container_is_replaced(tool: RenderTarget, tmp_path: Path) -> None:
    folder = write(rendered(wanted_of("demo-vllm"), tool), tmp_path / "start")
    assert [call[0] for call in run(folder, tool, tmp_path)] == ["ps", "run"]
    calls = run(folder, tool, tmp_path, RUNNING="0123")
    # It has its time to finish, as its own stop has.
    assert [call[0] for call in calls] == ["ps", "stop", "rm", "run"]
    assert calls[1] == ["stop", "-t", "60", "sndr-demo-vllm"]
    assert calls[0][-1] == "name=^sndr-demo-vllm$"
    assert calls[2] == ["rm", "--force", "sndr-demo-vllm"]


@pytest.mark.parametrize("tool", TOOLS)
def test_the_address_that_is_told_is_the_one_it_has(tool: RenderTarget, tmp_path: Path) -> None:
    folder = write(rendered(wanted_of("demo-vllm"), tool), tmp_path / "start")
    run(folder, tool, tmp_path)
    for address, shown in (("127.0.0.1", "127.0.0.1"), ("10.1.2.3", "10.1.2.3"), ("::1", "[::1]")):
        ended = subprocess.run(
            [folder / "start.sh"],
            env={
                "PATH": f"{tmp_path / 'programs'}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(tmp_path),
                "NOTES": str(tmp_path / "notes"),
                "RUNNING": "",
                "SNDR_ADDRESS": address,
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert f"http://{shown}:8000" in ended.stdout


@contextmanager
def answering(port: int, status: int) -> Iterator[None]:
    """An engine that says how it is."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing to say."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("preset_id", ["demo-vllm", "demo-llamacpp"])
def test_the_health_check_is_a_command_that_works(preset_id: str, tmp_path: Path) -> None:
    port = free_port()
    wanted = replace(wanted_of(preset_id), port=port)
    folder = write(rendered(wanted, RenderTarget.DOCKER), tmp_path / "start")
    (words,) = [call for call in run(folder, RenderTarget.DOCKER, tmp_path) if call[0] == "run"]
    (check,) = options(words, "--health-cmd")
    assert shlex.split(check)[0] == ("curl" if preset_id == "demo-llamacpp" else "python3")

    def asked() -> int:
        return subprocess.run(["/bin/sh", "-c", check], capture_output=True, check=False).returncode

    assert asked() != 0
    with answering(port, 200):
        assert asked() == 0
    with answering(port, 503):
        assert asked() != 0
