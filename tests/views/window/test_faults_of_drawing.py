"""An error in drawing, or in the answer to another event, stays there: the window goes on and tells it.

In a process of its own: there is one application in each, and the other tests have Qt's.
"""

import json
import os
import subprocess
import sys

from sndr_gui.kit.loop.application import what_failed

PROGRAM = """
import json, sys
from PySide6.QtCore import QAbstractTableModel, QEvent, QPoint, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QTableView, QVBoxLayout, QWidget
from sndr_gui.app import Report
from sndr_gui.host.notices import Notices
from sndr_gui.kit.loop.application import Application

class Faulty(QWidget):
    def __init__(self):
        super().__init__()
        self.setFixedSize(30, 30)
        self.drawn = 0
    def paintEvent(self, event):
        self.drawn += 1
        raise ValueError("it cannot be drawn.")
    def mousePressEvent(self, event):
        raise KeyError("it cannot be pressed")

class FaultyTable(QAbstractTableModel):
    def rowCount(self, parent=None):
        return 5
    def columnCount(self, parent=None):
        return 5
    def data(self, index, role=0):
        raise RuntimeError("it has no cells")

app = Application(["test"])
notices, met, told, asked = Notices(), [], [], []
notices.posted.connect(lambda notice: told.append(notice.text))
report = Report(notices, None)

def failed(error):
    met.append(str(error))
    report.of_event(error)

app.failed = failed
window, table, model = QWidget(), QTableView(), FaultyTable()
table.setModel(model)
faulty = [Faulty(), Faulty()]
lines = QVBoxLayout(window)
for part in (*faulty, table):
    lines.addWidget(part)
window.show()

def again():
    if min(one.drawn for one in faulty) > 5:
        QTest.mouseClick(faulty[0], Qt.MouseButton.LeftButton)
        QTimer.singleShot(0, leave)
        return
    window.update()
    QTimer.singleShot(5, again)

def leave():
    app.quit_wanted = lambda: asked.append(True)
    event = QEvent(QEvent.Type.Quit)
    app.sendEvent(app, event)
    shown = window.isVisible()
    app.quit_wanted = None
    said = {"met": met, "told": told, "asked": asked, "accepted": event.isAccepted(), "shown": shown}
    print(json.dumps(said))
    app.exit()

QTimer.singleShot(0, again)
app.exec()
"""


def test_what_fails_at_drawing_is_told_once_and_the_others_go_on() -> None:
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    met = {what_failed(RuntimeError(text)) for text in said["met"]}
    assert {"it cannot be drawn", "it has no cells"} <= met
    # Met where it happened: nothing else of Python was asked between.
    assert all(text.count("override") == 1 for text in said["met"])
    assert len(said["met"]) > 10, "each is asked at each drawing, whatever failed before it"
    assert done.stderr.count("ValueError: ") == 1, "told once, and not at each drawing"
    assert sum("it cannot be drawn" in text for text in said["told"]) == 1
    assert said["asked"] == [True]
    assert not said["accepted"], "quitting is asked for, and not done"
    assert said["shown"]


def test_the_message_has_no_names_of_overrides() -> None:
    met = "Error calling Python override of QObject::eventFilter(): " * 2 + "it failed."
    assert what_failed(ValueError(met)) == "it failed"
    assert what_failed(ValueError()) == "ValueError"
