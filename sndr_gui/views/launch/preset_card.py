"""The card of a preset: what it is, what to beware of, what is missing for it, and what it stands on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from engine_host.protocol.catalog import Evidence, NotFor, Variant
from engine_host.protocol.language import tr
from engine_host.protocol.presets import EntryOrigin, PresetDetail
from sndr_gui.kit import formats
from sndr_gui.kit.setting_words import word_of
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.launch.page import LaunchModel
from sndr_gui.models.launch.subject import ENGINE_NAMES
from sndr_gui.models.presets.rows import STATUS_MEANS, STATUS_TONES, PresetRow, workload_words
from sndr_gui.views.widgets.buttons import button, link_button, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import IconLabel, badge, set_text, text
from sndr_gui.views.widgets.layout import clear, column, row, rule
from sndr_gui.views.widgets.problems import Findings

_NOT_KNOWN = tr("not known")
_INSTALLED_BELOW = ("engine.missing", "engine.build")


class PresetHead(Card):
    """The preset's name, status, verdict and caveats, what is missing for it, and where else to open it."""

    def __init__(
        self, model: LaunchModel, open_fit: Callable[[str], object], edit: Callable[[str], object]
    ) -> None:
        super().__init__()
        self._model, self._open_fit, self._edit = model, open_fit, edit
        self._shown: object = None
        self.name = text("", name="big", wrap=True)
        self.summary = text("", wrap=True)
        self.badges = Flow(spacing=6)
        self._caveats = QVBoxLayout()
        self._caveats.setSpacing(6)
        self.why = text("", "bad", wrap=True)
        self.missing = Findings(model.actions.apply_fix)
        self.missing.hide()
        self.fit = button(
            tr("Open in Fit"), self._on_fit, icon="gauge", hint=tr("On any hardware"), command="sndr fit"
        )
        self.edit = button(tr("Make a variation"), self._on_edit, icon="copy")
        for part in (self.name, self.badges, self.summary, self.why):
            self.body.addWidget(part)
        self.body.addLayout(self._caveats)
        self.body.addWidget(Flow(self.edit, self.fit))
        self.body.addWidget(self.missing)

    @property
    def _preset(self) -> str:
        row = self._model.presets.row
        return row.item.preset.id if row is not None else ""

    def _on_fit(self) -> None:
        self._open_fit(self._preset)

    def _on_edit(self) -> None:
        self._edit(self._preset)

    def refresh(self) -> None:
        """Show the chosen preset."""
        chosen = self._model.presets.row
        if chosen is None:
            return
        self._show_missing(chosen)
        if chosen == self._shown:
            return
        self._shown = chosen
        preset = chosen.item.preset
        set_text(self.name, preset.title)
        set_text(self.summary, preset.summary)
        self._show_badges(chosen)
        verdict = chosen.verdict
        told = [finding.message for finding in verdict.missing] if verdict is not None else []
        why = verdict.why if verdict is not None and not chosen.works and verdict.why not in told else ""
        set_text(self.why, why)
        self.why.setVisible(bool(why))
        clear(self._caveats)
        for caveat in preset.card.caveats:
            line = row(
                column(IconLabel("triangle-alert", "warn", 16), None), text(caveat, wrap=True), spacing=8
            )
            line.setStretch(1, 1)
            self._caveats.addLayout(line)
        own = chosen.item.origin is EntryOrigin.USER
        self.edit.setText(tr("Edit…") if own else tr("Make a variation"))
        what = tr("Edit this preset") if own else tr("Make a variation of this preset")
        self.edit.setAccessibleName(what)
        self.edit.setToolTip(tip(f"{what}", "", f"sndr presets export {preset.id} -o FILE"))
        self.fit.setToolTip(tip(tr("Memory on any hardware"), "", f"sndr fit --preset {preset.id}"))

    def _show_missing(self, chosen: PresetRow) -> None:
        found = chosen.verdict.missing if chosen.verdict is not None else ()
        if self._model.missing is not None:
            # The card below installs it, with its steps and a way to cancel.
            found = tuple(finding for finding in found if finding.id not in _INSTALLED_BELOW)
        self.missing.show_findings(found)

    def _show_badges(self, chosen: PresetRow) -> None:
        preset = chosen.item.preset
        status = preset.card.status
        word, tone = chosen.here
        made = [
            (word, tone, chosen.why),
            (word_of(status.value), STATUS_TONES.get(status, ""), STATUS_MEANS[status]),
            (ENGINE_NAMES[preset.engine.value], "", tr("The engine that runs it")),
        ]
        if chosen.item.origin is EntryOrigin.USER:
            made.append(("own", "accent", chosen.item.file))
        self.badges.clear()
        for content, colour, hint in made:
            label = badge(content, colour)
            label.setToolTip(plain_tooltip(hint))
            self.badges.add(label)


