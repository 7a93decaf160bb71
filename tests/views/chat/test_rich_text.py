"""Hostile answers: no image, link, title or style makes Qt open anything."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QColor, QImage, QTextDocument
from pytestqt.qtbot import QtBot

from sndr_gui.views.chat.rich_text import MessageText


class Trap:
    """A FIFO that knows whether somebody opened it for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self.opened = threading.Event()
        self._thread = threading.Thread(target=self._wait, name="trap")
        self._thread.start()

    def _wait(self) -> None:
        with open(self.path, "wb"):
            self.opened.set()

    def close(self) -> None:
        """Let the waiting writer go."""
        reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self._thread.join()
        os.close(reader)


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[Trap]:
    made = Trap(tmp_path / "trap.png")
    yield made
    made.close()


def shown(qtbot: QtBot, markdown: str) -> MessageText:
    """The text as a person sees it, laid out and painted."""
    text = MessageText("Answer")
    qtbot.addWidget(text)
    text.resize(500, 300)
    text.append_text(markdown)
    text.finish()
    text.grab()
    return text


@pytest.mark.parametrize(
    "markdown",
    [
        "![a](file://{path})",
        "![a]({path})",
        "![a](<file://{path}>)",
        "[![a](file://{path})](file://{path})",
        "| ![a](file://{path}) |\n|---|\n| ![b]({path}) |",
        "* ![a](file://{path})",
        "> ![a](file:{path})",
        "![ref][r]\n\n[r]: file://{path}",
        "<img src='file://{path}'>",
        '<link rel="stylesheet" href="file://{path}"><style>@import url(file://{path});</style>',
    ],
)
def test_an_answer_opens_no_file(qtbot: QtBot, trap: Trap, markdown: str) -> None:
    text = shown(qtbot, markdown.format(path=trap.path))
    text.render_again()
    text.grab()
    text.selectAll()
    text.copy()
    assert not trap.opened.is_set()
    assert "\ufffc" not in text.toPlainText(), "an image is left in the text"


def test_an_image_is_named_and_not_drawn(qtbot: QtBot, tmp_path: Path) -> None:
    picture = QImage(40, 40, QImage.Format.Format_RGB32)
    picture.fill(QColor("red"))
    file = tmp_path / "red.png"
    assert picture.save(str(file))
    text = shown(qtbot, f"before ![a red square](file://{file}) after")
    assert text.toPlainText() == "before [image: a red square] after"
    image = text.grab().toImage()
    colours = {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}
    assert "#ff" + "0000" not in colours


@pytest.mark.parametrize("kind", list(QTextDocument.ResourceType))
def test_no_resource_is_loaded_whatever_asks(
    qtbot: QtBot, trap: Trap, kind: QTextDocument.ResourceType
) -> None:
    text = shown(qtbot, "x")
    for address in (
        f"file://{trap.path}",
        str(trap.path),
        "qrc:/x",
        "data:text/plain,x",
        "http://127.0.0.1:9/x",
    ):
        assert not text.document().resource(kind.value, QUrl(address))
    assert not trap.opened.is_set()


def test_the_title_of_a_link_is_text(qtbot: QtBot) -> None:
    text = shown(qtbot, """[a](http://b "<img src='file:///dev/zero'>")""")
    tips = []
    block = text.document().begin()
    while block.isValid():
        iterator = block.begin()
        while not iterator.atEnd():
            tips.append(iterator.fragment().charFormat().toolTip())
            iterator += 1
        block = block.next()
    assert any("&lt;img" in tip for tip in tips)
    assert not any("<img" in tip for tip in tips)
