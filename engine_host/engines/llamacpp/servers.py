"""Find the llama-servers of this machine and probe the capabilities of each."""

import asyncio
import importlib.util
import os
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import lost_file
from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.protocol.engines import ServerInfo
from engine_host.protocol.errors import Action, Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import ServerChoice

PROBE_SECONDS = 20.0
# Far above any help text; a program that prints for ever must not fill the memory.
PROBE_BYTES = 4 << 20
TAIL_LINES = 20

# ggml's own types; anything else that a server offers comes from that server's fork.
PLAIN_KV_TYPES = frozenset({"f32", "f16", "bf16"})
QUANTISED_KV_TYPES = frozenset({"q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"})

_FLAG = re.compile(r"\s*(-{1,2}[A-Za-z][\w-]*)(,?)")
_VERSION = re.compile(r"^version:\s*(?P<version>\S+)(?P<rest>.*)$", re.MULTILINE)
_BUILD = re.compile(r"build\s+(\d+)")
_COMMIT = re.compile(r"commit\s+([0-9a-f]{6,40})|\(([0-9a-f]{6,40})\)")


def build_fix(text: str) -> Fix:
    """The next action that builds llama.cpp for this machine, as a click and as a command."""
    return Fix(
        text=text,
        command="sndr engine build llama.cpp",
        action=Action(method="POST", path="/v1/servers/build"),
    )


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The command of a llama-server: `argv` comes before its arguments, `file` is what changes with it."""

    choice: ServerChoice
    argv: tuple[str, ...]
    file: Path


@dataclass(frozen=True, slots=True)
class ServerCapabilities:
    """The capabilities that one llama-server reports; an empty tuple means that it reports none."""

    command: ServerCommand
    version: str
    build: int | None
    commit: str
    flags: frozenset[str]
    kv_types: tuple[str, ...]
    speculation: tuple[str, ...]
    devices: tuple[str, ...]
    has_unix_socket: bool
    spellings: tuple[tuple[str, ...], ...] = ()
    """Flags with several names, as its help lists them."""

    @property
    def choice(self) -> ServerChoice:
        """The kind of the server: built here, prebuilt, or the user's own."""
        return self.command.choice

    def info(self) -> ServerInfo:
        """The same for the window."""
        return ServerInfo(
            choice=self.choice,
            present=True,
            version=self.label,
            path=str(self.command.file),
            kv_types=self.kv_types,
            speculation=self.speculation,
            devices=self.devices,
        )

    @property
    def label(self) -> str:
        """Version, build and commit in one line, without what it did not say."""
        parts = [self.version]
        if self.build:
            parts.append(f"build {self.build}")
        if self.commit:
            parts.append(self.commit[:9])
        return ", ".join(parts)


def kv_label(kv_type: str, head_dim: int | None, server: ServerCapabilities) -> str:
    """Says in words what a KV type means on this server with this model.

    llama.cpp rotates K and V by a Hadamard matrix when the type is quantised and the head size is a
    multiple of 64 (pull request 21038); another server may do otherwise, so nothing is claimed for it.
    """
    if kv_type in PLAIN_KV_TYPES:
        return kv_type
    if kv_type not in QUANTISED_KV_TYPES:
        return f"{kv_type} (from this server)"
    if server.choice is ServerChoice.OWN or head_dim is None:
        return kv_type
    if head_dim % 64 == 0:
        return f"{kv_type} with rotation"
    return f"{kv_type} without rotation (head size {head_dim})"


def prebuilt_command() -> ServerCommand | None:
    """The server inside the installed `xllamacpp` wheel, or None where the wheel is not installed."""
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or not spec.submodule_search_locations:
        return None
    libraries = sorted(Path(spec.submodule_search_locations[0]).glob("xllamacpp*.so")) or sorted(
        Path(spec.submodule_search_locations[0]).glob("xllamacpp*.pyd")
    )
    if not libraries:
        return None
    return ServerCommand(ServerChoice.PREBUILT, command_of(OwnProgram.LLAMA_SERVER), libraries[0])


def built_command(folder: Path) -> ServerCommand | None:
    """The server of one build folder (`<data>/engines/llama.cpp/<key>`), or None where it has none."""
    binary = folder / "bin" / "llama-server"
    return ServerCommand(ServerChoice.BUILT, (str(binary),), binary) if binary.is_file() else None


