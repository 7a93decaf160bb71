"""Middleware classes of patches by name: vLLM imports what `--middleware` says; the ledger hears of it."""

from typing import Any

from .hooks import resolve


class PassThrough:
    """Stands where the middleware of a patch would, when that is not in force: vLLM starts without it."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Hand everything on."""
        await self._app(scope, receive, send)


def __getattr__(name: str) -> Any:
    """`<patch with underscores>__<file>__<class>`; never the end of the API server."""
    if name.startswith("__") or name.count("__") < 2:
        raise AttributeError(name)
    patch, stem, function = name.split("__", 2)
    try:
        return resolve("middleware", patch.replace("_", "-"), f"{stem}:{function}")
    except Exception:  # noqa: BLE001 - the border to a patch's code; the ledger has the error
        return PassThrough
