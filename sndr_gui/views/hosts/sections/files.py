"""The model files of a host: sent there and fetched from it."""

from __future__ import annotations

from pathlib import PurePosixPath

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.client.request_words import readable
from engine_host.protocol.language import tr
from engine_host.protocol.models import ModelFile
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.hosts.actions.transfers import FetchAction, SendAction
from sndr_gui.models.hosts.detail import HostDetailModel
from sndr_gui.models.hosts.planned import PlannedAction, PlannedJob
from sndr_gui.views.hosts.planned import PlannedDialog
from sndr_gui.views.hosts.sections.plain_table import PlainTable
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, text

_ABOUT = tr(
    "Models go there and come from there over the connection: resumed where it "
    "broke off, and in their place only once the SHA-256 of each file is right."
)
_NO_MODELS = tr(
    "Which models are there is told by an engine host over there. A path there can be fetched all the same."
)


def models_of(session: Session | None) -> tuple[ModelFile, ...]:
    """Return the models that a host knows."""
    page = session.state.models if session is not None else None
    return page.models if page is not None else ()


def folder_of(session: Session | None) -> str | None:
    """Return the folder that gets models on a host where none was named; None where its host tells none."""
    if session is None:
        return None
    page, host = session.state.models, session.state.host
    if page is not None and page.folders:
        return page.folders[0]
    return str(PurePosixPath(host.data_folder, "models")) if host is not None else None


class FilesSection(QWidget):
    """Send and fetch, and the models that the engine host there knows."""

    def __init__(self, model: HostDetailModel) -> None:
        super().__init__()
        self._model = model
        card = Card(tr("Models there"))
        self.send = button(
            tr("Send a model…"),
            self._on_send,
            icon="upload",
            hint=tr("Send a model of this machine there; its plan is shown first"),
            command=f"sndr host send {model.name} MODEL",
        )
        self.fetch = button(
            tr("Fetch a model…"),
            self._on_fetch,
            icon="download",
            hint=tr("Fetch a model from there; its plan is shown first"),
            command=f"sndr host fetch {model.name} MODEL",
        )
        self.root = text("", "muted", wrap=True)
        self.models = PlainTable(tr("Models there"))
        self.nothing = text(_NO_MODELS, "muted", wrap=True)
        for part in (
            text(_ABOUT, "muted", wrap=True), self.root, self.models, self.nothing,
            Flow(self.send, self.fetch),
        ):  # fmt: skip
            card.body.addWidget(part)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.addWidget(card)

    def refresh(self) -> None:
        """Show what is known now."""
        model = self._model
        remote = model.remote
        session = model.hosts.fleet.known_session(model.name)
        root = (remote.model_root if remote is not None else None) or folder_of(session)
        said = tr("The folder of its models is not known: “Change…” in Facts.")
        set_text(self.root, readable(tr("They lie in {root}.", root=root)) if root else said)
        models = models_of(session)
        rows = tuple((one.id, one.format, formats.size(one.size), one.path) for one in models)
        self.models.show_rows((tr("Model"), tr("Format"), tr("Size"), tr("Path there")), rows)
        self.nothing.setVisible(not rows)
        for made in (self.send, self.fetch):
            made.setEnabled(model.is_connected)

    def _on_send(self) -> None:
        here = tuple(one.id for one in models_of(self._model.hosts.session))
        remote = self._model.remote
        root = remote.model_root if remote is not None else None
        there = folder_of(self._model.hosts.fleet.known_session(self._model.name))
        self._open(SendAction(self._model.name, here, root or there))

    def _on_fetch(self) -> None:
        session = self._model.hosts.fleet.known_session(self._model.name)
        there = tuple(one.id for one in models_of(session))
        self._open(FetchAction(self._model.name, there))

    def _open(self, action: PlannedAction) -> None:
        job = PlannedJob(self._model.hosts.session, self._model.name, action)
        PlannedDialog(self.window(), job).open()