def own_command(path: Path) -> ServerCommand:
    """The user's own llama-server. Raises `engine_unusable` where there is no such program."""
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        raise HostError(
            Reason.ENGINE_UNUSABLE,
            tr("{path} is not a program that can be run.", path=path),
            cause="The file is missing, or it is not marked as executable.",
            fix="Choose the llama-server program itself.",
            evidence={"path": str(path)},
        )
    return ServerCommand(ServerChoice.OWN, (str(path),), path)


class ServerProber:
    """Asks servers what they can do and remembers the answer until the file changes."""

    def __init__(self, timeout: float = PROBE_SECONDS) -> None:
        self._timeout = timeout
        self._known: dict[tuple[str, int, int], ServerCapabilities] = {}

    async def probe(self, command: ServerCommand) -> ServerCapabilities:
        """Runs `--version`, `--help` and `--list-devices` once for each state of the file.

        Raises `HostError`: `engine_unusable` with the end of what the program printed, or
        `illegal_instruction` when this processor lacks what the program was compiled for.
        """
        try:
            state = command.file.stat()
        except OSError as error:
            raise HostError(
                Reason.ENGINE_UNUSABLE,
                tr("The llama-server {file} is not there.", file=command.file),
                cause=lost_file(),
                fix="Build it again, or choose another one.",
                evidence={"path": str(command.file), "errno": error.errno},
            ) from error
        key = (str(command.file), state.st_size, state.st_mtime_ns)
        known = self._known.get(key)
        if known is not None and known.command == command:
            return known
        # `--help` decides; the other two may be missing in an old or foreign server.
        version = await run_probe(command, ("--version",), self._timeout)
        usage = await run_probe(command, ("--help",), self._timeout)
        devices = ""
        flags = parse_flags(usage)
        if "--list-devices" in flags:
            devices = await run_probe(command, ("--list-devices",), self._timeout)
        found = capabilities(command, version, usage, devices)
        self._known[key] = found
        return found


def capabilities(command: ServerCommand, version: str, usage: str, devices: str) -> ServerCapabilities:
    """Reads a server's answers to `--version`, `--help` and `--list-devices`."""
    flags = parse_flags(usage)
    if "--model" not in flags and "-m" not in flags:
        raise HostError(
            Reason.ENGINE_UNUSABLE,
            tr("{file} does not answer as llama-server does.", file=command.file),
            cause="Its help names no --model argument.",
            fix="Choose the llama-server program itself.",
            evidence={"path": str(command.file), "tail": usage.splitlines()[-TAIL_LINES:]},
        )
    found = _VERSION.search(version)
    rest = found["rest"] if found else ""
    name = found["version"] if found else "unknown"
    build = _BUILD.search(rest)
    commit = _COMMIT.search(rest)
    # Before llama.cpp had versions it printed its build number in their place.
    number = int(build[1]) if build else int(name) if name.isdecimal() else None
    return ServerCapabilities(
        command=command,
        version=f"b{name}" if name.isdecimal() else name,
        # A build from the source package counts its one shallow commit: that number says nothing.
        build=number if number and number > 1 and not name.isdecimal() else None,
        commit=(commit[1] or commit[2]) if commit else "",
        flags=flags,
        kv_types=parse_choices(usage, "--cache-type-k"),
        speculation=parse_choices(usage, "--spec-type"),
        devices=parse_devices(devices),
        has_unix_socket=".sock" in block_of(usage, "--host"),
        spellings=tuple(names for names, _ in _blocks(usage) if names[1:]),
    )


def parse_flags(usage: str) -> frozenset[str]:
    """The flags that a help text names, without those that it calls removed."""
    flags: set[str] = set()
    for names, text in _blocks(usage):
        if "argument has been removed" not in " ".join(text.split()):
            flags.update(names)
    return frozenset(flags)


def parse_choices(usage: str, flag: str) -> tuple[str, ...]:
    """The values that the help text allows for a flag; empty where it lists none."""
    text = " ".join(block_of(usage, flag).split())
    if listed := re.search(r"allowed values:\s*([\w.,\s-]+?)\s*(?:\(|$)", text):
        return tuple(value.strip() for value in listed[1].split(",") if value.strip())
    if inline := re.search(re.escape(flag) + r"\s+[\[{]?([\w-]+(?:[,|][\w-]+)+)[\]}]?", text):
        return tuple(re.split(r"[,|]", inline[1]))
    return ()


