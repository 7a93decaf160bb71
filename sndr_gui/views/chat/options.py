"""The settings of a conversation: its system prompt, and a field for each value of the table of sampling."""

from __future__ import annotations

from PySide6.QtWidgets import QGridLayout, QPlainTextEdit

from engine_host.client.chats.sampling import SAMPLING, spelled
from engine_host.protocol.language import tr
from sndr_gui.models.chat.options import Options
from sndr_gui.models.chat.page import ChatModel
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.fields import NumberField
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import column, row

_COLUMNS = 4


class OptionsCard(Card):
    """Each field is empty where the engine's own default holds."""

    def __init__(self, model: ChatModel) -> None:
        super().__init__()
        self._model = model
        self._filling = False
        self.system = QPlainTextEdit()
        self.system.setAccessibleName(tr("System prompt"))
        self.system.setPlaceholderText(tr("Instructions for the model, before the first message"))
        self.system.setTabChangesFocus(True)
        self.system.setFixedHeight(66)
        self.fields = {
            one.name: NumberField(
                one.caption, one.low, one.high, self._on_edited, tokens=one.name == "max_tokens"
            )
            for one in SAMPLING
        }
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(8)
        for place, one in enumerate(SAMPLING):
            field = self.fields[one.name]
            field.edit.setPlaceholderText(one.empty)
            field.setToolTip(tip(one.help))
            caption = text(one.caption, "muted")
            caption.setBuddy(field.edit)
            grid.addLayout(column(caption, field, None, spacing=3), place // _COLUMNS, place % _COLUMNS)
            grid.setColumnStretch(place % _COLUMNS, 1)
        self.temperature, self.tokens = self.fields["temperature"].edit, self.fields["max_tokens"].edit
        self.reset = button(
            tr("Engine's defaults"), self._on_reset, kind="flat", hint=tr("Empty every field")
        )
        self.command = CopyField("", tr("equivalent command"), wraps=True)
        self.system.textChanged.connect(self._on_edited)
        self.body.addLayout(column(text(tr("System prompt"), "muted"), self.system, spacing=3))
        self.body.addLayout(grid)
        line = row(self.command, self.reset)
        line.setStretch(0, 1)
        self.body.addLayout(line)
        self.fill()

    def fill(self) -> None:
        """Show the settings of the conversation that is shown."""
        options = self._model.options
        self._filling = True
        if self.system.toPlainText() != options.system:
            self.system.setPlainText(options.system)
        for name, field in self.fields.items():
            value = options.sampling.get(name)
            field.edit.setText("" if value is None else spelled(value))
        self._filling = False
        self.refresh()

    def refresh(self) -> None:
        """Show the command of now."""
        self.command.set_content(self._model.command)
        self.reset.setEnabled(self._model.options.count > 0 or bool(self._model.options_error))

    def _on_reset(self) -> None:
        self._filling = True
        self.system.clear()
        for field in self.fields.values():
            field.edit.clear()
        self._filling = False
        self._on_edited()

    def _on_edited(self) -> None:
        if self._filling:
            return
        wrong = next(
            (
                f"{one.caption}: {error}"
                for one in SAMPLING
                if (error := self.fields[one.name].error)
            ),
            "",
        )  # fmt: skip
        sampling = {}
        for one in SAMPLING:
            field = self.fields[one.name]
            value = field.count if one.whole else field.value
            if value is not None:
                sampling[one.name] = value
        self._model.set_options(Options(self.system.toPlainText(), sampling), wrong)
