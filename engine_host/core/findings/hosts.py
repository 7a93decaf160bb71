"""Findings about remote hosts: what looks dangerous or forgotten in their facts."""

from engine_host.core.findings.text import ERROR, INFO, WARNING, Text
from engine_host.protocol.errors import Reason

HOSTS = {
    "host.open-to-all": Text(
        WARNING,
        "{engine} (process {pid}) listens on every address of {host}, port {port}.",
        fix="Start it with --host 127.0.0.1: a tunnel reaches it there.",
    ),
    "host.open-to-all/public": Text(
        WARNING,
        "{engine} (process {pid}) listens on the public address {address} of {host}, port {port}.",
        fix="Start it with --host 127.0.0.1: a tunnel reaches it there.",
    ),
    "host.public-address": Text(
        INFO,
        "{host} is reached by a public address, {address}.",
        fix="A machine with GPUs is better behind a private address and a jump host.",
    ),
    "host.id-for-clients": Text(
        WARNING,
        "{engine} (process {pid}) serves {id}, and clients break on {sign} in an id.",
        fix="Serve it as {suggested}.",
    ),
    "host.models-on-root": Text(
        WARNING,
        "The models of {host} ({folder}) lie on its root disk ({device}), of which {free:gib} GiB are free.",
        fix="Keep models and caches on a disk of their own, and name its folder as the model root.",
    ),
    "host.clock": Text(
        WARNING,
        "The clock of {host} differs by {seconds} seconds from this machine's: times of its engines are "
        "shown by the clock here, those in the words of its logs by its own. Certificates may not be valid.",
        fix="Let it be set from the network there.",
        command="sudo timedatectl set-ntp true",
    ),
    "host.root-full": Text(
        WARNING,
        "The root disk of {host} ({device}) has {free:gib} of {total:gib} GiB left.",
        Reason.DISK_FULL,
        "Make room: a full root disk stops logs, services and logins.",
    ),
    "host.no-compiler": Text(
        WARNING,
        "{host} has GPUs and no {programs}, with which vLLM and SGLang compile kernels at their first start.",
        fix="Install what is missing there.",
        command="sudo apt install {packages}",
    ),
    "host.profile-drift": Text(
        WARNING,
        "{engine} on {host} runs with other arguments than those that were kept: {changes}.",
        fix="Keep what runs as the profile, or start it again as it was kept.",
        command="sndr host profile {host} --keep",
    ),
    "host.profile-gone": Text(
        WARNING,
        "{engine} on {host}, port {port}, was kept and does not run.",
        fix="Start it, or keep what runs as the profile.",
        command="sndr host profile {host} --keep",
    ),
    "transfer.no-room": Text(
        ERROR,
        "{folder} on {where} has {free} free, and {needed} are to come.",
        Reason.DISK_FULL,
        "Free some space there, or choose a folder on another disk with --to.",
    ),
    "transfer.others": Text(
        ERROR,
        "Other files of these names lie in {folder} on {where}: {names}.",
        Reason.CONFLICT,
        "Choose another folder with --to, or replace them.",
    ),
    "transfer.not-looked-at": Text(
        WARNING,
        "The model lies in {folder}, where the engine host on {host} does not look: its path starts it.",
        fix="Start it by its path, or add the folder to models.folders there.",
        command="sndr --host {host} run {path}",
    ),
}
