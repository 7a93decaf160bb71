"""The download pane: search, choose files, see what comes and whether it fits, download."""

from __future__ import annotations

from PySide6.QtWidgets import QCheckBox, QLineEdit, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from engine_host.protocol.library import HubCompanion
from sndr_gui.kit import formats
from sndr_gui.models.library.hub import HubModel
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import clear, row
from sndr_gui.views.widgets.problems import ProblemBox
from sndr_gui.views.widgets.tables import Table

_HEIGHT = 190
_ABOUT = tr(
    "Search Hugging Face by words, or by organisation/model for its files; @ and a "
    "commit pin an older one. Nothing is asked before you search. What comes is "
    "checked by its SHA-256 and lands in Hugging Face's own cache, where vLLM and "
    "other programs find it too."
)
_COMPANIONS = {"mmproj": tr("projector, for images or sound"), "drafter": tr("drafter, for speculation")}


class HubPane(Card):
    """The card that downloads."""

    def __init__(self, model: HubModel) -> None:
        super().__init__(tr("Download"))
        self.model = model
        self.words = QLineEdit()
        self.words.setPlaceholderText(tr("Words, or organisation/model"))
        self.words.setAccessibleName(tr("Search Hugging Face by words or organisation/model"))
        self.words.setClearButtonEnabled(True)
        self.words.setMaxLength(200)
        self.words.returnPressed.connect(self._on_search)
        self.search = button(
            tr("Search"),
            self._on_search,
            icon="send",
            hint=tr("Ask Hugging Face"),
            command="sndr models search WORDS",
        )
        self.state = text(_ABOUT, "muted", wrap=True)
        self.offline = text("", wrap=True)
        self.problem = ProblemBox()
        self.found = Table(model.found_rows, tr("Models found on the hub"), 0, {1: 150, 2: 100, 3: 110})  # type: ignore[arg-type]
        self.found.fit({1: 170, 2: 120, 3: 120, 4: 80})
        self.found.as_tall_as_rows(_HEIGHT)
        self.found.activated.connect(lambda index: self._on_open(index.row()))
        self.open = button(tr("Show its files"), lambda: self._on_open(self.found.chosen), icon="layers")
        self.choices = Table(model.choice_rows, tr("Files to download"), 0, {1: 90, 2: 110, 3: 60, 4: 120})  # type: ignore[arg-type]
        self.choices.fit({1: 110, 2: 120, 3: 80, 4: 190, 5: 150})
        self.choices.as_tall_as_rows(_HEIGHT)
        self.choices.row_chosen.connect(lambda place: model.choose(model.choice_rows.row_at(place)))
        self.of = text("", wrap=True)
        self.companions = QWidget()
        lines = QVBoxLayout(self.companions)
        lines.setContentsMargins(0, 0, 0, 0)
        self._shown_companions: tuple[HubCompanion, ...] = ()
        self.room = text("", "muted", wrap=True)
        self.download = button(tr("Download"), model.download, kind="primary", icon="download")
        self.command = CopyField(what=tr("the command that downloads the same"), wraps=True)
        self.body.addLayout(row(self.words, self.search))
        for part in (self.state, self.offline, self.problem, self.found):
            self.body.addWidget(part)
        self.body.addLayout(row(self.open, None))
        for below in (self.of, self.choices, self.companions, self.room, self.command):
            self.body.addWidget(below)
        self.body.addLayout(row(self.download, None))
        self.found.row_chosen.connect(lambda _place: self.refresh())
        model.changed.connect(self.refresh)
        model.session.connection.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show what is known now."""
        model = self.model
        self.search.setEnabled(model.session.connection.connected)
        self._show_state()
        self.problem.setVisible(model.problem is not None)
        if model.problem is not None:
            self.problem.show_problem(model.problem)
        some = bool(model.found_rows.total)
        self.found.setVisible(some)
        chosen = model.found_rows.row_at(self.found.chosen)
        self.open.setVisible(some)
        self.open.setEnabled(chosen is not None and not model.asking)
        name = chosen.repository if chosen is not None else ""
        self.open.setAccessibleName(
            tr("Show the files of {name}", name=name) if name else tr("Show its files")
        )
        self.open.setToolTip(tip(tr("Ask for its files"), command=f"sndr models files {name or 'ORG/MODEL'}"))
        self._show_files()

    def _show_state(self) -> None:
        model = self.model
        said = _ABOUT
        if model.asking:
            said = model.asking
        elif model.files is not None:
            said = ""
        elif model.found is not None and model.offline is None and not model.found.models:
            said = tr(
                "{endpoint} knows no model for “{words}”. Try fewer words.",
                endpoint=model.found.endpoint,
                words=model.found.words,
            )
        set_text(self.state, said)
        self.state.setVisible(bool(said))
        offline = model.offline
        self.offline.setVisible(offline is not None)
        if offline is not None:
            sentence = formats.strip_backticks(offline.sentence())
            set_text(
                self.offline,
                tr("Offline: models that are here work as before. {sentence}", sentence=sentence),
            )

    def _show_files(self) -> None:
        model = self.model
        files, choice = model.files, model.choice
        self.of.setVisible(files is not None)
        if files is not None:
            values = {"repository": files.repository, "commit": files.commit[:12]}
            said = (
                tr("{repository} at {commit}, licence {licence}.", licence=files.licence, **values)
                if files.licence
                else tr("{repository} at {commit}.", **values)
            )
            if not files.choices:
                said += " " + tr(
                    "Nothing of it can be downloaded: no GGUF file, no safetensors with a config.json."
                )
            set_text(self.of, said)
        self.choices.setVisible(bool(model.choice_rows.total))
        for part in (self.room, self.command, self.download):
            part.setVisible(choice is not None)
        self._show_companions(choice.companions if choice is not None else ())
        if choice is None:
            return
        place = model.choice_rows.place_of(choice.id)
        if place is not None and place != self.choices.chosen:
            self.choices.selectRow(place)
        set_text(self.room, model.room)
        self.command.set_content(model.command)
        self.download.setEnabled(model.can_download)
        self.download.setAccessibleName(
            tr(
                "Download {label} of {repository}",
                label=choice.label,
                repository=files.repository if files else "",
            )
        )
        self.download.setToolTip(
            tip(tr("Download in the background, also while the window is closed"), command=model.command)
        )

    def _show_companions(self, companions: tuple[HubCompanion, ...]) -> None:
        self.companions.setVisible(bool(companions))
        lines = self.companions.layout()
        assert lines is not None
        if companions != self._shown_companions:
            self._shown_companions = companions
            clear(lines)
            for one in companions:
                kind = _COMPANIONS.get(one.kind, one.kind)
                box = QCheckBox(f"{one.name} ({kind}, {formats.size(one.size)})")
                box.setAccessibleName(tr("Download {name} too", name=one.name))
                box.setProperty("companion", one.name)
                box.toggled.connect(lambda on, name=one.name: self.model.set_companion(name, on))
                lines.addWidget(box)
        for box in self.companions.findChildren(QCheckBox):
            wanted = box.property("companion") in self.model.companions
            if box.isChecked() != wanted:
                box.blockSignals(True)
                box.setChecked(wanted)
                box.blockSignals(False)

    def _on_search(self) -> None:
        self.model.search(self.words.text())

    def _on_open(self, place: int) -> None:
        one = self.model.found_rows.row_at(place)
        if one is not None:
            self.model.open(one.repository)
