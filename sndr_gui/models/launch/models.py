"""The models of this machine on Launch: their list, its columns, and where they are looked for."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.language import tr
from engine_host.protocol.models import ModelFile, ModelOrigin
from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import SettingsChange
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.kit.rows import Column, RowsModel


class LaunchModels(QObject):
    """The list of models.

    Signals:
        changed: the list, or what of it is shown, is new
        filter_changed: the person asked for others to be shown
    """

    changed = Signal()
    filter_changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.rows: RowsModel[ModelFile] = RowsModel(model_columns(), lambda model: model.id, self)
        session.state.models_changed.connect(self._on_models)
        self._on_models()

    def _on_models(self) -> None:
        page = self._session.state.models
        self.rows.set_rows(page.models if page else ())
        self.changed.emit()

    def find(self, model_id: str) -> ModelFile | None:
        """A model by its id."""
        page = self._session.state.models
        return next((model for model in page.models if model.id == model_id), None) if page else None

    @property
    def first(self) -> ModelFile | None:
        """Of those that are shown, the first one that can be started."""
        return next((model for model in self.rows.shown if model.problem is None), None)

    def shows(self, model: str) -> bool:
        """Return True when the list holds a model as it is narrowed now."""
        return self.rows.place_of(model) is not None

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that are looked through for models."""
        page = self._session.state.models
        return page.folders if page else ()

    @property
    def subtitle(self) -> str:
        """Return how many there are and are shown, and in how many folders."""
        rows = self.rows
        total = formats.plural(rows.total, "model")
        shown = (
            tr("{shown} of {total}", shown=len(rows.shown), total=total)
            if len(rows.shown) != rows.total
            else total
        )
        return shown + (f"  ·  {formats.plural(len(self.folders), 'folder')}" if self.folders else "")

    def set_filter(self, text: str) -> None:
        """Show only the models that hold these words."""
        self.rows.set_filter(text)
        self.changed.emit()
        self.filter_changed.emit()

    def add_folder(self, folder: str) -> None:
        """Look for models in one more folder."""
        entry = self._session.state.setting("models.folders")
        known = [str(value) for value in (entry.value if entry and entry.value else ())]
        if folder in known:
            self.rescan()
            return

        async def work(client: AsyncControlClient) -> None:
            wanted = SettingsChange(values={"models.folders": [*known, folder]})
            await self._session.state.take(client.call(ops.CHANGE_SETTINGS, wanted))
            await self._session.state.take(client.call(ops.SCAN_MODELS))

        self._session.command("add folder", work)

    def rescan(self) -> None:
        """Look through the folders again."""

        async def work(client: AsyncControlClient) -> None:
            await self._session.state.take(client.call(ops.SCAN_MODELS))

        self._session.command("rescan", work)


def model_columns() -> list[Column[ModelFile]]:
    """The columns of the list of models."""

    def tone(model: ModelFile) -> str:
        return "bad" if model.problem else "muted"

    def note(model: ModelFile) -> str:
        if model.problem is not None:
            return model.problem.message
        parts = [model.format] if model.format != "GGUF" else []
        if model.mtp_layers:
            parts.append("MTP")
        if model.embedding_only:
            parts.append("embeddings")
        if model.origin is ModelOrigin.BUNDLED:
            parts.append(tr("bundled"))
        return " · ".join(parts)

    def tip(model: ModelFile) -> str:
        return model.problem.sentence() if model.problem else model.path

    return [
        Column(
            tr("Model"),
            lambda m: m.name,
            lambda m: m.name.casefold(),
            lambda m: "bad" if m.problem else "",
            tip=tip,
        ),
        Column(tr("Size"), lambda m: formats.size(m.size), lambda m: m.size, tone, right=True, tip=tip),
        Column(tr("Quant"), lambda m: m.quantization or formats.UNMEASURED, tone=tone, tip=tip),
        Column(
            tr("Context"),
            lambda m: formats.count(m.context),
            lambda m: m.context or 0,
            tone,
            right=True,
            tip=tip,
        ),
        Column("", note, tone=tone, tip=tip),
    ]
