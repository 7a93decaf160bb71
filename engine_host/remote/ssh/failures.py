"""The reason why ssh ended, from its exit code, what was asked, and OpenSSH's own fixed words."""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import NEVER_CONNECTED, SshQuestionKind
from engine_host.remote.ssh.command_lines import Effective, by_hand
from engine_host.remote.ssh.questions import Attempt

_LONGEST = 4_000
_OFFENDING = re.compile(r"^Offending (?:\S+ )?key (?:for IP )?in (?P<file>.+):(?P<line>\d+)$", re.MULTILINE)
_NEW_KEY = re.compile(
    r"^The fingerprint for the (?P<type>\S+) key sent by the remote host is\n(?P<print>\S+?)\.?$",
    re.MULTILINE,
)
# What follows is a server's text, lines and all.
_THEIRS = "Received disconnect from"
# Said of what a jump host tried; its own end is all that ssh says after it.
_BETWEEN = re.compile(r"open failed: connect failed: (?P<why>.+)$", re.MULTILINE)
_REFUSED = "open failed: administratively prohibited"


@dataclass(frozen=True)
class Ended:
    """The end of ssh: exit code (None for one that was ended here), its last words, and what it asked.

    `log` is what this ssh itself said; servers and the ssh of jump hosts write to `stderr` too.
    `stood_before` is True where a connection to it has ever stood.
    """

    destination: str
    code: int | None
    stderr: str
    attempt: Attempt
    log: str = ""
    effective: Effective | None = None
    stood_before: bool = True

    @property
    def own(self) -> str:
        """The words that are surely ssh's own."""
        return self.log.partition(_THEIRS)[0]

    @property
    def words(self) -> str:
        """All of them."""
        return "\n".join(part for part in (self.stderr, self.log) if part)


@dataclass(frozen=True)
class _Words:
    """A kind of failure: words of OpenSSH of which one has to be there, and the problem that they mean."""

    words: re.Pattern[str]
    problem: Callable[[Ended, re.Match[str]], Problem]


_SILENT = re.compile(r"^Timeout, server .+ not responding", re.MULTILINE)
_RETRIED = {Reason.SSH_UNREACHABLE, Reason.SSH_LOST}
"""The reasons after which it is tried again; all others wait for a person."""


def _changed(ended: Ended, _found: re.Match[str]) -> Problem:
    place, new = _OFFENDING.search(ended.own), _NEW_KEY.search(ended.own)
    effective = ended.effective
    known = effective.known_as if effective else ended.destination
    files = effective.known_hosts if effective else ()
    place = place if place and place["file"] in files else None
    file = place["file"] if place else files[0] if files else None
    command = shlex.join(["ssh-keygen", *(("-f", file) if file else ()), "-R", known])
    where = (
        tr(" It is kept in line {place} of {place2}.", place=place["line"], place2=place["file"])
        if place
        else ""
    )
    shown = tr(" It now shows {new} {new2}.", new=new["type"], new2=new["print"]) if new else ""
    return _problem(
        ended,
        Reason.HOST_KEY_CHANGED,
        tr("The host key of {known} is not the one that is known: nothing was sent there.", known=known),
        tr(
            "Either the machine was set up anew, or something else answers in its place.{where}{shown}",
            where=where,
            shown=shown,
        ),
        Fix(
            text="Ask who looks after the machine for its fingerprint (there: ssh-keygen -lf "
            "/etc/ssh/ssh_host_ed25519_key.pub). Only if it is the new one, forget the old one and connect.",
            command=command,
        ),
        key_file=place["file"] if place else None,
        key_line=int(place["line"]) if place else None,
        fingerprint=new["print"] if new else None,
    )


def _jump(ended: Ended) -> Problem:
    return _problem(
        ended,
        Reason.SSH_FAILED,
        tr(
            "A jump host before {destination} did not pass the check of its key, or a server says so.",
            destination=ended.destination,
        ),
        ended.stderr.strip()[-500:],
        Fix(text="Try it by hand.", command=by_hand(ended.destination)),
    )


def _unknown(ended: Ended, _found: re.Match[str] | None = None) -> Problem:
    refused = SshQuestionKind.HOST_KEY in ended.attempt.refused
    shown = next((one for one in ended.attempt.asked if one.fingerprint), None)
    return _problem(
        ended,
        Reason.HOST_KEY_UNKNOWN,
        tr("The host key of {host} is not known, and it was not accepted.", host=ended.destination)
        if refused
        else tr(
            "The host key of {host} is not known, and ssh is set to take no new one.", host=ended.destination
        ),
        tr("It is the first connection from here, or its key was removed."),
        Fix(
            text="Compare its fingerprint with the machine's own and connect again to accept it."
            if refused
            else "Add its key to the file of known hosts.",
            command=f"ssh-keyscan {shlex.quote(ended.destination)}" if not refused else None,
        ),
        fingerprint=shown.fingerprint if shown else None,
    )


