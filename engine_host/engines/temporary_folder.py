"""Make the folder of a start's temporary files; what need not go with the start is kept in the cache."""

import contextlib
import getpass
import re
from collections.abc import Mapping
from pathlib import Path

# Below vLLM's cache; sets of patches, which have caches of their own, link to one.
HEADERS = "torch-headers"


def make_temporary_folder(environment: Mapping[str, str]) -> None:
    """Make the folder that a start's TMPDIR names, if it names one.

    PyTorch translates its headers before it compiles for the processor, which takes ten seconds and 150 MB.
    It keeps them below TMPDIR (`_HEADER_DIR` in torch/_inductor/codecache.py), named by all that goes into
    them, so each start would do so again, also one that finds all its graphs compiled.
    """
    if "TMPDIR" not in environment:
        return
    folder = Path(environment["TMPDIR"])
    folder.mkdir(mode=0o700, exist_ok=True)
    # Where links cannot be made, or nobody has this user's name, PyTorch does it anew.
    with contextlib.suppress(KeyError, OSError):
        shared = Path(environment["VLLM_CACHE_ROOT"]) / HEADERS
        shared.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = folder / f"torchinductor_{_user()}"
        place.mkdir(mode=0o700, exist_ok=True)
        (place / "precompiled_headers").symlink_to(shared)


def _user() -> str:
    """Return the user's name as PyTorch writes it (torch/_inductor/runtime/cache_dir_utils.py)."""
    return re.sub(r'[\\/:*?"<>|]', "_", getpass.getuser())
