"""The language of the window, installed before any module is imported that has texts at its top."""

import os
from typing import TYPE_CHECKING

from engine_host.client import Folders, read_text
from engine_host.protocol.language import chosen_language, install, language
from sndr_gui.kit.settings import LARGEST, WindowSettings

if TYPE_CHECKING:
    from PySide6.QtCore import QCoreApplication


def install_language(folders: Folders) -> None:
    """Speak the language that the settings choose; what is wrong with their file is told by who opens it."""
    chosen = os.environ.get("SNDR_LANGUAGE", "")
    if chosen:
        install(chosen_language(chosen, os.environ))
        return
    try:
        chosen = WindowSettings.parse(read_text(folders.config / "window.json", LARGEST)).language
    except (OSError, ValueError, TypeError):
        chosen = WindowSettings.language
    install(chosen_language(chosen, os.environ))


def translate_qt(app: "QCoreApplication") -> None:
    """Have Qt's own menus and buttons in the installed language, by the translations that come with Qt."""
    from PySide6.QtCore import QLibraryInfo, QTranslator

    name = {"zh": "zh_CN"}.get(language(), language())
    translator = QTranslator(app)
    if name != "en" and translator.load(
        f"qtbase_{name}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    ):
        app.installTranslator(translator)