def _denied(ended: Ended, found: re.Match[str]) -> Problem:
    refused = ended.attempt.refused & {SshQuestionKind.PASSPHRASE, SshQuestionKind.PASSWORD}
    wrong = any(one.again for one in ended.attempt.asked)
    cause = (
        tr("A question of ssh was refused or not answered.")
        if refused
        else tr("The passphrase or the password was wrong.")
        if wrong
        else tr("No key of yours is allowed there, or the agent does not hold it.")
    )
    methods = found.groupdict().get("methods")
    return _problem(
        ended,
        Reason.SSH_AUTH_FAILED,
        tr("{destination} did not let you in.", destination=ended.destination),
        tr("{cause}[ It takes: {methods}.]", cause=cause, methods=methods),
        Fix(
            text="Try it by hand; once that works, connect again.",
            command=by_hand(ended.destination),
        ),
    )


def _too_many(ended: Ended, found: re.Match[str]) -> Problem:
    if ended.attempt.asked:
        return _denied(ended, found)
    return _problem(
        ended,
        Reason.SSH_AUTH_FAILED,
        tr("{destination} did not let you in.", destination=ended.destination),
        tr("Your agent offered more keys than it takes, and the right one was not among the first."),
        Fix(
            text="Name its key in your ssh configuration: IdentityFile with IdentitiesOnly yes. "
            "The keys of your agent are:",
            command="ssh-add -l",
        ),
    )


def _revoked(ended: Ended, _found: re.Match[str]) -> Problem:
    return _problem(
        ended,
        Reason.HOST_KEY_CHANGED,
        tr(
            "The host key of {destination} is marked as revoked: nothing was sent there.",
            destination=ended.destination,
        ),
        tr("Somebody declared this key lost."),
        Fix(text="Ask who looks after the machine."),
    )


def _configuration(ended: Ended, _found: re.Match[str]) -> Problem:
    return _problem(
        ended,
        Reason.SSH_FAILED,
        tr("ssh cannot use its configuration."),
        ended.words.strip()[-500:],
        Fix(text="Correct what it names.", command=by_hand(ended.destination, "-G")),
    )


def _forward(ended: Ended, _found: re.Match[str] | None = None) -> Problem:
    return _problem(
        ended,
        Reason.SSH_FORWARD_REFUSED,
        tr(
            "{destination}, or a jump host before it, forwards no connections.", destination=ended.destination
        ),
        tr("Its sshd has AllowTcpForwarding or AllowStreamLocalForwarding switched off."),
        Fix(text="Allow both in sshd_config there, and restart sshd."),
    )


def _lost(ended: Ended, _found: re.Match[str] | None = None) -> Problem:
    return _problem(
        ended,
        Reason.SSH_LOST,
        tr("The connection to {destination} was lost.", destination=ended.destination),
        tr("It did not answer any more: the machine hangs, or the network between is gone.")
        if _SILENT.search(ended.words)
        else ended.words.strip()[-300:] or _exit(ended.code),
        Fix(
            text="It is tried again by itself; this tries at once.",
            command=f"sndr host connect {ended.attempt.host}",
        ),
    )


def _unreachable(ended: Ended, _found: re.Match[str]) -> Problem:
    lines = [line for line in ended.words.splitlines() if line.strip()]
    between = _BETWEEN.search(ended.words)
    said = tr("ssh says: {lines}", lines=lines[-1][:300]) if lines else ""
    if between is not None:
        said = tr("The jump host before it says: {why}", why=between["why"].strip()[:300])
    return _problem(
        ended,
        Reason.SSH_UNREACHABLE,
        tr("{destination} cannot be reached.", destination=ended.destination),
        said,
        Fix(
            text="Is it on, is the address right, is a VPN needed? It is tried again by itself.",
            command=by_hand(ended.destination),
        ),
    )


def _unresolved(ended: Ended, found: re.Match[str]) -> Problem:
    if ended.effective is not None and (ended.effective.jump or ended.effective.proxy):
        return _unreachable(ended, found)
    why = tr("Neither your ssh configuration nor the network has an address for it.")
    name = ended.attempt.host
    new = Fix(
        text=tr(
            "Is a VPN needed? Connect again once the name is known. Is it wrong? "
            "`sndr host change {name} USER@HOST` leads it elsewhere, and this forgets it.",
            name=name,
        ),
        command=f"sndr host remove {name}",
    )
    again = Fix(
        text="Is the name right, is a VPN needed? It is tried again by itself until you remove it.",
        command=f"sndr host connect {name}",
    )
    return _problem(
        ended,
        Reason.SSH_UNREACHABLE,
        tr(
            "{destination} leads nowhere: no machine of that name is known here.",
            destination=ended.destination,
        ),
        why if ended.stood_before else tr("{why} It was never connected.", why=why),
        again if ended.stood_before else new,
        **{NEVER_CONNECTED: None if ended.stood_before else True},
    )


