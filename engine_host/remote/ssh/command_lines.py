"""The command lines of the system's ssh: the one connection of a host, and what shares it.

Nothing in them is made of text from elsewhere but the destination, which was checked when it was added, and
paths of our own run folder.
"""

import asyncio
import contextlib
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import unstartable_program
from engine_host.core.outside import files
from engine_host.core.outside.ssh_config import CONFIG_VARIABLE
from engine_host.engines.process.reaper_main import OWNER_VARIABLE
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

KEEP_ALIVE = 15
"""Seconds of silence after which ssh asks the other side for a sign; three without an answer end it."""
_CONNECT = 20
_PATIENCE = 15.0
_MOST_HOPS = 10
_LARGEST = 1 << 20
_HOST_WORD = re.compile(r"(?:[^@]*@)?(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]+)?")
# By the last one it is found, should the host be killed.
_NEEDED = ("PATH", "HOME", OWNER_VARIABLE)


# What ssh takes in no URI of its own.
_V6_URI = re.compile(r"ssh://(?:(?P<user>[^@]*)@)?\[(?P<place>[^\]]+)\](?::(?P<port>[0-9]+))?")


def by_hand(destination: str, *options: str) -> str:
    """Return the command by which a person tries a destination."""
    more, place = _words(destination)
    return shlex.join(["ssh", *options, *more, place])


def _to(destination: str) -> list[str]:
    more, place = _words(destination)
    return [*more, "--", place]


def _words(destination: str) -> tuple[list[str], str]:
    """Return the options and the place of a destination: ssh takes no URI with an address of IPv6."""
    found = _V6_URI.fullmatch(destination)
    if found is None:
        return [], destination
    user, port = found["user"], found["port"]
    return [*(("-l", user) if user else ()), *(("-p", port) if port else ())], found["place"]


@dataclass(frozen=True)
class Effective:
    """The settings that ssh takes for a destination, after its whole configuration."""

    host: str
    port: str
    user: str
    strict: str
    key_alias: str | None
    jump: str | None
    known_hosts: tuple[str, ...] = ()
    """The files of known hosts, that first in which new keys are kept."""
    proxy: str | None = None
    """A command of the person's own that leads there."""

    @property
    def known_as(self) -> str:
        """The name of the host in the file of known hosts."""
        return self.key_alias or (self.host if self.port == "22" else f"[{self.host}]:{self.port}")


