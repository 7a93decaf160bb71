"""The cards of the Engine page: the start, latencies, drafts, patches, facts and settings."""

from collections.abc import Callable

from PySide6.QtWidgets import QGridLayout, QPushButton, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import measured_by
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.engine.cards import LatencyRow
from sndr_gui.models.engine.choice import command_of
from sndr_gui.models.engine.page import EngineModel, Fact
from sndr_gui.models.patches.outcomes import ProcessCard
from sndr_gui.views.engine.stages import StageList
from sndr_gui.views.graphs.bars import ShareBars, StageStrip
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import ElidedLabel, set_text, text
from sndr_gui.views.widgets.layout import clear, column


class StartCard(Card):
    """The stages of the start; their list is folded away once the engine is ready."""

    def __init__(self, model: EngineModel) -> None:
        self._age = text("", "muted")
        self.fold = button(tr("Show stages"), self._on_fold, kind="flat", hint=tr("How long each stage took"))
        self.fold.setCheckable(True)
        self.cancel = button(tr("Cancel"), model.cancel)
        self.cancel.setAccessibleName(tr("Cancel the start"))
        super().__init__(" ", self._age, self.fold, self.cancel)
        self._model = model
        self.strip = StageStrip()
        self.stages = StageList()
        self.body.addWidget(self.strip)
        self.body.addWidget(self.stages)

    def _on_fold(self) -> None:
        self.refresh(self._model.mode)

    def refresh(self, mode: str) -> None:
        """Show how far the start is, or how it went."""
        model = self._model
        starting = mode == "starting"
        set_text(self.title, model.start_title)
        how = measured_by.START if model.engine is not None and model.engine.ready_after is not None else ""
        self.title.setToolTip(plain_tooltip(how))
        self.title.setAccessibleDescription(how)
        set_text(self._age, model.start_age)
        self._age.setVisible(starting)
        engine = model.engine
        cancelling = model.actions.stopping(engine) or (
            engine is not None and model.actions.pending(f"cancel {engine.job}")
        )
        self.cancel.setText(tr("Cancelling…") if cancelling else tr("Cancel"))
        self.cancel.setEnabled(not cancelling and model.session.connection.connected)
        self.cancel.setVisible(starting)
        command = command_of(model.session.state, engine, "stop", "--now")
        self.cancel.setToolTip(tip(tr("Cancel this start"), "", command))
        stages = model.stages()
        folds = mode in ("running", "stopping") and bool(stages)
        opened = self.fold.isChecked()
        self.fold.setVisible(folds)
        self.fold.setText(tr("Hide stages") if opened else tr("Show stages"))
        self.fold.setAccessibleName(self.fold.text())
        self.strip.setVisible(bool(stages))
        self.strip.show_stages(model.stage_spans())
        self.stages.setVisible(bool(stages) and (opened or not folds))
        self.stages.show_stages(stages)


class LatencyCard(Card):
    """A table of latencies."""

    def __init__(self) -> None:
        super().__init__(tr("Latencies"))
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(18)
        self._grid.setVerticalSpacing(6)
        self._shown: tuple[LatencyRow, ...] | None = None
        self._source = text("", "muted", wrap=True)
        self.body.addLayout(self._grid)
        self.body.addWidget(self._source)
        self.body.addStretch(1)

    def show_rows(self, rows: tuple[LatencyRow, ...], source: str) -> None:
        """Show these latencies, and where they come from."""
        set_text(self._source, source if rows else tr("No request has ended yet. {source}", source=source))
        if rows == self._shown:
            return
        self._shown = rows
        clear(self._grid)
        for across, heading in enumerate(("", tr("median"), "95 %", tr("mean"), tr("count")) if rows else ()):
            self._grid.addWidget(text(heading, "muted"), 0, across)
        for line, entry in enumerate(rows, start=1):
            name = text(entry.name)
            name.setToolTip(plain_tooltip(entry.about))
            name.setAccessibleName(
                tr(
                    "{name}, {about}: median {p50}, 95 % {p95}, mean {mean}",
                    name=entry.name,
                    about=entry.about,
                    p50=entry.p50,
                    p95=entry.p95,
                    mean=entry.mean,
                )
            )
            cells = (name, text(entry.p50), text(entry.p95), text(entry.mean), text(entry.count, "muted"))
            for across, label in enumerate(cells):
                self._grid.addWidget(label, line, across)
        # In a wide card figures stay beside what they are of.
        self._grid.setColumnMinimumWidth(0, 160)
        self._grid.setColumnStretch(5, 1)


class SpeculationCard(Card):
    """The acceptance of draft tokens, in all and by position."""

    def __init__(self) -> None:
        super().__init__(tr("Speculation"))
        self.sentence = text("", wrap=True)
        self.bars = ShareBars(tr("Acceptance rate by position"))
        self.about = text("", "muted", wrap=True)
        for part in (self.sentence, self.bars, self.about):
            self.body.addWidget(part)
        self.body.addStretch(1)

    def refresh(self, model: EngineModel) -> None:
        """Show how drafts did."""
        found = model.speculation()
        if found is None:
            return
        set_text(self.title, tr("Speculation: {method}", method=found.method))
        set_text(self.sentence, found.sentence)
        set_text(self.about, found.about)
        self.bars.setVisible(bool(found.by_position))
        self.bars.show_shares(found.by_position)