def _table(*rows: tuple[tuple[str, ...], Callable[[Ended, re.Match[str]], Problem]]) -> tuple[_Words, ...]:
    return tuple(_Words(re.compile("|".join(words), re.MULTILINE), problem) for words, problem in rows)


# These are believed only of ssh itself: a server's banner could say the same.
_OWN = _table(
    ((r"REMOTE HOST IDENTIFICATION HAS CHANGED!", r"^Host key for .+ has changed and"), _changed),
    ((r"REVOKED HOST KEY DETECTED", r"was revoked and you have requested"), _revoked),
    ((r"^Host key verification failed\.", r"^No \S+ host key is known for"), _unknown),
)
# In this order: a jump host's words come together with those of what waited behind it.
TABLE = _table(
    ((r"Too many authentication failures",), _too_many),
    (
        (
            r"Permission denied \((?P<methods>[\w,-]+)\)\.",
            r"No supported authentication methods",
        ),
        _denied,
    ),
    (
        (r"Bad configuration option", r"bad configuration options", r"Bad owner or permissions on"),
        _configuration,
    ),
    ((_REFUSED,), _forward),
    (
        (
            _SILENT.pattern,
            r"client_loop: send disconnect",
            r"^Connection reset by",
            r"^Connection to .+ closed by remote host",
            r"^Connection to .+ timed out",
        ),
        _lost,
    ),
    ((r"^ssh: Could not resolve hostname",), _unresolved),
    (
        (
            r"Could not resolve hostname",
            r"open failed: connect failed",
            r"^ssh: connect to host",
            r"kex_exchange_identification",
            r"banner exchange",
            r"^Connection closed by",
            r"^Connection timed out",
            r"ssh_dispatch_run_fatal",
        ),
        _unreachable,
    ),
)


def problem_of(ended: Ended, *, was_connected: bool) -> Problem:
    """Return the problem that an end of ssh is; `was_connected` says whether the connection had stood."""
    if was_connected:
        # Whatever it said before that: a channel that was refused an hour ago did not end it.
        return _lost(ended)
    for one in _OWN:
        if found := one.words.search(ended.own):
            return one.problem(ended, found)
    if SshQuestionKind.HOST_KEY in ended.attempt.refused:
        return _unknown(ended)
    if blames_jump(ended):
        return _jump(ended)
    for one in TABLE:
        if found := one.words.search(ended.words):
            return one.problem(ended, found)
    return _problem(
        ended,
        Reason.SSH_FAILED,
        tr("ssh did not connect to {destination}.", destination=ended.destination),
        ended.words.strip()[-500:] or _exit(ended.code),
        Fix(text="Try it by hand.", command=by_hand(ended.destination, "-v")),
    )


def is_retried(problem: Problem) -> bool:
    """Return True for what another try may mend by itself; a name that was mistyped waits for a person."""
    return problem.reason in _RETRIED and not problem.evidence.get(NEVER_CONNECTED)


def blames_jump(ended: Ended) -> bool:
    """Return True where something before the machine, or a server, says that a key is not the known one."""
    between = ended.effective is not None and (ended.effective.jump or ended.effective.proxy)
    return bool(between) and any(one.words.search(ended.stderr) for one in _OWN)


def refuses_forwards(words: str) -> bool:
    """Return True where ssh said that the other side lets nothing through."""
    return _REFUSED in words


def forward_refused(destination: str) -> HostError:
    """Return the refusal of a machine that lets nothing through."""
    return HostError.from_problem(_forward(Ended(destination, None, "", Attempt(destination))))


def not_connected(name: str) -> HostError:
    """Return the refusal of what needs a connection that does not stand."""
    return HostError(
        Reason.SSH_LOST,
        tr("{name} is not connected.", name=name),
        cause=tr("It was not connected since this host started, or was disconnected."),
        fix=Fix(text="Connect it first.", command=f"sndr host connect {name}"),
    )


def broke(name: str, *, killed: bool = False) -> HostError:
    """Return the failure of what was under way there when its connection went, or its ssh here was ended."""
    return HostError(
        Reason.SSH_LOST,
        tr("The connection to {name} broke while it was at work there.", name=name),
        cause="ssh was ended on this machine, as happens where memory runs out."
        if killed
        else "The machine hangs, its sshd was restarted, or the network between is gone.",
        fix=Fix(
            text="It is made again by itself. Then do the same once more: uploads go on from there.",
            command=f"sndr host connect {name}",
        ),
    )


def _exit(code: int | None) -> str:
    return tr("It was ended.") if code is None or code < 0 else tr("ssh ended with code {code}.", code=code)


def _problem(
    ended: Ended, reason: Reason, message: str, cause: str, fix: Fix | None, **evidence: object
) -> Problem:
    told = {name: value for name, value in evidence.items() if value is not None}
    asked = [one.kind.value for one in ended.attempt.asked]
    shown = {"exit": ended.code, "stderr": ended.words[-_LONGEST:], "asked": asked}
    return Problem(reason=reason, message=message, cause=cause, fix=fix, evidence={**told, **shown})
