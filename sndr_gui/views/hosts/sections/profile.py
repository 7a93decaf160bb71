"""The engines of a host as they should run: those that are kept as right, chosen by a person."""

from __future__ import annotations

import shlex
import time

from PySide6.QtWidgets import QCheckBox, QVBoxLayout, QWidget

from engine_host.client.request_words import readable
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import KeepProfile, RemoteEngine
from sndr_gui.kit import formats
from sndr_gui.models.hosts.detail import HostDetailModel
from sndr_gui.views.hosts.sections.plain_table import PlainTable
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import row, scrolling

_WORDS = 110


class ProfileCard(Card):
    """The command lines that are kept as right."""

    def __init__(self, model: HostDetailModel) -> None:
        self._model = model
        self.keep = button(
            tr("Save as expected…"),
            self._on_keep,
            hint=tr("Choose the engines whose command lines are as expected; later differences are reported"),
            command=f"sndr host profile {model.name} --keep",
        )
        super().__init__(tr("How engines should run"), self.keep)
        self.said = text("", "muted", wrap=True)
        self.table = PlainTable(tr("Expected command lines"))
        self.body.addWidget(self.said)
        self.body.addWidget(self.table)

    def refresh(self) -> None:
        """Show what is kept."""
        profile, facts = self._model.profile, self._model.facts
        engines = profile.engines if profile is not None else ()
        kept = profile.kept_at if profile is not None else None
        said = tr(
            "Nothing is saved: save the engines as they run now, and later differences are reported above."
        )
        if kept is not None:
            said = tr("Kept {age}.", age=formats.age(max(0.0, time.time() - kept)))
        set_text(self.said, said)
        self.table.show_rows(
            (tr("Kind"), tr("User"), tr("Command line")),
            tuple((one.kind, one.user, " ".join(one.arguments)) for one in engines),
        )
        runs = facts is not None and bool(facts.engines)
        self.keep.setEnabled(runs and self._model.hosts.connected and not self._model.pending("profile"))

    def _on_keep(self) -> None:
        ProfileDialog(self.window(), self._model).open()


class ProfileDialog(Dialog):
    """Asks which engines are right; those of the user of ssh are chosen at first."""

    def __init__(self, parent: QWidget, model: HostDetailModel) -> None:
        super().__init__(parent, tr("Save engines of {name} as expected", name=model.name))
        self.resize(680, 420)
        self._model = model
        facts = model.facts
        self.boxes: dict[int, QCheckBox] = {}
        listed = QWidget()
        listed.setObjectName("canvas")
        lines = QVBoxLayout(listed)
        lines.setSpacing(10)
        for engine in facts.engines if facts is not None else ():
            box = QCheckBox(
                tr(
                    "{kind} of {user}, process {pid}",
                    kind=engine.kind,
                    user=readable(engine.user),
                    pid=engine.pid,
                )
            )
            box.setAccessibleName(tr("Keep {kind}, process {pid}", kind=engine.kind, pid=engine.pid))
            box.setChecked(facts is not None and engine.user == facts.user)
            box.toggled.connect(self.refresh)
            self.boxes[engine.pid] = box
            lines.addWidget(box)
            lines.addWidget(text(_words(engine), "muted", wrap=True))
        lines.addStretch(1)
        self.command = CopyField(what=tr("equivalent command"), wraps=True)
        self.save = button(tr("Keep"), self._on_save, kind="primary")
        self.save.setDefault(True)
        parts = QVBoxLayout(self)
        parts.setContentsMargins(20, 18, 20, 18)
        parts.setSpacing(12)
        parts.addWidget(
            text(
                tr("These command lines are as expected; later differences are reported:"), "muted", wrap=True
            )
        )
        parts.addWidget(scrolling(listed), 1)
        parts.addWidget(self.command)
        parts.addLayout(row(None, button(tr("Cancel"), self.reject), self.save))
        self.refresh()

    @property
    def chosen(self) -> tuple[str, ...]:
        """The processes of the chosen engines."""
        return tuple(str(pid) for pid, box in self.boxes.items() if box.isChecked())

    def refresh(self) -> None:
        """Show the command for what is chosen."""
        words = ["sndr", "host", "profile", self._model.name, "--keep"]
        self.command.set_content(shlex.join([*words, *(w for pid in self.chosen for w in ("--engine", pid))]))
        self.save.setEnabled(bool(self.chosen))

    def _on_save(self) -> None:
        self._model.keep_profile(KeepProfile(engines=self.chosen))
        self.accept()


def _words(engine: RemoteEngine) -> str:
    return readable(formats.shortened(" ".join(engine.arguments), _WORDS))
