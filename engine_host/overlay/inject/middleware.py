"""Middleware classes of patches by name: vLLM imports what `--middleware` says; the ledger hears of it."""

from typing import Any

from .hooks import resolve


def __getattr__(name: str) -> Any:
    """`<patch with underscores>__<file>__<class>`."""
    if name.startswith("__") or name.count("__") < 2:
        raise AttributeError(name)
    patch, stem, function = name.split("__", 2)
    return resolve("middleware", patch.replace("_", "-"), f"{stem}:{function}")
