"""The facts of an engine and of this machine that stand in each run."""

import platform
from pathlib import Path

from engine_host import __version__
from engine_host.core.diagnosis.secrets import without_secrets
from engine_host.protocol.bench.lab import LabEngine, LabMachine
from engine_host.protocol.engines import Engine
from engine_host.telemetry.gpus import GpuReading
from engine_host.telemetry.machine import cpu_name


def socket_of(engine: Engine, run_folder: Path) -> str:
    """Return the socket on which an engine is asked."""
    return str(run_folder / f"{engine.plan.id}.sock")


def facts(engine: Engine, run_folder: Path) -> LabEngine:
    """Return an engine with its plan, as a run keeps it."""
    plan = engine.plan
    # A run is kept, shown and handed on: what a person told the start in confidence is no part of it.
    shown = without_secrets(
        {
            "command": plan.command,
            "argv": list(plan.argv),
            "settings": {setting.name: _words(setting.value) for setting in plan.settings},
        },
        plan,
    )
    return LabEngine(
        address=socket_of(engine, run_folder),
        model=engine.name,
        id=engine.id,
        engine=engine.engine,
        version=engine.server_version,
        model_path=plan.model_path,
        context=engine.context,
        pid=engine.pid,
        command=shown["command"],
        argv=shown["argv"],
        settings=shown["settings"],
        patches=() if plan.patches is None else plan.patches.chosen,
    )


def _words(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def machine_of(reading: GpuReading) -> LabMachine:
    """Return this machine as a run keeps it."""
    return LabMachine(
        program=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        processor=cpu_name(),
        gpus=tuple(gpu.name for gpu in reading.gpus),
        driver=reading.driver or "",
    )
