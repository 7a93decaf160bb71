"""The look of the window and its language; scale and language wait for the next start."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap, QStandardItemModel
from PySide6.QtWidgets import QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.kit.look.choices import Accent, largest_scale
from sndr_gui.kit.look.colours import THEMES, with_accent
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.settings.look import LOOK_ENTRIES, WindowEntry
from sndr_gui.models.settings.page import SettingsModel
from sndr_gui.views.settings.line import OwnLine
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import SegmentedControl
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.labels import badge, set_text, text
from sndr_gui.views.widgets.layout import row, rule

_SWATCH = 16
# The smallest window, and what a window manager draws around it.
LEAST = (908, 640)


class AppearanceCard(Card):
    """One row for each choice, and a sample of what it does."""

    def __init__(self, model: SettingsModel) -> None:
        super().__init__(tr("Look"))
        self._model = model
        self.controls: dict[str, SegmentedControl] = {}
        self.scale = ChoiceBox(tr("Scale"))
        self.scale.activated.connect(self._on_scale)
        self.scale_said = text("", "muted", wrap=True)
        self.language = ChoiceBox(tr("Language"))
        self.language.activated.connect(self._on_language)
        self.language_said = text("", "muted", wrap=True)
        for place, entry in enumerate(LOOK_ENTRIES):
            if place:
                self.body.addWidget(rule())
            about = text(entry.help, "muted", wrap=True)
            control: QWidget
            if entry.name == "scale":
                about, control = self.scale_said, self._scale_box(entry)
            elif entry.name == "language":
                about, control = self.language_said, self.language
                self.language.fill(entry.choices, model.window.language)
            else:
                control = self._segments(entry)
            self.body.addWidget(OwnLine(entry, control, about))
        self.body.addWidget(self._sample())
        theme.notifier.changed.connect(self._paint_swatches)
        self._paint_swatches()

    def _segments(self, entry: WindowEntry) -> QWidget:
        titles = tuple(title for title, _value in entry.choices)
        made = self.controls[entry.name] = SegmentedControl(titles, entry.label)
        for (title, value), choice in zip(entry.choices, made.buttons, strict=True):
            choice.clicked.connect(partial(self._model.set_look, entry.name, value))
            if entry.name == "accent":
                # The colour says it, and the tooltip its name.
                choice.setText("")
                choice.setProperty("square", "true")
                choice.setToolTip(plain_tooltip(title))
        return made

    def _scale_box(self, entry: WindowEntry) -> QWidget:
        for title, value in entry.choices:
            self.scale.addItem(title, value)
        return self.scale

    def _on_scale(self, _place: int) -> None:
        self._model.set_look("scale", self.scale.currentData())

    def _on_language(self, _place: int) -> None:
        self._model.set_look("language", self.language.currentData())

    def _sample(self) -> QWidget:
        sample = Card()
        sample.setAccessibleName(tr("Sample of the look"))
        words = (
            (tr("chosen"), "accent"),
            (tr("ready"), "good"),
            (tr("tight"), "warn"),
            (tr("failed"), "bad"),
            (tr("quiet"), ""),
        )
        self.sized = text(tr("Text in the next size"))
        line = row(*(badge(*said) for said in words), None, self.sized)
        sample.body.addLayout(line)
        return sample

    def _paint_swatches(self) -> None:
        """Draw each accent as the theme of now has it."""
        here = theme.current()
        for accent, choice in zip(Accent, self.controls["accent"].buttons, strict=True):
            colour = next(
                with_accent(base, accent).accent
                for base in THEMES.values()
                if (base.shade, base.strong) == (here.shade, here.strong)
            )
            choice.setIcon(_swatch(QColor(colour), choice.devicePixelRatioF()))

    def refresh(self) -> None:
        """Show the choices of now."""
        look = self._model.window
        for entry in LOOK_ENTRIES:
            chosen = getattr(look, entry.name)
            values = [value for _title, value in entry.choices]
            # A language that tests choose is none of them.
            place = values.index(chosen) if chosen in values else -1
            if entry.name == "scale":
                self.scale.setCurrentIndex(place)
            elif entry.name == "language":
                self.language.setCurrentIndex(place)
                later = chosen != self._model.language_in_force
                set_text(self.language_said, tr("From the next start.") if later else entry.help)
            else:
                self.controls[entry.name].buttons[place].setChecked(True)
        self._refresh_scale(look.scale)

    def _refresh_scale(self, chosen: int) -> None:
        in_force = self._model.scale_in_force
        screen = self.screen().availableSize()
        most = largest_scale(in_force, (screen.width(), screen.height()), LEAST)
        items = self.scale.model()
        if isinstance(items, QStandardItemModel):
            for place in range(self.scale.count()):
                items.item(place).setEnabled(self.scale.itemData(place) <= max(most, chosen))
        said = tr("Of everything, over the system's own.")
        if chosen != in_force:
            said = tr("{in_force} % now; {chosen} % from the next start.", in_force=in_force, chosen=chosen)
        elif most < self.scale.itemData(self.scale.count() - 1):
            said += " " + tr("This screen has room for {most} %.", most=most)
        set_text(self.scale_said, said)
        font = self.sized.font()
        font.setPixelSize(round(self.font().pixelSize() * chosen / in_force))
        self.sized.setFont(font)
        self.sized.setVisible(chosen != in_force)


def _swatch(colour: QColor, ratio: float) -> QIcon:
    picture = QPixmap(round(_SWATCH * ratio), round(_SWATCH * ratio))
    picture.setDevicePixelRatio(ratio)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawEllipse(1, 1, _SWATCH - 2, _SWATCH - 2)
    painter.end()
    return QIcon(picture)