class PatchesCard(Card):
    """The patch outcomes of each process; a click opens Patches."""

    def __init__(self, open_patches: Callable[[int | None], None]) -> None:
        self.open = button(tr("Open Patches"), self._on_open, icon="layers", kind="flat")
        super().__init__(tr("Patches"), self.open)
        self._open_patches = open_patches
        self.sentence = text("", wrap=True)
        self.processes: list[QPushButton] = []
        self._lines = QVBoxLayout()
        self._lines.setSpacing(4)
        self._known: tuple[ProcessCard, ...] = ()
        self._left_out = text("", "muted")
        self._grid = QGridLayout()
        self._grid.setVerticalSpacing(4)
        self._grid.setHorizontalSpacing(12)
        self._shown: tuple[tuple[str, str], ...] = ()
        self.body.addWidget(self.sentence)
        self.body.addLayout(self._lines)
        self.body.addWidget(self._left_out)
        self.body.addLayout(self._grid)
        self.body.addStretch(1)

    def _on_open(self) -> None:
        self._open_patches(None)

    def _on_process(self) -> None:
        sender = self.sender()
        if isinstance(sender, QPushButton):
            self._open_patches(int(sender.property("pid")))

    def refresh(self, model: EngineModel) -> None:
        """Show the apply summary of now."""
        known = model.processes()
        set_text(self.sentence, model.patched)
        self.sentence.setVisible(not known)
        if known != self._known:
            self._known = known
            self._show_processes(known)
        command = command_of(model.session.state, model.engine, "patches", "status")
        self.open.setToolTip(tip(tr("Open Patches"), "", command))
        for made, card in zip(self.processes, known, strict=True):
            made.setToolTip(tip(tr("Open the patches of process {pid}", pid=card.pid), "", command))
        left_out = model.left_out()
        self._left_out.setVisible(bool(left_out))
        set_text(self._left_out, tr("Left out of this start:"))
        if left_out != self._shown:
            self._shown = left_out
            clear(self._grid)
            for line, (name, why) in enumerate(left_out):
                self._grid.addWidget(text(name), line, 0)
                self._grid.addWidget(ElidedLabel(why, "muted"), line, 1)
            self._grid.setColumnStretch(1, 1)

    def _show_processes(self, known: tuple[ProcessCard, ...]) -> None:
        while len(self.processes) > len(known):
            made = self.processes.pop()
            made.hide()
            made.deleteLater()
        while len(self.processes) < len(known):
            made = button("", self._on_process)
            made.setStyleSheet("text-align: left")
            self.processes.append(made)
            self._lines.addWidget(made)
        for made, card in zip(self.processes, known, strict=True):
            made.setText(f"{card.title}:  {card.sentence}")
            made.setAccessibleName(
                tr("{title}, {sentence}: open its patches", title=card.title, sentence=card.sentence)
            )
            made.setProperty("pid", card.pid)


class FactsCard(Card):
    """The facts of the start and two command lines: ours, and the engine's own."""

    def __init__(self) -> None:
        super().__init__(tr("Details"))
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(18)
        self._grid.setVerticalSpacing(4)
        self._shown: tuple[Fact, ...] = ()
        self.command = CopyField(what=tr("equivalent command"), wraps=True)
        self.argv = CopyField(what=tr("engine command line"), wraps=True)
        self.body.addLayout(self._grid)
        self.body.addLayout(column(text(tr("Equivalent command"), "muted"), self.command, spacing=4))
        self.body.addLayout(column(text(tr("Engine command line"), "muted"), self.argv, spacing=4))
        self.body.addStretch(1)

    def show_facts(self, facts: tuple[Fact, ...], command: str, argv: str) -> None:
        """Show what a start is."""
        self.command.set_content(command)
        self.argv.set_content(argv)
        if facts == self._shown:
            return
        self._shown = facts
        clear(self._grid)
        for line, fact in enumerate(facts):
            value = ElidedLabel(fact.value)
            value.setToolTip(plain_tooltip(fact.about or fact.value))
            value.setAccessibleName(f"{fact.name}: {fact.value}")
            self._grid.addWidget(text(fact.name, "muted"), line, 0)
            self._grid.addWidget(value, line, 1)
        self._grid.setColumnStretch(1, 1)


class SettingsCard(Card):
    """Every setting of the start with the layer that set it."""

    def __init__(self) -> None:
        self.fold = button(
            tr("Show"), self._on_fold, kind="flat", hint=tr("All settings, and the layer that set each")
        )
        self.fold.setCheckable(True)
        self.fold.setAccessibleName(tr("Show the settings of this start"))
        super().__init__(tr("Settings of this start"), self.fold)
        self.inner = QWidget()
        self._grid = QGridLayout(self.inner)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(18)
        self._grid.setVerticalSpacing(4)
        self._shown: tuple[Fact, ...] = ()
        self.inner.hide()
        self.body.addWidget(self.inner)

    def _on_fold(self) -> None:
        self.inner.setVisible(self.fold.isChecked())
        self.fold.setText(tr("Hide") if self.fold.isChecked() else tr("Show"))

    def show_facts(self, facts: tuple[Fact, ...]) -> None:
        """Show these settings."""
        if facts == self._shown:
            return
        self._shown = facts
        clear(self._grid)
        for line, fact in enumerate(facts):
            self._grid.addWidget(text(fact.name, "muted"), line, 0)
            self._grid.addWidget(ElidedLabel(fact.value, name="mono"), line, 1)
            self._grid.addWidget(ElidedLabel(fact.about, "muted"), line, 2)
        self._grid.setColumnStretch(1, 2)
        self._grid.setColumnStretch(2, 3)
