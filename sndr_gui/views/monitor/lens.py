"""The prefix lens: conversations, and how much of its prompt each turn reused."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSizePolicy, QSplitter, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.models.monitor.lens import LensModel, name_of
from sndr_gui.views.graphs.bars import ShareBars
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import column
from sndr_gui.views.widgets.tables import Table

# Broken by hand: a text that wraps would make the page as high as its graphs like to be.
_EMPTY = tr(
    "No conversations yet. Each chat through the endpoint is a turn of one.\nFrom "
    "the second turn on, this says how much of the prompt came from the cache,\nat "
    "which message it parted from the turn before, and what that cost.\nHashes of "
    "the parts of a prompt are kept for it, never their text."
)


class LensPane(QWidget):
    """Conversations on the left; on the right the bars and the turns of one."""

    def __init__(self, model: LensModel) -> None:
        super().__init__()
        self.model = model
        self.conversations = Table(
            model.conversations,  # type: ignore[arg-type]
            tr("Conversations"),
            1,
            {0: 84, 2: 60, 3: 76, 4: 72},
        )
        self.conversations.row_chosen.connect(self._on_chosen)
        self.turns = Table(model.turns, tr("Turns"), 5, {0: 84, 1: 64, 2: 70, 3: 64, 4: 72})  # type: ignore[arg-type]
        self.bars = ShareBars(tr("Share of the prompt that was reused, by turn"))
        self.bars.setMaximumHeight(150)
        self._title = text("", name="h2")
        self._split = QSplitter(Qt.Orientation.Horizontal)
        self._split.setChildrenCollapsible(False)
        self._split.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self._split.addWidget(self.conversations)
        right = QWidget()
        right.setLayout(column(self._title, self.bars, self.turns))
        self._split.addWidget(right)
        self._split.setSizes([440, 560])
        self._split.setMinimumHeight(300)
        self._empty = text(_EMPTY, "muted")
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.addWidget(self._empty)
        lines.addWidget(self._split, 1)
        lines.addWidget(CopyField("sndr requests prefix", tr("equivalent command")))
        model.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show what the model knows now."""
        one = self.model.conversation
        self._empty.setVisible(one is None)
        self._split.setVisible(one is not None)
        if one is None:
            return
        set_text(self._title, name_of(one))
        self.bars.show_shares(self.model.shares())
        place = self.model.conversations.place_of(one.id)
        if place is not None and place != self.conversations.chosen:
            self.conversations.selectRow(place)

    def _on_chosen(self, place: int) -> None:
        one = self.model.conversations.row_at(place)
        if one is not None:
            self.model.choose(one.id)