class PresetFacts(Card):
    """Everything else about the preset: for whom, what not to use it for, evidence, model and licence."""

    def __init__(self, model: LaunchModel) -> None:
        super().__init__(tr("About this preset"))
        self._model = model
        self._shown: object = None
        self.links: dict[str, QWidget] = {}
        self._lines = QVBoxLayout()
        self._lines.setSpacing(10)
        self.body.addLayout(self._lines)

    def refresh(self) -> None:
        """Show the chosen preset; what has to be read first is there when it was."""
        chosen, detail = self._model.presets.row, self._model.presets.detail
        if chosen is None or (chosen.item, detail) == self._shown:
            return
        self._shown = (chosen.item, detail)
        clear(self._lines)
        self.links = {}
        preset = chosen.item.preset
        self._facts(preset_facts(chosen, detail))
        self._not_for(preset.card.do_not_use)
        self._evidence(preset.card.evidence)
        if preset.card.fallback:
            self._heading(tr("Fallback"))
            self._lines.addLayout(row(self._link(preset.card.fallback, tr("Use")), None))

    def _heading(self, words: str) -> None:
        self._lines.addWidget(rule())
        self._lines.addWidget(text(words, name="h2"))

    def _facts(self, facts: tuple[tuple[str, str], ...]) -> None:
        grid = QGridLayout()
        grid.setHorizontalSpacing(14)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(1, 1)
        for number, (name, value) in enumerate(facts):
            caption = text(name, "muted")
            grid.addWidget(caption, number, 0)
            grid.addWidget(text(value, "muted" if value == _NOT_KNOWN else "", wrap=True), number, 1)
            grid.setAlignment(caption, grid.alignment())
        self._lines.addLayout(grid)

    def _not_for(self, entries: tuple[NotFor, ...]) -> None:
        if not entries:
            return
        self._heading(tr("Do not use"))
        for entry in entries:
            words = column(
                text(tr("when {when}", when=entry.when), wrap=True),
                text(tr("because {because}", because=entry.because), "muted", wrap=True),
                spacing=1,
            )
            self._lines.addLayout(words)
            if entry.instead:
                self._lines.addLayout(row(self._link(entry.instead, tr("Better:")), None))

    def _evidence(self, entries: tuple[Evidence, ...]) -> None:
        self._heading(tr("Evidence"))
        if not entries:
            self._lines.addWidget(text(tr("Not measured yet."), "muted"))
        for entry in entries:
            value = (
                formats.measure(formats.number(entry.value, ",g"), entry.unit)
                if entry.value is not None
                else ""
            )
            what = text(f"{value}  ·  {entry.metric}" if value else entry.metric, wrap=True)
            who = tr("measured by us") if entry.by == "us" else tr("measured by others")
            parts = (entry.machine, entry.pin, who, entry.conditions)
            where = text("  ·  ".join(part for part in parts if part), "muted", wrap=True)
            self._lines.addLayout(column(what, where, self._source(entry.source), spacing=1))

    @staticmethod
    def _source(source: str) -> QHBoxLayout:
        address = source.partition(",")[0].strip()
        if not address.startswith("https://"):
            return row(text(source, "muted", wrap=True))
        return row(link_button(address, address.removeprefix("https://")), None)

    def _link(self, preset: str, word: str) -> QWidget:
        found = self._model.presets.find(preset)
        title = found.item.preset.title if found is not None else preset
        made = button(f"{word} {title}", icon="rocket", hint=tr("Show the preset {preset}", preset=preset))
        made.setProperty("flat", "true")
        made.clicked.connect(partial(self._on_link, preset))
        made.setEnabled(found is not None)
        self.links[preset] = made
        return made

    def _on_link(self, preset: str, *_checked: object) -> None:
        self._model.select_preset(preset)


def preset_facts(chosen: PresetRow, detail: PresetDetail | None) -> tuple[tuple[str, str], ...]:
    """Return names and values of what is known of a preset; what is not known says so."""
    preset, item = chosen.item.preset, chosen.item
    facts = [
        (tr("For"), preset.card.audience),
        (tr("Good for"), ", ".join(workload_words(entry) for entry in preset.card.good_for)),
        (tr("Needs"), preset.needs.words),
        (
            tr("Size"),
            tr("{size} of weights", size=formats.size(item.size)) if item.size is not None else _NOT_KNOWN,
        ),
    ]
    if detail is not None:
        model = detail.model
        variant = model.variant(preset.variant)
        size = (
            tr("{count} parameters", count=formats.count(model.parameters))
            if model.parameters
            else _NOT_KNOWN
        )
        if model.active_parameters:
            size += ", " + tr("{count} active", count=formats.count(model.active_parameters))
        facts += [
            (tr("Model"), tr("{title} by {publisher}", title=model.title, publisher=model.publisher)),
            (tr("Parameters"), size),
            (tr("Context"), tr("{context} tokens at most", context=formats.number(model.context))),
            (tr("Tasks"), ", ".join(task.value for task in model.tasks)),
            (tr("Weights"), f"{variant.quantization}, {_format(variant)}" if variant else preset.variant),
            (tr("Source"), (variant.repository or tr("bundled")) if variant else _NOT_KNOWN),
            (tr("Licence"), model.licence),
            (tr("Profile"), f"{detail.profile.title}: {detail.profile.summary}"),
        ]
    facts.append((tr("File"), item.file))
    return tuple(facts)


def _format(variant: Variant) -> str:
    return "GGUF" if variant.format == "gguf" else variant.format
