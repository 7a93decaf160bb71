"""Endpoint plug-ins of patches by name, for vLLM's entry points; the ledger hears of each."""

from typing import Any

from .hooks import resolve


def __getattr__(name: str) -> Any:
    """`<patch with underscores>__<file>__<function>`."""
    if name.startswith("__") or name.count("__") < 2:
        raise AttributeError(name)
    patch, stem, function = name.split("__", 2)
    return resolve("endpoint_plugins", patch.replace("_", "-"), f"{stem}:{function}")
