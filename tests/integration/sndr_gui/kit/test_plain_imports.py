"""The window's modules are imported, and not read as text beside it."""

import subprocess
import sys

LOOK = """
import builtins, linecache, sys
from sndr_gui.__main__ import _window
_window()
import sndr_gui.views.window.context
read = [name for name in linecache.cache if "sndr_gui" in name or "engine_host" in name]
assert "sndr_gui.views.window.main" in sys.modules
assert not read, read[:5]
assert builtins.__import__ is not builtins.__feature_import__
"""


def test_the_window_reads_no_source_of_what_it_imports() -> None:
    subprocess.run([sys.executable, "-c", LOOK], check=True, timeout=60)
