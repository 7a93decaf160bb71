"""The language of the window, installed before any module is imported that has texts at its top."""

import os

from engine_host.client import Folders, read_text
from engine_host.client.language import chosen_language, install
from sndr_gui.kit.settings import LARGEST, WindowSettings


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
