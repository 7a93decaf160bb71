"""The base of every page: its header, its actions and its body."""

from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtWidgets import QApplication, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from sndr_gui.kit import theme
from sndr_gui.views.widgets.labels import ElidedLabel
from sndr_gui.views.widgets.layout import GAP, MARGIN, HeightForWidthLayout, column, row, scrolling

# Above the title, and between the cards: comfortable, compact.
_ABOVE, _BETWEEN = (22, 12), (GAP, 8)


class Page(QWidget):
    """One page: a title with a muted subtitle, actions at the right, and a body below.

    What is put into `below_header` stays in sight while the body is scrolled.
    """

    def __init__(self, title: str, scrolls: bool = False) -> None:
        super().__init__()
        self.setObjectName("page")
        self._area: QScrollArea | None = None
        # A conversation, a preset or a host may be called anything, and of any length.
        self.title = ElidedLabel(title, name="h1")
        self.subtitle = ElidedLabel("", "muted")
        self.tools = row(spacing=GAP)
        header = QHBoxLayout()
        self._header = header
        header.setContentsMargins(MARGIN, _ABOVE[theme.compact()], MARGIN, 0)
        header.setSpacing(GAP)
        header.addLayout(column(self.title, self.subtitle, spacing=2), 1)
        header.addLayout(self.tools)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(12)
        outer.addLayout(header)
        self.below_header = row()
        self.below_header.setContentsMargins(MARGIN, 0, MARGIN, 0)
        outer.addLayout(self.below_header)
        self.body: QVBoxLayout = HeightForWidthLayout() if scrolls else QVBoxLayout()
        self.body.setSpacing(_BETWEEN[theme.compact()])
        theme.notifier.density_changed.connect(self._on_density)
        if scrolls:
            canvas = QWidget()
            canvas.setObjectName("canvas")
            canvas.setLayout(self.body)
            self.body.setContentsMargins(MARGIN, 2, MARGIN, 20)
            area = self._area = scrolling(canvas)
            area.verticalScrollBar().rangeChanged.connect(self._on_scroll_range)
            outer.addWidget(area, 1)
        else:
            self.body.setContentsMargins(MARGIN, 2, MARGIN, 20)
            outer.addLayout(self.body, 1)

    def _on_density(self) -> None:
        self._header.setContentsMargins(MARGIN, _ABOVE[theme.compact()], MARGIN, 0)
        if self.body.spacing() == _BETWEEN[not theme.compact()]:
            self.body.setSpacing(_BETWEEN[theme.compact()])

    def _on_scroll_range(self, _low: int, high: int) -> None:
        # The scroll bar takes its room from the margin, so that the cards stay where they are.
        self.body.setContentsMargins(MARGIN, 2, MARGIN - (10 if high else 0), 20)

    def set_shown(self, shown: bool) -> None:
        """Called when the page comes to the front or leaves it."""

    def step_back(self) -> bool:
        """Leave what is open on the page; False where nothing is, and Back leads to the page before."""
        return False

    def bring_into_sight(self, part: QWidget, control: QWidget) -> None:
        """Scroll to a part of the page and put the focus on a control of it."""
        control.setFocus(Qt.FocusReason.ShortcutFocusReason)
        if self._area is not None:
            # What was filled in just now has its place only once it was laid out.
            QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
            canvas = self._area.widget()
            if canvas is not None and part.height() > self._area.viewport().height():
                # Of what is too tall its beginning.
                top = part.mapTo(canvas, QPoint()).y()
                self._area.verticalScrollBar().setValue(top - 8)
            else:
                self._area.ensureWidgetVisible(part, 0, 40)

    def focus_filter(self) -> None:
        """Put the cursor into the page's filter, where it has one."""


def place_of(title: str) -> Page:
    """Return an empty page with its title where it stays, for the time until its page is made."""
    place = Page(title)
    place.body.addStretch(1)
    return place
