"""Finds icons and fonts, in a source tree, a wheel or a frozen build."""

import sys
from functools import cache
from pathlib import Path


@cache
def _root() -> Path:
    package = Path(__file__).resolve().parent.parent
    frozen = getattr(sys, "_MEIPASS", None)
    places = [package / "resources", package.parent / "resources"]
    if frozen:
        places = [Path(frozen) / "resources", Path(frozen) / "sndr_gui" / "resources", *places]
    for place in places:
        if (place / "icons").is_dir():
            return place
    raise FileNotFoundError(f"The program's resources are missing; looked in {', '.join(map(str, places))}.")


def resource(*parts: str) -> Path:
    """Return the path of one bundled file, such as `resource("icons", "copy.svg")`.

    Raises FileNotFoundError when the installation has no resources.
    """
    return _root().joinpath(*parts)
