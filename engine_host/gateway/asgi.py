"""The endpoint as an ASGI application, also below a path where somebody's proxy shows it."""

from collections.abc import Awaitable, Callable

from starlette.types import Receive, Scope, Send


class EndpointApp:
    """An ASGI application object; uvicorn takes a bound method for something older."""

    def __init__(
        self,
        serve: Callable[[Scope, Receive, Send, bool], Awaitable[None]],
        *,
        trusted: bool,
        base_path: Callable[[], str],
    ) -> None:
        self._serve = serve
        self._trusted = trusted
        self._base_path = base_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Proxies pass a path on as it is, or without the part that led to them; both are answered.
        base = self._base_path()
        if base and scope["type"] == "http" and f"{scope['path']}/".startswith(f"{base}/"):
            scope = {**scope, "path": scope["path"].removeprefix(base) or "/"}
        await self._serve(scope, receive, send, self._trusted)
