"""The pages, one in front: those behind take a new theme's colours when they are shown."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QStackedWidget, QWidget

from sndr_gui.kit import theme

_POLISHED = Qt.WidgetAttribute.WA_WState_Polished


class PageStack(QStackedWidget):
    """Shows one page; a change of theme passes over the others, for a dozen of them take long to dress."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("pages")
        self._behind: set[QWidget] = set()
        self._cover: QWidget | None = None
        # With the last style sheet Qt forgets which colours are its own, and leaves those of the theme before
        # where it passed over; this sheet of a widget that nobody sees outlasts the application's.
        self._keeper = QWidget(self)
        self._keeper.hide()
        self._keeper.setStyleSheet("QWidget { color: black; }")
        self._keeper.ensurePolished()
        theme.notifier.restyling.connect(self._on_restyling)

    def setCurrentWidget(self, page: QWidget) -> None:
        self._dress(page)
        super().setCurrentWidget(page)

    def cover(self, page: QWidget) -> None:
        """Show the place of a page that is about to be made, painted before this returns, until `uncover`.

        The page before stays below: nothing loses the focus for it.
        """
        page.setParent(self)
        # Otherwise the page before would shine through.
        page.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        page.setGeometry(self.rect())
        page.show()
        page.raise_()
        self._cover = page
        self.window().repaint()

    def uncover(self) -> None:
        """Take the place away: its page is there."""
        if self._cover is not None:
            self._cover.hide()
            self._cover.deleteLater()
            self._cover = None

    def removeWidget(self, page: QWidget) -> None:
        self._behind.discard(page)
        super().removeWidget(page)

    def _on_restyling(self, same_sizes: bool) -> None:
        # Qt dresses anew what was dressed before.
        if not same_sizes:
            for page in self._behind:
                _mark(page, True)
            self._behind.clear()
            return
        for page in self._pages() - {self.currentWidget()}:
            _mark(page, False)
            self._behind.add(page)

    def _dress(self, page: QWidget) -> None:
        if page not in self._behind:
            return
        self._behind.discard(page)
        style = QApplication.style()
        for one in (page, *page.findChildren(QWidget)):
            if not one.testAttribute(_POLISHED):
                style.polish(one)
                one.setAttribute(_POLISHED)

    def _pages(self) -> set[QWidget]:
        return {page for page in map(self.widget, range(self.count())) if page is not None}


def _mark(page: QWidget, dressed: bool) -> None:
    for one in (page, *page.findChildren(QWidget)):
        one.setAttribute(_POLISHED, dressed)
