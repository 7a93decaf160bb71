"""A widget ends in the window's thread, whichever thread is at work when its turn comes."""

import gc
import threading
import weakref

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

from sndr_gui.kit.loop.garbage import GarbageCollection


class Ticking(QObject):
    """A timer in a cycle of references: only the collector ends it."""

    def __init__(self, ended: list[int]) -> None:
        super().__init__()
        self.timer = QTimer(self)
        self.timer.start(1)
        self.itself = self
        weakref.finalize(self, lambda: ended.append(threading.get_ident()))


def test_other_threads_end_no_widget(qapp: QApplication) -> None:
    ended: list[int] = []
    gc.enable()
    collection = GarbageCollection()
    try:
        Ticking(ended)
        worker = threading.Thread(target=lambda: [[] for _ in range(200_000)])
        worker.start()
        worker.join()
        assert not ended
        kept = [[] for _ in range(20_000)]  # type: ignore[var-annotated]
        collection.collect_due()
        assert ended == [threading.get_ident()]
        assert kept
    finally:
        collection.stop()
        qapp.processEvents()
        assert gc.isenabled()
        gc.disable()
