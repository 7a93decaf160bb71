"""A crash during the first request is told by its own reason; the server is FAKE, its process is real."""

import sys
from pathlib import Path

import httpx
import pytest

from engine_host.core.errors import HostError
from engine_host.engines.llamacpp.status import LlamaCppAdapter
from engine_host.engines.process.running import RunningEngine
from engine_host.engines.process.spawn import EngineProcess
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import LaunchPlan, ServerChoice
from tests.unit.asynchronous import run

# Lists its model as llama-server does, and ends at the first decode.
SERVER = """
import os, resource, signal, socketserver, sys
from http.server import BaseHTTPRequestHandler

class Handler(BaseHTTPRequestHandler):
    def address_string(self):
        return "local"
    def log_message(self, format, *arguments):
        return
    def do_GET(self):
        body = b'{"data": [{"id": "x"}]}'
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        print(sys.argv[2], file=sys.stderr, flush=True)
        os.kill(os.getpid(), getattr(signal, sys.argv[3]))

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
socketserver.UnixStreamServer(sys.argv[1], Handler).serve_forever()
"""


def plan(socket: Path, said: str, signal_name: str) -> LaunchPlan:
    return LaunchPlan(
        id="plan-x",
        fingerprint="f",
        created_at=0,
        model="m",
        model_path="/models/m.gguf",
        name="x",
        engine="llama.cpp",
        server=ServerChoice.OWN,
        server_version="b1",
        argv=(sys.executable, "-I", "-S", "-c", SERVER, str(socket), said, signal_name),
        environment={},
        settings=(),
        streams=1,
        context=128,
        speculation="off",
        keep=False,
        findings=(),
        command="sndr run x",
    )


async def failure(home: Path, said: str, signal_name: str) -> HostError:
    """What the person is told of a start whose server ends at its first request."""
    wanted = plan(home / "x.sock", said, signal_name)
    process = EngineProcess.start(wanted.argv, {}, home / "x.log", keep=False)
    engine = Engine(
        id="engine-x",
        name="x",
        engine="llama.cpp",
        server=wanted.server,
        server_version="b1",
        state=EngineState.STARTING,
        plan=wanted,
        keep=False,
        created_at=0,
    )
    transport = httpx.AsyncHTTPTransport(uds=str(home / "x.sock"))
    client = httpx.AsyncClient(transport=transport, base_url="http://engine")
    running = RunningEngine("engine-x", process, LlamaCppAdapter(), client, engine)
    running.follow()
    try:
        await running.wait_until_healthy(20.0)
        with pytest.raises(HostError) as caught:
            await running.verify(wanted)
    finally:
        await process.stop(0)
        await running.release()
        (home / "x.sock").unlink(missing_ok=True)
    return caught.value


@pytest.mark.parametrize(
    ("said", "signal_name", "reason"),
    [
        ("CUDA error: out of memory", "SIGABRT", Reason.OUT_OF_MEMORY),
        ("decoding", "SIGILL", Reason.ILLEGAL_INSTRUCTION),
        ("GGML_ASSERT(n > 0) failed", "SIGABRT", Reason.ENGINE_CRASHED),
    ],
)
def test_a_server_that_dies_at_its_first_decode_says_why(
    home: Path, said: str, signal_name: str, reason: Reason
) -> None:
    told = run(failure(home, said, signal_name))
    assert told.reason is reason
    assert told.problem.fix is not None
