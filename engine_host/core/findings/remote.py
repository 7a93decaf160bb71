"""Findings about our host on another machine."""

from engine_host.core.findings.text import ERROR, INFO, WARNING, Text
from engine_host.protocol.errors import Reason

REMOTE = {
    "remote.damaged": Text(
        WARNING,
        "{release} is damaged on {host}: {why}.",
        fix="It is made anew; settings, data and models stay as they are.",
    ),
    "remote.damaged/another": Text(
        WARNING,
        "{release} is damaged on {host}: {why}.",
        fix="This release takes its place; settings, data and models stay as they are.",
    ),
    "remote.demo-failed": Text(
        WARNING,
        "The host runs there, but the bundled model did not answer: {why}",
        fix="Start it there and read its log.",
        command="sndr --host {host} run --demo --detach",
    ),
    "remote.disk": Text(
        ERROR,
        "{host} has {free:gib} GiB free where it would be installed ({path}); it needs {needed:gib} GiB.",
        reason=Reason.DISK_FULL,
        fix="Free some space there, or let XDG_DATA_HOME of that user lead to a larger disk.",
    ),
    "remote.noexec": Text(
        ERROR,
        "The disk of {path} on {host} is mounted noexec: no compiled code can be loaded from there.",
        reason=Reason.UNSUPPORTED,
        fix="Let XDG_DATA_HOME of that user lead to another disk, or have that one mounted with exec.",
    ),
    "remote.read-only": Text(
        ERROR,
        "The disk of {path} on {host} is mounted read-only: nothing can be installed or changed there.",
        reason=Reason.NOT_WRITABLE,
        fix="Have it mounted to be written (a disk with errors is mounted so by the system: see its log "
        "first), or let {variable} of that user lead to another disk.",
    ),
    "remote.not-theirs": Text(
        ERROR,
        "The user that ssh logs in as on {host} may not write to {path}.",
        reason=Reason.NOT_WRITABLE,
        fix="Make its folder writable for that user, or let {variable} of it lead to another one.",
    ),
    "remote.no-folder": Text(
        ERROR,
        "{path} on {host} is a file, or a link whose target is gone: no folder can be made there.",
        reason=Reason.NOT_WRITABLE,
        fix="Move it away or mount what it leads to, or let {variable} of that user lead to another folder.",
    ),
    "remote.ended-with-host": Text(
        WARNING,
        "{name} ended with the engine host on {host}[ ({when})], and does not come back by itself.",
        fix="Start it again; `sndr on-demand add` with --at-start has one come back with its host.",
        command="{again}",
    ),
    "remote.engines-end": Text(
        WARNING,
        "The host there restarts, and with it end: {names}. Kept ones go on.",
        fix="Wait until they are not needed, or keep them.",
    ),
    "remote.engines-removed": Text(
        WARNING,
        "With the host there every engine ends, kept ones too: {names}.",
        fix="Wait until they are not needed.",
    ),
    "remote.silent": Text(
        WARNING,
        "The engine host on {host} runs and does not answer.",
        fix="It is started anew.",
    ),
    "remote.services-stay": Text(
        INFO,
        "Units and containers that were installed on {host} go on without the host there: {names}.",
        fix="Remove each that is not needed any more.",
        command="{command}",
    ),
    "remote.no-gpu": Text(INFO, "{host} shows no NVIDIA GPU: engines there run on the processor."),
    "remote.no-openmp": Text(
        WARNING,
        "{host} has no {library}: the llama.cpp that comes with the host does not run there.",
        fix="Have it installed by an administrator there, or use another engine.",
        command="sudo apt-get install libgomp1",
    ),
    "remote.no-platform": Text(
        ERROR,
        "No packages are made for {machine} with {libc}.",
        reason=Reason.UNSUPPORTED,
        fix="The engine host runs on Linux with glibc 2.17 or newer, on x86-64 and on ARM64.",
    ),
    "remote.no-python": Text(
        ERROR,
        "{host} has no Python that the host runs on; found: {found}.",
        reason=Reason.INSTALL_FAILED,
        fix="Have Python 3.11, 3.12 or 3.13 installed there; one of uv, conda or pyenv in that user's home "
        "is found too.",
        command="uv python install 3.12",
    ),
    "remote.other-host": Text(
        ERROR,
        "A host of another installation runs there (pid {pid}: {program}), with the same data.",
        reason=Reason.CONFLICT,
        fix="End it there first. An install takes its settings and models over.",
        command="sndr --host {host} quit",
    ),
    "remote.packages-from-here": Text(INFO, "The packages are sent from here: {why}."),
    "remote.plain": Text(
        WARNING,
        "The host is started as a plain process, because {why}: it does not come back by itself after a "
        "restart of that machine.",
        fix="Let its administrator permit it, then update.",
        command="sudo loginctl enable-linger {user}",
    ),
    "remote.plain/no-services": Text(
        WARNING,
        "The host is started as a plain process, because {why}: it does not come back by itself after a "
        "restart of that machine.",
        fix="Start it again after a restart; nothing is installed anew.",
        command="sndr host update {host}",
    ),
    "remote.older": Text(
        INFO,
        "{host} runs {program}, which is older than this program ({here}); all that it knows works.",
        fix="Update it; the old version stays until the new one works.",
        command="sndr host update {host}",
    ),
    "remote.newer": Text(
        INFO,
        "{host} runs {program}, which is newer than this program ({here}); what is new there is not "
        "shown here.",
        fix="Update this program.",
    ),
    "stage.led_to": Text(
        ERROR,
        "Requests would come to {target} as soon as it runs: {routes} leads there.",
        reason=Reason.CONFLICT,
        fix="Stage it under another name with --name, or lead that route elsewhere first.",
    ),
    "stage.name-taken": Text(
        ERROR,
        "An engine {name} runs on {host}, and a staging ends nothing.",
        reason=Reason.CONFLICT,
        fix="Stage it under another name.",
        command="{command}",
    ),
    "stage.promoted": Text(INFO, "{route} leads to {target} already, and to nothing that a staging changes."),
    "promote.cannot": Text(
        ERROR,
        "{target} cannot be asked: {why}",
        reason=Reason.CONFLICT,
        fix="Stage it first; the route leads where it led.",
        command="sndr host stage {machine} MODEL --name {engine} --for {route}",
    ),
    "promote.kept": Text(
        INFO,
        "{target} goes on: {why}.",
    ),
    "promote.not-ended": Text(
        WARNING,
        "{target} was not ended: {why}",
        fix="End it when it has nothing to do.",
        command="sndr stop {engine}",
    ),
    "rollback.moved": Text(
        INFO, "{route} was led elsewhere since its last promotion; it goes back to where it led before that."
    ),
    "rollback.not-asked": Text(
        ERROR,
        "{target} cannot be asked whether it runs: {why}",
        reason=Reason.HOST_UNREACHABLE,
        fix="Connect {host}, and begin again.",
        command="sndr host connect {host}",
    ),
    "rollback.no-start": Text(
        ERROR,
        "{target} does not run, and cannot be started from here: {why}",
        reason=Reason.CONFLICT,
        fix="Start it with its own command, and take the route back then: sndr host rollback {route}",
        command="{start}",
    ),
    "rollback.no-start/unknown": Text(
        ERROR,
        "{target} does not run, and cannot be started from here: {why}",
        reason=Reason.CONFLICT,
        fix="Start it there, and take the route back then.",
        command="sndr host rollback {route}",
    ),
}
