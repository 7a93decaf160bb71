"""The demo model on the real llama.cpp, started by the script that the preset is written down as."""

import asyncio
import os
import shlex
import signal
import stat
from pathlib import Path

import psutil
import pytest

from engine_host.deploy.llamacpp_image import image_server
from engine_host.engines.llamacpp.servers import ServerProber, built_command
from tests.integration.deploy.starting import Script, refused, running, written
from tests.integration.deploy.test_container_scripts import answering
from tests.integration.host.conftest import wait_for
from tests.integration.host_process import sndr

PRESET = "demo-llamacpp"
QUESTION = {"model": "sndr-demo", "prompt": "def add(", "max_tokens": 4, "temperature": 0}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script, in a folder whose name has to be quoted."""
    return written(PRESET, tmp_path / "with a space & a $name")


def test_it_serves_and_ends_with_a_signal(script: Path, tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with running(script, tmp_path / number.name) as started:
            assert started.health() == 1
            started.until_said("ready at http://127.0.0.1:")
            assert started.health() == 0
            answer = started.ask("/v1/completions", QUESTION)
            assert answer["model"]
            assert answer["usage"]["completion_tokens"] == 4
            engine = started.engine()
            assert started.end(number) == 0
            assert "stopped" in started.said
            assert not engine.is_running()


def test_where_ctrl_c_is_ignored_it_says_how_it_is_stopped(script: Path, tmp_path: Path) -> None:
    background = tmp_path / "background.sh"
    background.write_text(f"#!/bin/sh\ntrap '' INT\nexec {shlex.quote(str(script))}\n", encoding="utf-8")
    background.chmod(0o755)
    with running(background, tmp_path / "cache") as started:
        started.until_said("ready at")
        assert f"stop it with: kill {started.process.pid}\n" in started.said
        assert started.end(signal.SIGTERM) == 0
    with running(script, tmp_path / "other") as started:
        started.until_said("ready at")
        assert "Ctrl+C" not in started.said
        assert started.end(signal.SIGINT) == 0


def test_it_comes_back_when_it_dies(script: Path, tmp_path: Path) -> None:
    with running(script, tmp_path / "cache") as started:
        started.until_said("ready at")
        engine = started.engine()
        engine.kill()
        started.until_said("again in 5 s (1 of 5)")
        started.until_said("ready at", times=2)
        assert started.engine() != engine
        assert started.ask("/v1/completions", QUESTION)["choices"]
        assert started.end(signal.SIGTERM) == 0


def test_a_port_that_is_taken_is_told(script: Path, tmp_path: Path) -> None:
    with running(script, tmp_path / "first") as first:
        first.until_said("ready at")
        with running(script, tmp_path / "second", SNDR_PORT=str(first.port)) as second:
            assert second.process.wait(20) == 1
            assert f"port {first.port} at 127.0.0.1 is taken" in second.said
            assert "ready" not in second.said
        assert first.ask("/v1/completions", QUESTION)["choices"]
        assert first.end(signal.SIGTERM) == 0


def test_another_programs_answer_is_not_taken_for_the_engines(script: Path, tmp_path: Path) -> None:
    engine = tmp_path / "engine"
    # It never listens; whoever comes later answers in its place.
    engine.write_text("#!/bin/sh\nsleep 2\nexit 3\n", encoding="utf-8")
    engine.chmod(0o755)
    with running(script, tmp_path / "cache", SNDR_ENGINE=str(engine)) as started:
        wait_for(lambda: started.said == "" and running_engine(started), "the engine", 20)
        with answering(started.port, 503):
            started.process.wait(60)
        assert "it ended with code 3" in started.said
        assert "is taken by another program" in started.said
        assert started.process.returncode == 1
        assert "ready" not in started.said


def running_engine(started: Script) -> bool:
    """Whether the script has started its engine."""
    return any(
        os.getpgid(one.pid) == one.pid for one in psutil.Process(started.process.pid).children(recursive=True)
    )


def test_what_cannot_start_is_given_up(script: Path, tmp_path: Path) -> None:
    with running(script, tmp_path / "cache", SNDR_ENGINE="/bin/false") as started:
        started.until_said("it ended with code 1; again in 5 s (1 of 5)")
        # A stop between two tries ends it too.
        assert started.end(signal.SIGTERM) == 0
    with running(script, tmp_path / "other", SNDR_ENGINE="/no/such/engine") as started:
        assert started.process.wait(20) == 1
        assert "is not here; install llama.cpp" in started.said


def test_a_key_is_read_and_never_written(built_folder: Path, tmp_path: Path) -> None:
    server = built_folder / "bin" / "llama-server"
    assert sndr("settings", "set", "engine.own_server", str(server)).code == 0
    script = written(PRESET, tmp_path / "start", "--server", "own")
    secrets = script.with_name("secrets.env")
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    secrets.write_text("LLAMA_API_KEY='not for you'\n", encoding="utf-8")
    # Written again: what a person filled in stays.
    written(PRESET, script.parent, "--server", "own")
    assert "not for you" in secrets.read_text(encoding="utf-8")
    with running(script, tmp_path / "cache", LLAMA_ARG_CTX_SIZE="1") as started:
        started.until_said("ready at")
        assert refused(lambda: started.ask("/v1/completions", QUESTION)) == 401
        assert started.ask("/v1/completions", QUESTION, key="not for you")["choices"]
        words = " ".join(started.engine().cmdline())
        assert "not for you" not in words
        # A variable of the shell that llama.cpp would take as an argument did not come through.
        assert "LLAMA_ARG_CTX_SIZE" not in started.engine().environ()
        assert started.end(signal.SIGTERM) == 0


def test_what_is_known_of_the_image_is_what_the_server_says(built_folder: Path) -> None:
    command = built_command(built_folder)
    assert command is not None
    said = asyncio.run(ServerProber().probe(command))
    known = image_server("b1")
    assert known.flags == said.flags
    assert (known.kv_types, known.speculation) == (said.kv_types, said.speculation)
