"""Requests written to a file that its owner alone can read: what they hold is what somebody asked a model."""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

from engine_host.core import atomic_file
from engine_host.protocol.endpoint.requests import RequestDetail

FORMAT = "sndr-requests/1"


def write_requests(path: Path, details: Sequence[RequestDetail]) -> None:
    """Write requests as JSON with mode 0600, in place of what was there. Raises HostError."""
    told = {
        "format": FORMAT,
        "exported_at": time.time(),
        "requests": [detail.model_dump(mode="json") for detail in details],
    }
    text = json.dumps(told, ensure_ascii=False, indent=2)
    atomic_file.write(Path(os.path.abspath(path)), text.encode("utf-8", "replace") + b"\n", 0o600)
