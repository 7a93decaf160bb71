"""Recognise the role of this process in vLLM."""

import re
import sys

API_SERVER, ENGINE_CORE, WORKER, HELPER = "APIServer", "EngineCore", "Worker", "Helper"
_NUMBER = re.compile(r"(\d+)$")


def role() -> "tuple[str, int | None]":
    """The role and, for a worker, its rank, as far as they can be told now.

    vLLM names what it starts (v1/engine/utils.py, v1/executor/multiproc_executor.py): `EngineCore`,
    `EngineCore_DP1`, `VllmWorker-0`, `ApiServer_0`. With one GPU the worker lives inside EngineCore.
    """
    processes = sys.modules.get("multiprocessing.process")
    name = processes.current_process().name if processes is not None else "MainProcess"
    number = _NUMBER.search(name)
    if "Worker" in name:
        return WORKER, int(number[1]) if number else None
    if name.startswith("EngineCore"):
        return ENGINE_CORE, None
    if name.lower().startswith("apiserver"):
        return API_SERVER, None
    if name == "MainProcess" and "serve" in getattr(sys, "argv", [])[1:2]:
        return API_SERVER, None
    return HELPER, None
