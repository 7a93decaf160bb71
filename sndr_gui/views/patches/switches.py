"""A menu that switches a whole family of patches, or all of them, for the next start."""

from collections.abc import Callable

from PySide6.QtWidgets import QMenu, QWidget

from engine_host.protocol.language import tr
from sndr_gui.models.patches.page import ALL_PATCHES, PatchesModel
from sndr_gui.views.widgets.buttons import tip

_WAYS = ((tr("Switch on"), "on"), (tr("Switch off"), "off"), (tr("Back to the default"), "default"))


class SwitchMenu(QMenu):
    """One submenu for all patches and one for each family; made anew whenever it opens."""

    def __init__(self, parent: QWidget, model: PatchesModel) -> None:
        super().__init__(parent)
        self._model = model
        self.setAccessibleName(tr("Switch families of patches"))
        self.setToolTipsVisible(True)
        self.aboutToShow.connect(self.fill)

    def fill(self) -> None:
        """Offer what there is now."""
        self.clear()
        for name, title in self._model.scopes():
            menu = self.addMenu(title)
            menu.setToolTipsVisible(True)
            for words, to in _WAYS:
                action = menu.addAction(words)
                action.setToolTip(tip(tr("For the next start"), "", f"sndr patches switch {to} {name}"))
                action.triggered.connect(self._switcher(to, name))
            if name == ALL_PATCHES:
                self.addSeparator()

    def _switcher(self, to: str, name: str) -> Callable[[], None]:
        def switch() -> None:
            self._model.switch(to, name)

        return switch
