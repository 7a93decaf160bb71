"""Answers the host's question what is live in this process, from a thread of its own."""

import contextlib
import json
import os
import socket
import sys
import tempfile
import threading
from typing import Any

from .hits import COUNTS
from .ledger import LEDGER
from .rebinding import is_class
from .role import role

# The path of a Unix socket's address has 108 bytes with the closing zero.
_LONGEST_PATH = 103
_serving = 0


def serve(process: Any) -> None:
    """Open the probe's socket, once a process."""
    global _serving
    folder = os.environ.get("SNDR_OVERLAY_LEDGER")
    if not folder or _serving == os.getpid():
        return
    _serving = os.getpid()
    path = os.path.join(folder, f"{os.getpid()}.sock")
    try:
        if len(os.fsencode(path)) > _LONGEST_PATH:
            path = os.path.join(tempfile.mkdtemp(prefix="sndr-"), "probe.sock")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen(4)
    except OSError as error:
        LEDGER.write("probe", socket=None, detail=str(error))
        return
    LEDGER.write("probe", socket=path)
    threading.Thread(target=_answer, args=(listener, process), name="sndr-probe", daemon=True).start()


def _answer(listener: socket.socket, process: Any) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, contextlib.suppress(OSError):
            connection.settimeout(5.0)
            connection.sendall(json.dumps(describe(process)).encode())


def describe(process: Any) -> "dict[str, Any]":
    """Every patch of this process: whether it is live, why not, and how often its code ran."""
    name, rank = role()
    patches = {patch: _patch(state, process) for patch, state in list(process.settled.patches.items())}
    return {"pid": os.getpid(), "role": name, "rank": rank, "patches": patches}


def _patch(state: Any, process: Any) -> "dict[str, Any]":
    watched = state.spec["probe"]["modules"]
    ours_of_all = [binding for other in list(process.settled.patches.values()) for binding in other.done]
    symbols = [
        _binding(binding, ours_of_all)
        for binding in list(state.done)
        if not watched or binding.module in watched
    ]
    for module in dict.fromkeys(edit["module"] for edit in state.spec["text"]):
        loaded = sys.modules.get(module)
        if loaded is not None and (not watched or module in watched):
            ours = hasattr(loaded, "__sndr_origin__") and module in process.settled.texts
            symbols.append({"target": module, "ours": ours, "copies": []})
    hits = COUNTS.get(state.id, 0) if state.spec["probe"]["counts"] else None
    if not state.alive:
        why = state.reason or "not applied"
    elif watched and not any(module in sys.modules for module in watched):
        why = "none of its modules was imported here"
    elif not symbols and not state.called:
        why = (
            "none of its modules was imported here"
            if state.spec["text"] or state.spec["rebind"]
            else "vLLM has not asked for it here"
        )
    elif not all(symbol["ours"] for symbol in symbols):
        why = "another code has taken its place"
    elif any(symbol["copies"] for symbol in symbols):
        why = "the original is still held by " + ", ".join(
            copy for symbol in symbols for copy in symbol["copies"]
        )
    else:
        why = ""
    return {"live": not why, "why": why, "hits": hits, "symbols": symbols}


def _ours(binding: Any, all_of_ours: "list[Any]") -> bool:
    """Return True if a replacement is still reached: it is in its place, or one of ours wraps it."""
    return binding.ours() or any(above.wraps(binding) and _ours(above, all_of_ours) for above in all_of_ours)


def _binding(binding: Any, all_of_ours: "list[Any]") -> "dict[str, Any]":
    copies: list[str] = []
    if not is_class(binding.owner):
        for name, module in list(sys.modules.items()):
            if module is not None and name.startswith("vllm") and module is not binding.owner:
                copies += [
                    f"{name}.{key}"
                    for key, value in list(getattr(module, "__dict__", {}).items())
                    if value is binding.before
                ]
    target = f"{binding.module}:{binding.target}"
    return {"target": target, "ours": _ours(binding, all_of_ours), "copies": copies[:20]}
