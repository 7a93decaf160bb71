"""No engine starts from an environment that is being changed; the engine is FAKE, the jobs are real."""

import asyncio
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import JobKind
from tests.unit.asynchronous import run
from tests.unit.engines.rig import rig

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize("kind", [JobKind.ENGINE_INSTALL, JobKind.ENGINE_REMOVE])
def test_a_start_is_refused_while_its_environment_changes(kind: JobKind) -> None:
    async def act() -> None:
        async with rig() as built:

            async def work(_control: object) -> dict[str, Any]:
                await asyncio.Event().wait()
                return {}

            job = built.jobs.start(kind, "Change it", "vllm 0.32.0-cpu", "sndr", work)
            plan = built.plan("m").model_copy(update={"installation": "0.32.0-cpu"})
            with pytest.raises(HostError) as raised:
                built.manager.start(plan)
            assert raised.value.problem.reason is Reason.CONFLICT
            assert raised.value.problem.evidence["job"] == job.id
            assert built.manager.all() == []
            built.jobs.cancel(job.id)
            await built.jobs.ended(job.id)

    run(act())
