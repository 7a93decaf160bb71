"""The form of Fit: the model, the hardware and the settings."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QGridLayout,
    QLineEdit,
    QStackedWidget,
    QWidget,
)

from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.fit.form import HardwareSource, ModelSource
from sndr_gui.models.fit.page import FitModel
from sndr_gui.models.window.throttle import Throttle
from sndr_gui.views.widgets.buttons import button, keep_to_paths, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.fields import ChoiceBox, Completer, NumberField
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import HeightForWidthLayout, column, room_of, row
from sndr_gui.views.widgets.problems import ProblemBox

_TYPING_MS = 350
_TWO_COLUMNS = 520
_SOURCES = (
    (tr("Local model"), ModelSource.HERE),
    (tr("Catalogue model"), ModelSource.CATALOGUE),
    (tr("Preset"), ModelSource.PRESET),
    (tr("File, folder or config.json"), ModelSource.FILE),
    ("Hugging Face", ModelSource.HUB),
)
_PLACES = (
    (tr("This machine"), HardwareSource.HERE),
    (tr("Catalogue GPUs"), HardwareSource.CARD),
    (tr("Custom GPUs"), HardwareSource.FREE),
    (tr("CPU only"), HardwareSource.CPU),
)
_ENGINES = (
    (tr("Automatic"), EngineKind.AUTO),
    ("llama.cpp", EngineKind.LLAMA_CPP),
    ("vLLM", EngineKind.VLLM),
)
_KINDS: dict[str, type[ModelSource | HardwareSource | EngineKind]] = {
    "source": ModelSource,
    "where": HardwareSource,
    "engine": EngineKind,
}
_YES_NO = ((tr("Default"), None), (tr("Yes"), True), (tr("No"), False))
_OF_TOKENS = ("context", "batched_tokens", "draft_tokens")
_WHOLE = {*_OF_TOKENS, "streams", "tensor_parallel", "gpu_layers", "cpu_experts"}
_FLASH = ((tr("Default"), None), (tr("On"), "on"), (tr("Off"), "off"))
_COUNTS = tuple((f"{count}", count) for count in range(1, 9))
_FILES = tr("Models (*.gguf config.json *.json);;All files (*)")


class FitInputs(QWidget):
    """The left side of Fit.

    Signals:
        edit_requested: the chosen preset is to be edited, with the settings that were set here
    """

    edit_requested = Signal(str, object)

    def __init__(self, model: FitModel) -> None:
        super().__init__()
        self.setObjectName("canvas")
        self._model = model
        self._filling = False
        self._waiting: dict[str, object] = {}
        self._throttle = Throttle(self, _TYPING_MS, self._commit)
        self.boxes: dict[str, ChoiceBox] = {}
        self.numbers: dict[str, NumberField] = {}
        self._cards = (self._model_card(), self._hardware_card(), self._settings_card())
        self._columns = 0
        self._grid = QGridLayout()
        self._grid.setSpacing(14)
        outer = HeightForWidthLayout(self)
        outer.setContentsMargins(0, 0, 4, 0)
        outer.addLayout(self._grid)
        outer.addStretch(1)
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        model, hardware, settings = self._cards
        # Words of another language may need more than there is.
        left = max(model.minimumSizeHint().width(), hardware.minimumSizeHint().width())
        least = left + settings.minimumSizeHint().width() + self._grid.spacing() + 4
        columns = 2 if room_of(self) >= max(_TWO_COLUMNS, least) else 1
        if columns == self._columns:
            return
        self._columns = columns
        wide = columns == 2
        self._grid.addWidget(model, 0, 0)
        self._grid.addWidget(hardware, 1, 0)
        self._grid.addWidget(settings, 0 if wide else 2, 1 if wide else 0, 2 if wide else 1, 1)
        for number in range(2):
            self._grid.setColumnStretch(number, 1 if number < columns else 0)

    # The parts.

    def _box(self, name: str, accessible_name: str) -> ChoiceBox:
        made = ChoiceBox(accessible_name)
        made.setMinimumContentsLength(6)
        made.activated.connect(partial(self._on_box, name))
        self.boxes[name] = made
        return made

    def _number(self, name: str, accessible_name: str, low: float, high: float) -> NumberField:
        made = NumberField(
            accessible_name, low, high, partial(self._on_number, name), tokens=name in _OF_TOKENS
        )
        self.numbers[name] = made
        return made

    def _cell(self, caption: str, control: QWidget) -> QWidget:
        label = text(caption, "muted")
        label.setBuddy(control)
        made = QWidget()
        made.setLayout(column(label, control, None, spacing=4))
        return made

    def _beside(self, *cells: QWidget) -> QWidget:
        made = QWidget()
        line = row(*cells, spacing=12)
        for place in range(len(cells)):
            line.setStretch(place, 1)
        made.setLayout(line)
        return made

    def _model_card(self) -> Card:
        card = Card(tr("Model"))
        self._box("source", tr("Model source"))
        self.edit = button(
            tr("Make a preset…"),
            self._on_edit,
            icon="bookmark",
            hint=tr("Edit the preset with these settings"),
        )
        here, catalogue = (
            self._box("model", tr("Local model")),
            self._box("catalogue", tr("Catalogue model")),
        )
        variant, preset = self._box("variant", tr("Weights of the model")), self._box("preset", tr("Preset"))
        self.path = self._line(
            "path", tr("Path of a GGUF file, a folder or a config.json"), "/models/config.json"
        )
        browse = button(tr("Browse…"), self._on_browse, hint=tr("Select a GGUF file or a config.json"))
        folder = button(tr("Folder…"), self._on_folder, hint=tr("Choose a folder with weights"))
        for made in (browse, folder):
            keep_to_paths(made, self._model.session.host)
        self.repository = self._line("repository", tr("Model on Hugging Face"), "organisation/model")
        self.hub_note = text("", "muted", wrap=True)
        self.read = button(tr("Read config.json from Hugging Face"), self._model.read_from_hub)
        self.hub_problem = ProblemBox("warning")
        self.hub_problem.hide()
        self.sources = QStackedWidget()
        for parts in (
            (here,),
            (catalogue, self._cell(tr("Weights"), variant)),
            (preset, row(self.edit, None)),
            (self.path, row(browse, folder, None)),
            (self.repository, self.hub_note, row(self.read, None)),
        ):
            side = QWidget()
            side.setLayout(column(*parts, None, spacing=8))
            self.sources.addWidget(side)
        card.body.addWidget(self.boxes["source"])
        card.body.addWidget(self.sources)
        card.body.addStretch(1)
        return card

    def _line(self, name: str, accessible_name: str, example: str) -> QLineEdit:
        edit = QLineEdit()
        edit.setAccessibleName(accessible_name)
        edit.setPlaceholderText(example)
        edit.textEdited.connect(partial(self._on_line, name))
        edit.editingFinished.connect(self._commit)
        return edit

    def _hardware_card(self) -> Card:
        card = Card(tr("Hardware"))
        self._box("where", tr("Hardware"))
        gpu, count = self._box("card", tr("Catalogue GPU")), self._box("count", tr("Number of GPUs"))
        self.here = text("", "muted", wrap=True)
        self.replace = QCheckBox(tr("In place of all that runs"))
        self.replace.setToolTip(
            tip(tr("The memory of running engines counts as free"), "", "sndr fit --replace")
        )
        self.replace.toggled.connect(self._on_replace)
        self.count_cell = self._cell(tr("Count"), count)
        self.card_cell = self._cell("GPU", gpu)
        total = self._number("total", tr("Memory of each GPU in GiB"), 0.5, 2048.0)
        taken = self._number("taken", tr("GiB used by other processes"), 0.0, 2048.0)
        bandwidth = self._number("bandwidth", tr("Bandwidth in GB/s"), 1.0, 20000.0)
        taken.edit.setPlaceholderText(tr("nothing"))
        bandwidth.edit.setPlaceholderText(tr("not known"))
        self.free = QWidget()
        self.free.setLayout(
            column(
                self._beside(
                    self._cell(tr("Memory, GiB"), total), self._cell(tr("Bandwidth, GB/s"), bandwidth)
                ),
            )
        )
        self.taken_cell = self._cell(tr("Used, GiB"), taken)
        parts = (
            self.boxes["where"],
            self.here,
            self.replace,
            self.card_cell,
            self.free,
            self.taken_cell,
            self.count_cell,
        )
        for part in parts:
            card.body.addWidget(part)
        card.body.addStretch(1)
        return card

    def _settings_card(self) -> Card:
        self.reset = button(
            tr("Reset"),
            self._model.reset,
            kind="flat",
            icon="undo-2",
            hint=tr("Reset all settings to their defaults"),
        )
        card = Card(tr("Settings"), self.reset)
        context = self._number("context", tr("Context, tokens for one stream"), 128, 10_000_000)
        streams = self._number("streams", tr("Requests in parallel"), 1, 4096)
        kind, engine = self._box("kv", tr("KV cache type")), self._box("engine", tr("Engine"))
        self.engine_cell = self._cell(tr("Engine"), engine)
        for part in (
            self._beside(self._cell(tr("Context"), context), self._cell(tr("Streams"), streams)),
            self._cell(tr("KV cache type"), kind),
            self.engine_cell,
        ):
            card.body.addWidget(part)
        share = self._number("gpu_memory", tr("Share of the VRAM, 0 to 1"), 0.05, 1.0)
        chunk = self._number("batched_tokens", tr("Tokens of one step"), 16, 1_000_000)
        gpus = self._number("tensor_parallel", tr("GPUs that share each layer"), 1, 64)
        draft = self._number("draft_tokens", tr("Draft tokens per step"), 1, 64)
        bits = self._number("bits", tr("Bits per weight, for a config without files"), 1.0, 32.0)
        layers = self._number("gpu_layers", tr("llama.cpp: layers on the GPU"), 0, 100_000)
        experts = self._number(
            "cpu_experts", tr("llama.cpp: layers whose experts stay in main memory"), 0, 100_000
        )
        cache = self._number("kv_cache_gib", tr("vLLM: size of the KV cache in GiB"), 0.1, 2048.0)
        accepted = self._number(
            "acceptance_length", tr("Tokens that a step of speculation yields"), 1.0, 64.0
        )
        drafting, eager, flash = (
            self._box("speculation", tr("Speculation")),
            self._box("eager", tr("Eager, without CUDA graphs")),
            self._box("flash_attention", tr("llama.cpp: flash attention")),
        )
        self.more_part = QWidget()
        self.more_part.setLayout(
            column(
                self._beside(
                    self._cell(tr("Share of the VRAM"), share), self._cell(tr("Tokens a step"), chunk)
                ),
                self._beside(self._cell(tr("GPUs"), gpus), self._cell(tr("Bits per weight"), bits)),
                self._beside(self._cell(tr("Speculation"), drafting), self._cell(tr("Draft tokens"), draft)),
                self._beside(self._cell(tr("GPU layers"), layers), self._cell(tr("CPU experts"), experts)),
                self._beside(self._cell(tr("Flash attention"), flash), self._cell(tr("Eager"), eager)),
                self._beside(
                    self._cell(tr("KV cache, GiB"), cache), self._cell(tr("Tokens accepted"), accepted)
                ),
                spacing=8,
            )
        )
        self.more_part.hide()
        self.more = button(tr("More settings"), self._on_more, kind="flat")
        self.more.setCheckable(True)
        card.body.addWidget(self.more_part)
        card.body.addLayout(row(self.more, None))
        card.body.addStretch(1)
        return card

    # What the person does.

    def _on_more(self) -> None:
        self.more_part.setVisible(self.more.isChecked())
        self.more.setText(tr("Fewer settings") if self.more.isChecked() else tr("More settings"))

    def _on_box(self, name: str, *_place: object) -> None:
        if not self._filling:
            data = self.boxes[name].currentData()
            # Qt gives the words of an enumeration back as plain text.
            kind = _KINDS.get(name)
            self._model.set_values(**{name: data if kind is None else kind(data)})

    def _on_replace(self, replaces: bool) -> None:
        if not self._filling:
            self._model.set_values(replace=replaces)

    def _on_number(self, name: str, *_content: object) -> None:
        field = self.numbers[name]
        if self._filling or field.error:
            self._waiting.pop(name, None)
            return
        self._waiting[name] = field.count if name in _WHOLE else field.value
        self._throttle.trigger()

    def _on_line(self, name: str, content: str) -> None:
        self._waiting[name] = content
        self._throttle.trigger()

    def _commit(self) -> None:
        values, self._waiting = self._waiting, {}
        if values:
            self._model.set_values(**values)

    def _on_edit(self) -> None:
        if self._model.form.preset:
            self.edit_requested.emit(self._model.form.preset, self._model.preset_settings())

    def _on_browse(self) -> None:
        dialog = QFileDialog(self, tr("Choose a model"), self.path.text(), _FILES)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        self._ask_for(dialog)

    def _on_folder(self) -> None:
        dialog = QFileDialog(self, tr("Choose a folder with weights"), self.path.text())
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        self._ask_for(dialog)

    def _ask_for(self, dialog: QFileDialog) -> None:
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self._on_picked)
        dialog.open()

    def _on_picked(self, path: str) -> None:
        self._model.set_values(path=path)

    # What is shown.

    def refresh(self) -> None:
        """Show the form of now; what is typed just now stays."""
        model, form = self._model, self._model.form
        self._filling = True
        offered: dict[str, list[tuple[str, object]]] = {
            "source": list(_SOURCES),
            "model": model.model_choices(),
            "catalogue": model.catalogue_choices(),
            "variant": model.variant_choices(),
            "preset": [(tr("Choose a preset"), ""), *model.preset_choices()],
            "where": list(_PLACES),
            "card": model.card_choices(),
            "count": list(_COUNTS),
            "kv": model.kv_choices(),
            "engine": list(_ENGINES),
            "speculation": list(_YES_NO),
            "eager": list(_YES_NO),
            "flash_attention": list(_FLASH),
        }
        for name, choices in offered.items():
            self._offer(name, choices)
        for name, field in self.numbers.items():
            if name not in self._waiting and not (field.edit.hasFocus() and field.edit.isModified()):
                value = getattr(form, name)
                content = "" if value is None else f"{value:.12g}" if isinstance(value, float) else str(value)
                if field.edit.text() != content and (not field.error or value is not None):
                    field.edit.setText(content)
        for name, edit in (("path", self.path), ("repository", self.repository)):
            if name not in self._waiting and edit.text() != getattr(form, name):
                edit.setText(getattr(form, name))
        self.replace.setChecked(form.replace)
        self._filling = False
        self.sources.setCurrentIndex([source for _, source in _SOURCES].index(form.source))
        side = self.sources.currentWidget()
        self.sources.setFixedHeight(max(40, side.sizeHint().height() if side else 40))
        set_text(self.here, model.here)
        self.here.setVisible(form.where is HardwareSource.HERE)
        self.replace.setVisible(form.here and (form.replace or bool(model.session.state.live)))
        self.card_cell.setVisible(form.where is HardwareSource.CARD)
        self.free.setVisible(form.where is HardwareSource.FREE)
        for cell in (self.taken_cell, self.count_cell):
            cell.setVisible(form.where in (HardwareSource.CARD, HardwareSource.FREE))
        self.engine_cell.setVisible(form.asks_engine)
        self.edit.setEnabled(bool(form.preset))
        self._refresh_hub()

    def _offer(self, name: str, choices: list[tuple[str, object]]) -> None:
        # An open list must not move under the person who chooses from it.
        if not self.boxes[name].view().isVisible():
            self.boxes[name].fill(choices, getattr(self._model.form, name))
            self.boxes[name].setToolTip(plain_tooltip(self.boxes[name].currentText()))

    def _refresh_hub(self) -> None:
        model = self._model
        set_text(self.hub_note, model.hub_note)
        words = tr("Read again") if model.hub_known else tr("Read config.json")
        self.read.setText(tr("Reading…") if model.reading else words)
        name = model.form.repository.strip()
        self.read.setAccessibleName(tr("Read config.json from Hugging Face"))
        self.read.setEnabled(bool(name) and not model.reading)
        said = tr("Two requests to {hub_name}: config.json and the list of files", hub_name=model.hub_name)
        self.read.setToolTip(tip(said, "", f"sndr fit {name or 'organisation/model'} --online"))
        known = sorted({one.repository for one in (model.hub.models if model.hub else ())})
        if known and self.repository.property("known") != known:
            self.repository.setProperty("known", known)
            Completer(known, self.repository)

    def refresh_planned(self) -> None:
        """Show what the answer says of the values that are left open."""
        report = self._model.report
        self._filling = True
        self._offer("kv", self._model.kv_choices())
        self._offer("variant", self._model.variant_choices())
        self._filling = False
        for name, value in (
            ("context", report.context if report else None),
            ("streams", report.streams if report else None),
            ("tensor_parallel", report.tensor_parallel if report else None),
        ):
            self.numbers[name].edit.setPlaceholderText(tr("Default") if value is None else f"{value}")
        usual = {
            "gpu_memory": "0.9",
            "draft_tokens": "3",
            "batched_tokens": tr("Default"),
            "bits": tr("from the config"),
            "gpu_layers": tr("all"),
            "cpu_experts": "0",
            "kv_cache_gib": tr("Default"),
            "acceptance_length": tr("all of them"),
        }
        for name, said in usual.items():
            self.numbers[name].edit.setPlaceholderText(said)
