"""The engine host: a headless daemon that starts and watches engines."""

import sys

__version__ = "0.3.0.dev0"

# httpx imports its own command line, and rich and pygments with it, wherever they are installed: 4 MB of
# memory that no program of ours has use for.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
