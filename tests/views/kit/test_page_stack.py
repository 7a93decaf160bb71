"""A change of theme passes over the pages behind, and each wears it before it is shown."""

from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from sndr_gui.kit import theme
from sndr_gui.kit.look.choices import Density, Look, ThemeChoice
from sndr_gui.kit.look.page_stack import PageStack
from sndr_gui.views.widgets.labels import set_tone, text

POLISHED = Qt.WidgetAttribute.WA_WState_Polished


def page(tone: str) -> tuple[QWidget, QLabel]:
    made = QWidget()
    made.setObjectName("page")
    label = text("said", tone)
    label.setParent(made)
    return made, label


def colour(label: QLabel) -> str:
    return label.palette().windowText().color().name()


def test_a_page_behind_wears_the_theme_when_it_is_shown(dressed: QApplication) -> None:
    stack = PageStack()
    front, said_in_front = page("muted")
    behind, said_behind = page("bad")
    for one in (front, behind):
        stack.addWidget(one)
        stack.setCurrentWidget(one)
    stack.show()
    stack.setCurrentWidget(behind)
    stack.setCurrentWidget(front)
    try:
        for choice in (ThemeChoice.DARK, ThemeChoice.LIGHT, ThemeChoice.DARK):
            theme.choose(choice)
            assert colour(said_in_front) == theme.color("muted").name()
            assert not said_behind.testAttribute(POLISHED), "nobody sees it"
        set_tone(said_behind, "")
        stack.setCurrentWidget(behind)
        assert said_behind.testAttribute(POLISHED)
        assert colour(said_behind) == theme.color("text").name(), "nothing is left of what it was"
        set_tone(said_behind, "good")
        assert colour(said_behind) == theme.color("good").name()
        stack.setCurrentWidget(front)
        theme.choose(ThemeChoice.LIGHT)
        assert colour(said_behind) != theme.color("good").name()
        theme.wear(Look(ThemeChoice.LIGHT, density=Density.COMPACT))
        assert said_behind.testAttribute(POLISHED), "what changes the room is measured everywhere"
        stack.removeWidget(behind)
        behind.deleteLater()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        theme.wear(Look(ThemeChoice.DARK))
        assert colour(said_in_front) == theme.color("muted").name()
    finally:
        stack.deleteLater()
        theme.wear(Look(ThemeChoice.LIGHT))
