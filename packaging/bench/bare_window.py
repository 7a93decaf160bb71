"""A window of Qt's alone, with one label: what the program's first picture is compared with."""

import json
import os
import sys
import time
from pathlib import Path

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QLabel, QMainWindow


def process_age() -> float:
    """Return the seconds since this process began."""
    fields = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")


class Bare(QMainWindow):
    """Says when it was painted for the first time, and ends."""

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() == QEvent.Type.Paint:
            print(json.dumps({"event": "painted", "seconds": round(process_age(), 3)}), flush=True)
            QApplication.exit(0)
        return done


def main() -> int:
    """Show it."""
    app = QApplication(sys.argv)
    window = Bare()
    window.setCentralWidget(QLabel("Qt"))
    window.resize(1280, 820)
    window.show()
    return app.exec()


if __name__ == "__main__":
    sys.exit(main())
