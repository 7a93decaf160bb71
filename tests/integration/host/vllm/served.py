"""A host with the bundled checkpoint in the real vLLM, for tests that share one start."""

from pathlib import Path

import httpx
import openai
import psutil
import pytest

from engine_host.protocol.endpoint.requests import RequestQuery
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import RequestPage
from engine_host.protocol.launch.plans import EngineKind, LaunchRequest
from engine_host.protocol.operations import endpoint as endpoint_ops
from tests.integration.host.conftest import RunningHost
from tests.vllm_environment import vllm_venv

# Three processes import torch one after the other, on two cores that others use too.
START = 400.0


class Served:
    """A host in folders of its own, with vLLM started through its control API."""

    def __init__(self, home: Path) -> None:
        self.home = home
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SNDR_HOME", str(home))
            self.host = RunningHost().connect()
        self.client = openai.OpenAI(
            base_url=f"http://127.0.0.1:{self.host.port}/v1", api_key="any", max_retries=0, timeout=120
        )
        self.engine = self.host.launch(self.request(), START)
        self.plan = self.engine.plan
        assert self.engine.pid is not None
        leader = psutil.Process(self.engine.pid)
        self.pids = [leader.pid, *(child.pid for child in leader.children(recursive=True))]
        self.shared_memory = shared_memory_of(self.pids)

    @staticmethod
    def request(name: str | None = None, kv_cache_gib: float = 1) -> LaunchRequest:
        """The bundled model by its name, in vLLM."""
        return LaunchRequest(
            model="sndr-demo",
            name=name,
            engine=EngineKind.VLLM,
            installation=str(vllm_venv()),
            overrides=Overrides(context=2048, streams=2, kv_cache_gib=kv_cache_gib),
        )

    def requests(self) -> RequestPage:
        """The requests so far, newest first."""
        return self.host.client.call(endpoint_ops.REQUESTS, RequestQuery(engine=self.engine.id))

    def metric(self, name: str, plan: str = "") -> float:
        """The sum of one of vLLM's own counters, of the engine of another plan where one is named."""
        socket = self.host.folders.run / f"{plan or self.plan.id}.sock"
        transport = httpx.HTTPTransport(uds=str(socket))
        with httpx.Client(transport=transport, base_url="http://engine") as client:
            lines = client.get("/metrics").text.splitlines()
        return sum(
            float(line.rpartition(" ")[2]) for line in lines if line.startswith((name + "{", name + " "))
        )

    def end(self) -> None:
        """End host and engine."""
        self.client.close()
        self.host.end()


def shared_memory_of(pids: list[int]) -> set[Path]:
    """The shared memory that these processes have mapped."""
    found = set()
    for pid in pids:
        for line in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines():
            path = line.rpartition(" ")[2]
            if path.startswith("/dev/shm/"):
                found.add(Path(path))
    return found
