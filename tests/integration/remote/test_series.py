"""How busy an agentless machine is, as series, over the real ssh; nvidia-smi is a FAKE program there."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import psutil
import pytest

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.gateway.metrics.exposition import written
from engine_host.gateway.metrics.measured import Measured, measured_families
from engine_host.operations.remote.telemetry import HostTelemetryOperations
from engine_host.protocol.errors import Reason
from engine_host.protocol.telemetry import TelemetryQuery
from tests.integration.remote.conftest import Fleet
from tests.integration.remote.machines import Machines
from tests.unit.asynchronous import run

Open = Callable[..., AbstractAsyncContextManager[Fleet]]


def test_an_agentless_machine_is_measured_while_it_is_connected(fleet: Open, machines: Machines) -> None:
    tools = machines.far / "bin"
    tools.mkdir()
    fake = "#!/bin/sh\n# FAKE\necho '0, 1024, 81920, 50, 61, 300.5, GPU-1, Made-up, 80'\n"
    fake += "echo '1, [N/A], $(x), 1e999, , -, $(x), \"'\n"
    (tools / "nvidia-smi").write_text(fake, encoding="utf-8")
    (tools / "nvidia-smi").chmod(0o755)
    machines.target.stop()
    machines.target.variables = (f"PATH={tools}:/usr/bin:/bin",)
    machines.target.start()

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            operations = HostTelemetryOperations(found.hosts, EventLog())
            every = TelemetryQuery()
            assert not (await operations.series("gpu", every)).series
            found.hosts.connect("gpu")
            await found.reach("gpu")
            async with asyncio.timeout(60):
                while not (page := await operations.series("gpu", every)).series:  # noqa: ASYNC110 - measured there
                    await asyncio.sleep(0.05)
            newest = {one.name: one.values[-1] for one in page.series}
            assert newest["gpu.0.memory.used"] == 1 << 30
            assert newest["ram.total"] == psutil.virtual_memory().total // 1024 * 1024
            assert not [name for name in newest if name.startswith("gpu.1")]
            assert "gpu.0.power" in newest
            (told,) = found.hosts.figures()
            text = written(measured_families(Measured("box", remote=(told,)), [])).decode()
            named = 'gpu="0",host="box",name="Made-up, 80",remote="gpu",uuid="GPU-1"'
            assert f"sndr_remote_gpu_power_watts{{{named}}} 300.5" in text
            assert 'gpu="1"' not in text
            await found.hosts.disconnect("gpu")
            assert not found.hosts.figures()
            assert (await operations.series("gpu", every)).series, "what was measured stays"
            await found.hosts.remove("gpu")
            with pytest.raises(HostError) as gone:
                await operations.series("gpu", every)
            assert gone.value.reason is Reason.NOT_FOUND

    run(work())