class OpenSsh:
    """The ssh of this machine with the configuration of this user."""

    def __init__(self, environment: Mapping[str, str], keep_alive: int = KEEP_ALIVE) -> None:
        self._environment = environment
        self._keep_alive = keep_alive

    @property
    def program(self) -> str:
        """The program. Raises HostError(ssh_missing)."""
        found = shutil.which("ssh", path=self._environment.get("PATH"))
        if found is None:
            raise HostError(
                Reason.SSH_MISSING,
                "There is no `ssh` on this machine.",
                cause="OpenSSH's client is not installed, or it is not in PATH.",
                fix=Fix(text="Install it.", command="sudo apt-get install openssh-client"),
            )
        return found

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return the environment in which ssh runs: its messages are not translated."""
        # Before OpenSSH 8.4 it asked a program only where there was a display, whichever.
        return {"DISPLAY": ":0", **self._environment, "LC_ALL": "C", **more}

    def sharing_environment(self) -> dict[str, str]:
        """Return the environment of what shares a connection; ssh could put the rest into paths."""
        kept = {name: self._environment[name] for name in _NEEDED if name in self._environment}
        return {**kept, "LC_ALL": "C"}

    async def asking_config(self, destination: str, effective: Effective) -> bytes:
        """Return this user's configuration, but that no unknown key is taken without being asked for.

        It is for the jump hosts too: each is reached by an ssh of its own, which gets the configuration and
        none of our options. Raises OSError where it cannot be read.
        """
        strict, known, left = [], {destination}, [(destination, effective)]
        while left:
            place, said = left.pop()
            if said.strict == "true" and (word := _host_word(place)):
                strict.append(word)
            for hop in (said.jump or "").split(","):
                one = f"ssh://{hop.strip().removeprefix('ssh://')}"
                if hop and one not in known and len(known) < _MOST_HOPS:
                    known.add(one)
                    # Of one that ssh cannot tell of, a new key is asked for.
                    with contextlib.suppress(HostError):
                        left.append((one, await self.effective(one)))
        # As in ssh, the first that is said holds.
        hosts = " ".join(("*", *(f"!{word}" for word in strict)))
        lines = [f"Host {hosts}", "  StrictHostKeyChecking ask", "Host *"]
        config, raw = self._environment.get(CONFIG_VARIABLE), b""
        if not config:
            lines += ["Include ~/.ssh/config", "Include /etc/ssh/ssh_config"]
        elif config not in ("none", os.devnull):
            # Not included: of what is, ssh wants other permissions.
            raw = await asyncio.to_thread(files.read, files.expanded(config), _LARGEST)
        return "\n".join(lines).encode() + b"\n" + raw

    def master(
        self, destination: str, socket: Path, config: Path, effective: Effective, address: str | None
    ) -> list[str]:
        """Return the command that connects and stays; `address` takes the place of the configured one."""
        options = [
            *("ControlMaster=yes", f"ControlPath={_literal(socket)}", "ControlPersist=no"),
            *("ExitOnForwardFailure=yes", "StreamLocalBindUnlink=yes", "StreamLocalBindMask=0177"),
            *(f"ServerAliveInterval={self._keep_alive}", "ServerAliveCountMax=3", "TCPKeepAlive=yes"),
            *(f"ConnectTimeout={_CONNECT}", "RemoteCommand=none", "RequestTTY=no", "BatchMode=no"),
            *("ClearAllForwardings=yes", "ForwardX11=no", "ForwardAgent=no", "LogLevel=INFO"),
        ]
        if address is not None:
            # The % of an address of one network card begins a token of ssh.
            options += [f"HostName={address.replace('%', '%%')}", f"HostKeyAlias={effective.known_as}"]
        # What ssh itself says goes to its standard output: on the other is what servers have it show.
        own = ("-E", "/dev/stdout")
        return [self.program, "-F", str(config), *own, "-N", "-T", *_options(options), *_to(destination)]

    def asking_nothing(self, destination: str, jumps: str) -> list[str]:
        """Return the command that looks at the key of a place, by way of others, and lets nobody in."""
        options = [
            *("BatchMode=yes", "StrictHostKeyChecking=yes", "PreferredAuthentications=none"),
            *("ControlMaster=no", "ControlPath=none", f"ConnectTimeout={_CONNECT}", "RemoteCommand=none"),
            *("ClearAllForwardings=yes", "LogLevel=INFO", "UpdateHostKeys=no"),
            *((f"ProxyJump={jumps}",) if jumps else ()),
        ]
        return [*self._configured(), "-E", "/dev/stdout", "-T", *_options(options), *_to(destination), "exit"]

    def asking_nobody(self) -> dict[str, str]:
        """Return the environment in which ssh has nobody to ask."""
        return self.environment({"SSH_ASKPASS_REQUIRE": "never"})

    def over(self, destination: str, socket: Path, *command: str) -> list[str]:
        """Return the command that runs a fixed command there over a connection that stands."""
        return [*self._sharing(socket), "-T", *_to(destination), *command]

    def shell(self, destination: str, socket: Path) -> list[str]:
        """Return the command that opens a shell there over a connection that stands."""
        return [*self._sharing(socket), *_to(destination)]

    def ask_master(self, destination: str, socket: Path, what: str, *more: str) -> list[str]:
        """Return the command that asks the connection itself: check, forward, cancel, exit."""
        return [*self._sharing(socket), "-O", what, *more, *_to(destination)]

    def copy_options(self, socket: Path) -> list[str]:
        """Return the options by which sftp uses a connection that stands."""
        return self._sharing(socket)[1:]

    async def effective(self, destination: str) -> Effective:
        """Ask ssh which settings it takes. Raises HostError: ssh_missing, ssh_failed."""
        argv = [*self._configured(), "-G", *_to(destination)]
        code, out, err = await communicate(argv, self.environment({}), seconds=_PATIENCE)
        if code != 0:
            raise HostError(
                Reason.SSH_FAILED,
                "ssh cannot read its configuration.",
                cause=err[-500:] or tr("It ended with code {code}.", code=code),
                fix=Fix(text="Correct what it names.", command=by_hand(destination, "-G")),
                evidence={"stderr": err, "exit": code},
            )
        said = dict(line.partition(" ")[::2] for line in reversed(out.splitlines()))
        jump, proxy = said.get("proxyjump"), said.get("proxycommand")
        return Effective(
            host=said.get("hostname", destination),
            port=said.get("port", "22"),
            user=said.get("user", ""),
            strict=said.get("stricthostkeychecking", "ask"),
            key_alias=said.get("hostkeyalias"),
            known_hosts=_known_hosts(said),
            jump=None if jump in (None, "none") else jump,
            proxy=None if proxy in (None, "none") else proxy,
        )

    def _configured(self) -> list[str]:
        config = self._environment.get(CONFIG_VARIABLE)
        return [self.program, *(("-F", os.path.expanduser(config)) if config else ())]

    def _sharing(self, socket: Path) -> list[str]:
        # No configuration: only the connection counts. Were it gone, ssh would make one of its own, unseen.
        options = [f"ControlPath={_literal(socket)}", "ControlMaster=no", "ProxyCommand=false"]
        return [self.program, "-F", "none", *_options(options)]


def _host_word(destination: str) -> str | None:
    """Return the host of a destination as `Host` compares it; None for one that could be a pattern."""
    if found := _HOST_WORD.fullmatch(destination.removeprefix("ssh://")):
        return found[1] or found[2]
    return destination if re.fullmatch(r"[0-9A-Fa-f:.]+", destination) else None


def _known_hosts(said: Mapping[str, str]) -> tuple[str, ...]:
    named = " ".join(said.get(f"{whose}knownhostsfile", "") for whose in ("user", "global"))
    return tuple(map(os.path.expanduser, named.split()))


def _options(options: list[str]) -> list[str]:
    return [word for option in options for word in ("-o", option)]


def _literal(path: Path) -> str:
    """Return a path as ssh takes it in an option: % begins a token, and quotes hold spaces together."""
    return '"' + str(path).replace("%", "%%") + '"'


async def communicate(
    argv: list[str], environment: Mapping[str, str], *, seconds: float, data: bytes = b"", most: int = 1 << 20
) -> tuple[int | None, str, str]:
    """Run a command that ends by itself; return exit code, stdout and stderr, None for one that hung.

    Raises HostError(ssh_failed) where it cannot be started.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=dict(environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise HostError(
            Reason.SSH_FAILED,
            tr("{argv} cannot be run: {error}.", argv=argv[0], error=error.strerror or error),
            cause=unstartable_program(),
            fix="Give another path, or install it again.",
            evidence={"argv": argv},
        ) from error
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate(data)
    except TimeoutError:
        return None, "", f"no end within {seconds:.0f} seconds"
    finally:
        await end_group(process)
    return process.returncode, _text(out[:most]), _text(err[-8000:])


async def end_group(process: asyncio.subprocess.Process, grace: float = 2.0) -> None:
    """End a process and its group, first in order."""
    if process.returncode is None:
        for number in (15, 9):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await process.wait()
                    return


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
