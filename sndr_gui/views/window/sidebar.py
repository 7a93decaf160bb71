"""The sidebar: a button for each page, in groups; folded, it shows their icons alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QPushButton,
    QSizePolicy,
    QSpacerItem,
    QVBoxLayout,
    QWidget,
)

from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.kit.shortcuts import keys
from sndr_gui.views.widgets.buttons import EnterButton, tip
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import row, rule
from sndr_gui.views.window.pages import PageEntry, PageGroup

if TYPE_CHECKING:
    from sndr_gui.views.window.host_choice import HostChoice

_WIDE, _NARROW = 208, 58
# Of a button: comfortable, compact.
_HEIGHT = (36, 28)
# Of the choice of host, whose place is kept: where it came, all entries moved under the pointer.
_HOST_HEIGHT = (34, 28)


class _NavButton(EnterButton):
    """A button of one line that gives way where the window is low, down to what an icon needs."""

    def __init__(self, title: str, icon: str) -> None:
        super().__init__()
        self.setObjectName("nav")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Maximum)
        self.icon_shown = theme.ButtonIcon(self, icon, "muted", 18)
        self._title, self._folded = title, False
        theme.notifier.density_changed.connect(self.updateGeometry)
        self.set_title(title)

    def set_title(self, title: str) -> None:
        """Show a title, where there is room for one."""
        self._title = title
        self.setText("" if self._folded else f"  {title}")

    def set_folded(self, folded: bool) -> None:
        """Show the icon alone, or the title beside it."""
        self._folded = folded
        self.set_title(self._title)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), _HEIGHT[theme.compact()])

    def minimumSizeHint(self) -> QSize:
        return QSize(super().minimumSizeHint().width(), 26)


class Sidebar(QWidget):
    """Offers the pages and marks the one in front.

    Signals:
        chosen: the name of the page that the person wants to see
        fold_wanted: the person wants it folded, or unfolded
    """

    chosen = Signal(str)
    fold_wanted = Signal()

    def __init__(self, groups: Sequence[PageGroup], folded: bool) -> None:
        super().__init__()
        self.setObjectName("sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.folded = False
        self.buttons: dict[str, QPushButton] = {}
        self._nav: dict[str, _NavButton] = {}
        self._icons: dict[str, str] = {}
        self._tips: dict[str, tuple[PageEntry, tuple[str, str]]] = {}
        self._host_choice: HostChoice | None = None
        lines = self._lines = QVBoxLayout(self)
        lines.setContentsMargins(8, 10, 8, 4)
        lines.setSpacing(1)
        brand = text("SNDR", name="brand")
        self._brand = row(brand, None)
        lines.addLayout(self._brand)
        self._below_brand = QWidget()
        lines.addWidget(self._below_brand)
        theme.notifier.density_changed.connect(self._on_density)
        self._on_density()
        self._gap(6)
        one_of = QButtonGroup(self)
        for place, group in enumerate(groups):
            if place:
                self._gap(4)
                lines.addWidget(rule())
                self._gap(4)
            for page in group.pages:
                made = self._page_button(page, group.title)
                one_of.addButton(made)
                lines.addWidget(made)
        lines.addStretch(1)
        self.fold = _NavButton("", "panel-left-close")
        self.fold.clicked.connect(self.fold_wanted)
        lines.addWidget(self.fold)
        self.set_folded(folded)

    def _on_density(self) -> None:
        self._below_brand.setFixedHeight(_HOST_HEIGHT[theme.compact()])

    def _gap(self, height: int) -> None:
        policy = QSizePolicy.Policy
        # It goes where the window is low, before anything is cut off.
        self._lines.addItem(QSpacerItem(0, height, policy.Minimum, policy.Maximum))

    def _page_button(self, page: PageEntry, group: str) -> QPushButton:
        made = _NavButton(page.title, page.icon)
        made.setCheckable(True)
        made.setAccessibleName(page.title)
        made.setAccessibleDescription(group)
        # Folded, the group is told with the name: nothing else says what stands together.
        self._tips[page.name] = (page, (page.title, f"{group}: {page.title}"))
        made.setProperty("page", page.name)
        made.clicked.connect(self._on_clicked)
        self._nav[page.name] = self.buttons[page.name] = made
        self._icons[page.name] = page.icon
        return made

    def _on_clicked(self) -> None:
        clicked = self.sender()
        if isinstance(clicked, QPushButton):
            self.chosen.emit(str(clicked.property("page")))

    def add_host_choice(self, choice: HostChoice) -> None:
        """Show the choice of host below the program's name, and the state of that host beside the name."""
        self._host_choice = choice
        self._below_brand.setLayout(row(choice))
        self._brand.addWidget(choice.word)
        choice.set_folded(self.folded)

    def mark(self, name: str) -> None:
        """Mark the page in front."""
        for key, made in self._nav.items():
            made.icon_shown.show_icon(self._icons[key], "accent" if key == name else "muted")
        self._nav[name].setChecked(True)

    def set_folded(self, folded: bool) -> None:
        """Show icons alone, or titles beside them."""
        self.folded = folded
        self.setFixedWidth(_NARROW if folded else _WIDE)
        self._brand.setContentsMargins(3 if folded else 12, 0, 0 if folded else 12, 4)
        for made in (*self._nav.values(), self.fold):
            made.set_folded(folded)
        for name, (page, titles) in self._tips.items():
            self._nav[name].setToolTip(tip(titles[folded], page.shortcut))
        if self._host_choice is not None:
            self._host_choice.set_folded(folded)
        said = tr("Unfold the sidebar") if folded else tr("Fold the sidebar")
        self.fold.set_title(said)
        self.fold.icon_shown.show_icon("panel-left-open" if folded else "panel-left-close")
        self.fold.setAccessibleName(said)
        self.fold.setToolTip(tip(said, keys("fold")))
