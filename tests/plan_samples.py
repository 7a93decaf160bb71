"""Plans and engines for tests that look at one or two of their fields: everything else is plain."""

from typing import Any

from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.launch.plans import LaunchPlan, ServerChoice


def plain_plan(**fields: Any) -> LaunchPlan:
    """A plan of llama.cpp with these fields; `LaunchPlan` checks what is given."""
    plain = {
        "id": "plan-1",
        "fingerprint": "f",
        "created_at": 0,
        "model": "m",
        "model_path": "/models/m",
        "name": "demo",
        "engine": "llama.cpp",
        "server": ServerChoice.PREBUILT,
        "server_version": "",
        "argv": (),
        "environment": {},
        "settings": (),
        "streams": 1,
        "context": 128,
        "speculation": "off",
        "keep": False,
        "findings": (),
        "command": "sndr run m",
    }
    return LaunchPlan.model_validate(plain | fields)


def vllm_plan(**fields: Any) -> LaunchPlan:
    """A plan of vLLM with these fields."""
    return plain_plan(**{"engine": "vllm", "server": ServerChoice.VENV, "server_version": "0.32.0", **fields})


def engine_of(plan: LaunchPlan, state: EngineState = EngineState.READY, **fields: Any) -> Engine:
    """The engine that a plan became."""
    plain = {
        "id": "engine-1",
        "name": plan.name,
        "engine": plan.engine,
        "server": plan.server,
        "server_version": plan.server_version,
        "state": state,
        "plan": plan,
        "created_at": 0,
    }
    return Engine.model_validate(plain | fields)
