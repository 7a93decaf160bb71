"""An engine brought to a stage of its life by a manager in a process of its own, which a test then kills.

`python -m tests.integration.faults.managed STAGE`; it says "at STAGE PID" and waits. The manager, its reaper
and all processes are real; the engine is FAKE.
"""

import asyncio
import contextlib
import signal
import sys

from engine_host.protocol.engines import EngineState
from tests.unit.asynchronous import until
from tests.unit.engines.rig import Rig, rig

# The fake engine's mode that holds a start at a stage, and the state in which it is then.
STAGES = {
    "queued": ("never", EngineState.PREPARING),
    "process": ("never", EngineState.STARTING),
    "loading": ("never", EngineState.STARTING),
    "verifying": ("slow", EngineState.STARTING),
    "serving": ("ok", EngineState.READY),
    "draining": ("ok", EngineState.DRAINING),
    "stopping": ("deaf", EngineState.STOPPING),
}


async def bring(built: Rig, stage: str) -> int:
    """Bring an engine to this stage; return its process, 0 while it has none."""
    mode, state = STAGES[stage]
    if stage in {"serving", "draining", "stopping"}:
        engine = await built.ready("one", mode)
        if stage == "draining":
            built.may_drain.clear()
        if stage != "serving":
            built.manager.stop(engine.id)
    else:
        engine = built.start("one", mode)
    if stage != "queued":
        await built.reached(engine, state)
    names = {"loading": "Load weights", "verifying": "Verify"}
    if stage in names:
        await until(lambda: names[stage] in [one.name for one in built.manager.get(engine.id).stages])
    return built.manager.get(engine.id).pid or 0


async def main(stage: str) -> None:
    """Stay at this stage until somebody kills this process."""
    async with rig() as built:
        pid = await bring(built, stage)
        print(f"at {stage} {pid}", flush=True)
        if stage == "queued":
            # The manager starts the engine as soon as it has its turn: it gets none.
            signal.pause()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(120)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
