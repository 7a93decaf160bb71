"""The languages that there are, and which of them a person's system speaks."""

import sys
from collections.abc import Mapping

SYSTEM = "system"
PSEUDO = "pseudo"
"""English with accents, made while the program runs: tests see in it what is cut off or not translated."""
LANGUAGES = {"en": "English", "de": "Deutsch", "ru": "Русский", "zh": "中文", "ja": "日本語"}
"""Each by its own name."""
_VARIABLES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")


def chosen_language(chosen: str, environment: Mapping[str, str]) -> str:
    """Return the language for a setting: one that is named, else the system's, else English."""
    if chosen in LANGUAGES or chosen == PSEUDO:
        return chosen
    for name in _VARIABLES:
        # LANGUAGE may list several: the first that we have counts.
        for one in environment.get(name, "").split(":"):
            if (code := _code(one)) in LANGUAGES:
                return code
        if name != "LANGUAGE" and environment.get(name):
            return "en"
    code = _code(_of_windows()) if sys.platform == "win32" else ""
    return code if code in LANGUAGES else "en"


def _code(name: str) -> str:
    return name.split(".")[0].replace("-", "_").split("_")[0].lower()


def _of_windows() -> str:
    if sys.platform == "win32":
        import ctypes
        import locale

        return locale.windows_locale.get(ctypes.windll.kernel32.GetUserDefaultUILanguage(), "")
    return ""
