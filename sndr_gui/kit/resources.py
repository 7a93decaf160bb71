"""Finds icons and fonts, in a source tree or an installed package, which a frozen program holds."""

from functools import cache
from pathlib import Path


@cache
def _root() -> Path:
    package = Path(__file__).resolve().parent.parent
    places = [package / "resources", package.parent / "resources"]
    for place in places:
        if (place / "icons").is_dir():
            return place
    raise FileNotFoundError(f"The program's resources are missing; looked in {', '.join(map(str, places))}.")


def resource(*parts: str) -> Path:
    """Return the path of one bundled file, such as `resource("icons", "copy.svg")`.

    Raises FileNotFoundError when the installation has no resources.
    """
    return _root().joinpath(*parts)