def parse_devices(listing: str) -> tuple[str, ...]:
    """The accelerators that `--list-devices` names, as it names them."""
    lines = listing.splitlines()
    start = next((n for n, line in enumerate(lines) if line.strip() == "Available devices:"), None)
    if start is None:
        return ()
    return tuple(
        line.strip()
        for line in lines[start + 1 :]
        if line.startswith("  ") and ":" in line and "(none)" not in line
    )


def block_of(usage: str, flag: str) -> str:
    """The whole help entry of a flag, its own line included; empty where it has none."""
    return next((text for names, text in _blocks(usage) if flag in names), "")


def _blocks(usage: str) -> list[tuple[tuple[str, ...], str]]:
    """Splits a help text into entries: the flags' names, and the text with its continuation lines."""
    found: list[tuple[tuple[str, ...], list[str]]] = []
    for line in usage.splitlines():
        if line.startswith("-") and (names := _names(line)):
            found.append((names, [line]))
        elif found and line[:1] in {" ", "\t"}:
            found[-1][1].append(line)
    return [(names, "\n".join(lines)) for names, lines in found]


def _names(line: str) -> tuple[str, ...]:
    names: list[str] = []
    at = 0
    while match := _FLAG.match(line, at):
        names.append(match[1])
        at = match.end()
        if not match[2]:
            break
    return tuple(names)


async def run_probe(command: ServerCommand, arguments: Sequence[str], timeout: float) -> str:
    """Runs a server with a question that ends by itself, and gives what it printed.

    The child gets a process group of its own, and the whole group is killed at the timeout and when the
    caller is cancelled: a wrapper script must not leave the real server behind.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *command.argv,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise HostError(
            Reason.ENGINE_UNUSABLE,
            tr("{file} cannot be run: {error}.", file=command.file, error=error.strerror or error),
            cause="It was built for another system, or it is damaged.",
            fix="Choose or build another llama-server.",
            evidence={"path": str(command.file), "errno": error.errno},
        ) from error
    try:
        output = await asyncio.wait_for(_read_all(process), timeout)
    except TimeoutError as error:
        raise HostError(
            Reason.ENGINE_UNUSABLE,
            tr(
                "{file} did not answer {arguments} within {timeout:g} s.",
                file=command.file,
                arguments=" ".join(arguments),
                timeout=timeout,
            ),
            cause="It waits for a device or hangs, or this machine is very busy.",
            fix="Run it in a terminal to see what it waits for.",
            evidence={"path": str(command.file), "arguments": list(arguments), "seconds": timeout},
        ) from error
    finally:
        _kill_group(process)
        await process.wait()
    text = output.decode("utf-8", "replace")
    if process.returncode:
        raise _unusable(command, arguments, process.returncode, text)
    return text


async def _read_all(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    parts: list[bytes] = []
    left = PROBE_BYTES
    while left > 0 and (part := await process.stdout.read(min(left, 1 << 16))):
        parts.append(part)
        left -= len(part)
    if left > 0:
        await process.wait()
    return b"".join(parts)


def _kill_group(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def _unusable(command: ServerCommand, arguments: Sequence[str], code: int, output: str) -> HostError:
    tail = output.splitlines()[-TAIL_LINES:]
    evidence = {"path": str(command.file), "arguments": list(arguments), "exit_code": code, "tail": tail}
    if code in (-signal.SIGILL, 128 + signal.SIGILL):
        return HostError(
            Reason.ILLEGAL_INSTRUCTION,
            tr("{file} uses an instruction that this processor does not have.", file=command.file),
            cause="It was compiled for another processor.",
            fix="Build the server on this machine, or use the prebuilt one.",
            evidence=evidence,
        )
    lost = next((line for line in tail if "cannot open shared object file" in line), None)
    return HostError(
        Reason.ENGINE_UNUSABLE,
        tr(
            "{file} does not run: {lost}",
            file=command.file,
            lost=lost or (tail[-1] if tail else tr("it ended with code {code}", code=code)),
        ),
        cause="A library it needs is not installed." if lost else "",
        fix="Choose or build another llama-server.",
        evidence=evidence,
    )
