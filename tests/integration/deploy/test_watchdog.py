"""The watchdog as a process of its own, in front of a small server; `systemctl` is a stand-in with notes."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from engine_host.deploy import watchdog
from engine_host.deploy.watchdog_program import since_boot

PROGRAM = Path(watchdog.__file__).with_name("watchdog_program.py")
# As systemd it tells what is asked for, and nothing else.
_SYSTEMCTL = """#!/bin/sh
echo "$@" >>{notes}
for word in "$@"; do
    case "$word" in
        --property=*) grep -E "^($(echo "${{word#*=}}" | tr , '|'))=" {state} ;;
    esac
done
exit 0
"""
# A stand-in for the driver's program, which says what a file holds.
_NVIDIA_SMI = """#!/bin/sh
cat {held}
"""


@dataclass
class Engine:
    """What the server in front of the watchdog does."""

    health: int = 200
    answers: bool = True
    tokens: int = 100
    drafted: int = 0
    accepted: int = 0
    models: object = field(default_factory=lambda: {"data": [{"id": "a-model"}]})
    body: dict[str, object] = field(default_factory=lambda: {"choices": [{"text": "a"}]})
    keys: list[str] = field(default_factory=list)
    port: int = 0


@pytest.fixture
def engine() -> Iterator[Engine]:
    """A server on a port of its own."""
    now = Engine()
    released = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def _send(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def do_GET(self) -> None:
            if self.path == "/metrics":
                text = f'vllm:generation_tokens_total{{engine="0"}} {now.tokens}.0\n'
                text += f"vllm:spec_decode_num_draft_tokens_total {now.drafted}\n"
                self._send(200, text + f"vllm:spec_decode_num_accepted_tokens_total {now.accepted}\n")
            elif self.path == "/v1/models":
                self._send(200, json.dumps(now.models))
            else:
                self._send(now.health, "")

        def do_POST(self) -> None:
            now.keys.append(self.headers.get("Authorization", ""))
            self.rfile.read(int(self.headers["Content-Length"]))
            if not now.answers:
                released.wait(20)
            else:
                self._send(200, json.dumps(now.body))

        def log_message(self, *_: object) -> None:
            """Nothing to say."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    now.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield now
    released.set()
    server.shutdown()
    server.server_close()
    thread.join()


class Watched:
    """A unit, and checks of it."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self.folder, self.engine = folder, engine
        self.notes, self.state = folder / "notes", folder / "state"
        self.notes.touch()
        program = folder / "systemctl"
        program.write_text(_SYSTEMCTL.format(notes=self.notes, state=self.state), encoding="utf-8")
        program.chmod(0o755)
        self.active()

    def active(
        self, state: str = "active", seconds_ago: float = 5000, again: int = 0, sub: str = "running"
    ) -> None:
        """What the service manager says of the unit; `again` is how often it restarted it by itself."""
        since = round((time.clock_gettime(time.CLOCK_MONOTONIC) - seconds_ago) * 1e6)
        text = f"ActiveState={state}\nActiveEnterTimestampMonotonic={since}\nNRestarts={again}\n"
        text += f"SubState={sub}\n"
        self.state.write_text(text, encoding="utf-8")

    def held_by(self, *rows: str) -> None:
        """What the driver says: `PID, UUID` in each row."""
        (self.folder / "held").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        program = self.folder / "nvidia-smi"
        program.write_text(_NVIDIA_SMI.format(held=self.folder / "held"), encoding="utf-8")
        program.chmod(0o755)

    @property
    def known(self) -> dict[str, Any]:
        """The newest state, as a person reads it when nobody watches."""
        found: dict[str, Any] = json.loads((self.folder / "watchdog.json").read_text(encoding="utf-8"))
        return found

    @property
    def events(self) -> list[str]:
        """The states in their order."""
        lines = (self.folder / "watchdog-events.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["state"] for line in lines]

    def check(self, *more: str, failures: int = 2, **variables: str) -> str:
        """One check; what it said."""
        words = [
            *(sys.executable, str(PROGRAM), "--unit", "sndr-a.service"),
            *("--address", f"http://127.0.0.1:{self.engine.port}", "--health", "/health"),
            *("--path", "/v1/completions", "--body", '{"prompt": "1"}', "--key-variable", "VLLM_API_KEY"),
            *("--start-seconds", "600", "--answer-seconds", "1", "--failures", str(failures)),
            *("--folder", str(self.folder), "--model", "a-model", *more),
        ]
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        variables = {"PATH": path, "XDG_RUNTIME_DIR": str(self.folder), **variables}
        ended = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=60, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")
        return ended.stdout

    @property
    def restarts(self) -> int:
        """How often the unit was restarted."""
        return self.notes.read_text(encoding="utf-8").count("restart sndr-a.service")


@pytest.fixture
def watched(tmp_path: Path, engine: Engine) -> Watched:
    """A unit that has been running for long."""
    return Watched(tmp_path, engine)


def test_an_engine_that_answers_is_left_alone(watched: Watched) -> None:
    assert watched.check() == watched.check() == ""
    assert watched.restarts == 0


def test_an_engine_that_hangs_is_restarted(watched: Watched) -> None:
    watched.engine.answers = False
    assert "(1 of 2)" in watched.check()
    assert watched.restarts == 0
    assert "hangs and is restarted" in watched.check()
    assert watched.restarts == 1
    # It begins to count anew.
    assert "(1 of 2)" in watched.check()


def test_one_answer_between_makes_good(watched: Watched) -> None:
    for answers in (False, True, False):
        watched.engine.answers = answers
        watched.check()
    assert watched.restarts == 0


def test_an_engine_that_computes_is_busy_and_not_hung(watched: Watched) -> None:
    watched.engine.answers = False
    watched.check(failures=2)
    for _ in range(3):
        watched.engine.tokens += 50
        assert "is busy" in watched.check(failures=2)
    assert watched.restarts == 0


def test_empty_answers_and_bad_health_count(watched: Watched) -> None:
    watched.engine.body = {"choices": []}
    assert "its answer is empty" in watched.check(failures=3)
    watched.engine.health = 503
    assert "HTTP 503" in watched.check(failures=3)


def test_an_engine_that_starts_is_waited_for(watched: Watched) -> None:
    watched.active(seconds_ago=100)
    watched.engine.health = 503
    for _ in range(3):
        assert "is starting" in watched.check()
    assert watched.restarts == 0


def test_a_unit_that_does_not_run_is_not_asked(watched: Watched) -> None:
    for state in ("inactive", "failed"):
        watched.active(state)
        watched.engine.health = 503
        assert watched.check() == ""
    watched.active("activating", sub="start")
    assert "is starting: its service is activating" in watched.check()
    watched.active("activating", sub="auto-restart")
    assert "is failing: it ended, and its service starts it again" in watched.check()
    assert watched.restarts == 0


def test_an_engine_that_ended_and_was_started_again_between_two_checks_is_told(watched: Watched) -> None:
    watched.check()
    watched.active(seconds_ago=60, again=1)
    watched.check()
    watched.check()
    assert (watched.events, watched.known["state"]) == (["healthy", "restarted"], "healthy")


def test_failures_of_an_earlier_run_do_not_count(watched: Watched) -> None:
    watched.engine.answers = False
    watched.check()
    watched.active(seconds_ago=4000)
    assert "(1 of 2)" in watched.check()


def test_the_key_comes_from_the_environment(watched: Watched) -> None:
    watched.check(VLLM_API_KEY="secret")
    watched.check()
    assert watched.engine.keys == ["Bearer secret", ""]
    watched.check(VLLM_API_KEY="secret\n")
    assert watched.engine.keys[2:] == ["Bearer secret"]
    assert "secret" not in watched.check(VLLM_API_KEY="secret\nx")


def test_what_was_seen_last_can_be_read_and_what_changed(watched: Watched) -> None:
    watched.check()
    assert (watched.known["state"], watched.known["unit"]) == ("healthy", "sndr-a.service")
    assert {one["name"]: one["ok"] for one in watched.known["checks"]} == {
        "health": True,
        "models": True,
        "token": True,
        "acceptance": True,
    }
    watched.engine.answers = False
    watched.check()
    watched.check()
    watched.engine.answers = True
    watched.check()
    watched.check()
    assert watched.events == ["healthy", "failing", "restarted", "healthy"]


def test_another_model_than_the_expected_one_is_no_health(watched: Watched) -> None:
    watched.engine.models = {"data": [{"id": "somebody-elses"}]}
    assert "it does not list a-model" in watched.check()
    answers: list[object] = [{"data": [None]}, {"data": 7}, [], "x", {"data": [{"id": ["a-model"]}]}]
    for hostile in answers:
        watched.engine.models = hostile
        assert "it does not list" in watched.check(failures=99)


def test_drafts_of_which_none_is_accepted_are_a_failure(watched: Watched) -> None:
    watched.check()
    for few in (100, 200):
        watched.engine.drafted = few
        assert watched.check() == ""
    watched.engine.drafted = 700
    assert "none of 700 drafts was accepted" in watched.check()
    watched.engine.drafted, watched.engine.accepted = 1400, 10
    assert watched.check() == ""


def test_memory_is_held_on_every_gpu_or_it_is_not_well(watched: Watched) -> None:
    watched.held_by("999999999, GPU-a")
    watched.check("--gpus", "2")
    assert _gpus(watched)["ok"] is None, "whose memory it is cannot be said"
    with watched.state.open("a", encoding="utf-8") as file:
        # The root of all groups, which holds this process too.
        file.write("ControlGroup=/\n")
    watched.held_by(f"{os.getpid()}, GPU-a", "999999999, GPU-b")
    assert "it holds memory on 1 of 2 GPUs" in watched.check("--gpus", "2")
    watched.held_by(f"{os.getpid()}, GPU-a", f"{os.getpid()}, GPU-b")
    assert watched.check("--gpus", "2") == ""
    assert _gpus(watched)["ok"] is True


def _gpus(watched: Watched) -> dict[str, Any]:
    return next(one for one in watched.known["checks"] if one["name"] == "gpus")


def test_what_kernels_are_compiled_with_is_missed_and_restarts_nothing(watched: Watched) -> None:
    for _ in range(4):
        assert "no-such-compiler|nor-this" in watched.check("--needs", "no-such-compiler|nor-this")
    assert (watched.known["state"], watched.restarts) == ("degraded", 0)
    assert watched.check("--needs", "no-such-compiler|sh") == ""


def test_restarts_have_pauses_and_an_end(watched: Watched) -> None:
    watched.engine.answers = False
    watched.check(failures=1)
    assert watched.restarts == 1
    assert "the next restart waits for 120 s" in watched.check(failures=1)
    assert watched.restarts == 1
    state = watched.known
    for done in (2, 3):
        state["restarts"] = [since_boot() - 3000 - one for one in range(done - 1)]
        (watched.folder / "watchdog.json").write_text(json.dumps(state), encoding="utf-8")
        watched.check(failures=1)
        assert watched.restarts == done
    state["restarts"] = [since_boot() - 3000] * 3
    (watched.folder / "watchdog.json").write_text(json.dumps(state), encoding="utf-8")
    assert "is left as it is" in watched.check(failures=1)
    assert (watched.restarts, watched.known["state"]) == (3, "given_up")
    # It crashes, and the service manager restarts it: nothing begins anew.
    watched.active(seconds_ago=4500, again=1)
    assert "is left as it is" in watched.check(failures=1)
    # A person restarts it: it has all its restarts again.
    watched.active(seconds_ago=4000)
    watched.check(failures=1)
    assert watched.restarts == 4


def test_a_clock_that_was_set_keeps_no_restart_waiting(watched: Watched) -> None:
    watched.engine.answers = False
    watched.check(failures=1)
    state = watched.known
    assert abs(state["restarts"][0] - since_boot()) < 600, "no clock that anybody sets"
    # What a watchdog of before wrote: times of day, which a clock that was set back had it wait for.
    del state["boot"]
    state["restarts"] = [time.time() + 3 * 3600]
    (watched.folder / "watchdog.json").write_text(json.dumps(state), encoding="utf-8")
    assert "hangs and is restarted" in watched.check(failures=1)


def test_a_model_that_is_gone_is_fetched_again(watched: Watched) -> None:
    model, fetch = watched.folder / "model.gguf", watched.folder / "fetch.sh"
    fetch.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    fetch.chmod(0o755)
    words = ("--file", str(model), "--rehydrate", str(fetch))
    watched.active("failed")
    assert "could not be fetched (exit code 3)" in watched.check(*words)
    assert watched.known["state"] == "failing"
    fetch.write_text(f'#!/bin/sh\necho weights >"{model}"\n', encoding="utf-8")
    assert "fetched again" in watched.check(*words)
    assert "start sndr-a.service" in watched.notes.read_text(encoding="utf-8")
    watched.active()
    watched.check(*words)
    assert watched.events[-3:] == ["rehydrating", "rehydrated", "healthy"]
    model.unlink()
    assert "nothing is known that fetches it" in watched.check("--file", str(model))


def test_a_damaged_state_and_a_full_disk_keep_nobody_from_a_restart(watched: Watched) -> None:
    watched.engine.answers = False
    for damaged in ("", "[]", '{"restarts": 7, "counted": 3, "failures": "x"}', "{"):
        (watched.folder / "watchdog.json").write_text(damaged, encoding="utf-8")
        assert "does not answer" in watched.check(failures=9)
