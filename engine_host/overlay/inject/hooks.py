"""vLLM's official extension points, called by vLLM through the bundle's entry points and command line."""

import time
from typing import Any

from .process import PROCESS
from .rebinding import RefusedError, load_function


def register() -> None:
    """vLLM's general plug-in: runs every `general_plugins` and `kernels` hook of this bundle."""
    for state in list(PROCESS.settled.patches.values()):
        for hook in state.spec["hooks"]:
            if not state.alive or hook["point"] not in {"general_plugins", "kernels"}:
                continue
            began = time.perf_counter()
            failure: Exception | None = None
            try:
                function = load_function(state.id, hook["function"])
                if hook["point"] == "kernels":
                    _register_kernels(function())
                else:
                    function()
            except Exception as error:  # noqa: BLE001 - a patch's error is its ledger entry, never the engine's end
                failure = error
            PROCESS.hooked(state.id, f"{hook['point']}:{hook['function']}", failure, began)


def _register_kernels(kernels: "dict[str, Any]") -> None:
    from vllm.triton_utils.dispatcher import register_kernels  # type: ignore[import-not-found]

    register_kernels(kernels)


def resolve(point: str, patch: str, reference: str) -> Any:
    """Load a middleware class or an endpoint plug-in that vLLM names; a failure is recorded.

    Raises RefusedError for a patch that is not in force here, and whatever loading it raises.
    """
    if not PROCESS.is_alive(patch):
        raise RefusedError("requirement_skipped", f"{patch} is not applied in this process")
    began = time.perf_counter()
    try:
        found = load_function(patch, reference)
    except Exception as error:
        PROCESS.hooked(patch, f"{point}:{reference}", error, began)
        raise
    PROCESS.hooked(patch, f"{point}:{reference}", None, began)
    return found
