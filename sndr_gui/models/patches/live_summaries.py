"""Reads what the processes of a running vLLM said of their patches before this window came."""

from __future__ import annotations

from PySide6.QtCore import QObject

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.launch.plans import EngineKind
from engine_host.protocol.operations import table as ops
from sndr_gui.host.session import Session


class SummaryReader(QObject):
    """Asks once for each engine and each connection; what happens later comes as events."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._asked: set[str] = set()
        session.state.engines_changed.connect(self._on_engine)
        session.connection.changed.connect(self._on_link)

    def _on_link(self) -> None:
        if not self._session.connection.connected:
            self._asked.clear()
        self._on_engine()

    def _on_engine(self) -> None:
        state = self._session.state
        if not self._session.connection.connected:
            return
        self._asked &= state.engines.keys()
        for engine in (*state.live, *([state.engine] if state.engine is not None else [])):
            if engine.engine == EngineKind.VLLM and engine.id not in self._asked:
                self._asked.add(engine.id)
                self._read(engine.id)

    def _read(self, name: str) -> None:
        async def work(client: AsyncControlClient) -> None:
            await self._session.state.take(client.call(ops.ENGINE_PATCHES, id=name))

        self._session.read("read the engine's patches", work)
