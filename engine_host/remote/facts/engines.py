"""Engines among the processes of another machine, with the addresses that each listens on."""

import ipaddress
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from engine_host.protocol.remote.hosts import RemoteEngine

_BETWEEN = "\037"
_MOST_WORDS, _LONGEST_WORD = 300, 2000
_PYTHON = re.compile(r"python[0-9.]*|pypy[0-9.]*")
_MODULES = {
    "vllm.entrypoints": "vllm",
    "sglang.launch_server": "sglang",
    "sglang_router": "sglang",
    "llama_cpp.server": "llama.cpp",
    "engine_host.engines.llamacpp": "llama.cpp",
}
_PROGRAMS = {"llama-server": "llama.cpp", "sglang": "sglang"}


def engines_of(text: str, mark: str) -> tuple[RemoteEngine, ...]:
    """Return the engines that a part tells of; workers of an engine are part of it and not listed."""
    found: list[RemoteEngine] = []
    current: RemoteEngine | None = None
    inodes: set[str] = set()
    for line in text.split("\n"):
        if line.startswith(f"{mark} process{_BETWEEN}"):
            current = _process(line.split(_BETWEEN)[1:])
            inodes = set()
            if current is not None:
                found.append(current)
        elif current is None:
            continue
        elif line.startswith(f"{mark} sockets"):
            inodes = set(line.split()[2:])
        elif (address := _listening(line, inodes)) is not None and address not in found[-1].listens:
            found[-1] = found[-1].model_copy(update={"listens": (*found[-1].listens, address)})
    return tuple(found)


def kind_of(arguments: Sequence[str]) -> str | None:
    """Return the kind of engine that a command line starts; None for what only mentions one."""
    words = list(arguments)
    if words and _PYTHON.fullmatch(_program(words[0])):
        words = words[1:]
        while words and words[0].startswith("-") and words[0] != "-m":
            words = words[1:]
        if words[:1] == ["-m"]:
            module = words[1] if len(words) > 1 else ""
            return next((kind for start, kind in _MODULES.items() if module.startswith(start)), None)
    if not words:
        return None
    program, rest = _program(words[0]), words[1:]
    if program == "vllm" and "serve" in rest[:1]:
        return "vllm"
    if program == "ollama" and rest[:1] in (["serve"], ["runner"]):
        return "ollama" if rest[0] == "serve" else None
    return _PROGRAMS.get(program)


def _process(fields: Sequence[str]) -> RemoteEngine | None:
    if len(fields) < 3 or not fields[0].isdecimal() or len(fields[0]) > 10:
        return None
    words = list(fields[2:])
    while words and not words[-1]:
        # A command line ends with the end of its last word.
        words.pop()
    arguments = tuple(word.replace("\036", "\n")[:_LONGEST_WORD] for word in words[:_MOST_WORDS])
    kind = kind_of(arguments)
    if kind is None:
        return None
    return RemoteEngine(kind=kind, pid=int(fields[0]), user=fields[1][:64], arguments=arguments)


def _program(word: str) -> str:
    return PurePosixPath(word).name


def _listening(line: str, inodes: set[str]) -> str | None:
    """Return the address of a line of /proc/net/tcp that belongs to one of these sockets."""
    fields = line.split()
    if len(fields) < 10 or fields[9] not in inodes:
        return None
    place, _, port = fields[1].partition(":")
    try:
        raw = bytes.fromhex(place)
        number = int(port, 16)
        # Each word of four bytes stands in the machine's own order; those that run engines are little-endian.
        ordered = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
        address = ipaddress.ip_address(ordered)
    except ValueError:
        return None
    if not 0 < number < 65536:
        return None
    return f"[{address}]:{number}" if address.version == 6 else f"{address}:{number}"
