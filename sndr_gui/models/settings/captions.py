"""Settings by their captions in every sentence of the window; the command line calls them by their keys."""

import re
from functools import lru_cache

from engine_host.protocol.engine_settings.table import SETTINGS
from engine_host.protocol.language import name_settings, tr, translated
from sndr_gui.models.settings.entries import ENTRIES


def use_captions() -> None:
    """Have messages name settings as the pages Settings and Launch do, from now on."""
    captions = {
        **{name: translated(row.caption) for name, row in SETTINGS.items() if "_" in name},
        **{entry.name: entry.label for entry in ENTRIES},
    }
    quoted = {name: tr("“{caption}”", caption=caption) for name, caption in captions.items()}
    # A key in a command is what has to be typed; one of a path or a longer word is none, nor a value's place.
    found = re.compile(
        r"(?<![\w./=`{-])(?<!settings set )(?<!--set )(" + "|".join(map(re.escape, quoted)) + r")(?![\w/=`-])"
    )

    @lru_cache(maxsize=4096)
    def captioned(message: str) -> str:
        return found.sub(lambda key: quoted[key[1]], message)

    name_settings(captioned)
