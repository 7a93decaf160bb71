"""Names and secrets that a mask has to know: of other machines, people there, providers and starts."""

import os
import re
import shlex
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from engine_host.client.diagnostics.mask import Mask
from engine_host.core.diagnosis.secrets import given
from engine_host.core.outside import files, json_text
from engine_host.core.outside.ssh_config import config_file, config_lines
from engine_host.core.paths import Folders
from engine_host.core.settings import SettingsFile
from engine_host.protocol.remote.hosts import THIS_MACHINE

_LARGEST_BODY = 1 << 20
_MOST = 1000
# The documents of the database in which names of machines and people stand.
_KINDS = (
    *("remote_host", "remote_removed", "remote_facts", "remote_profile", "route", "promotion", "on demand"),
    *("engine", "job"),
)
_PLACES = ("host", "hostname", "destination", "address", "control_host", "machine_name", "jump")
_LARGEST_KEY = 4096
_OF_PATTERNS = frozenset("*?%")
_DEEPEST = 40
# What these options hold is a person's own text, where it is more than a word.
_TEXT_OPTIONS = frozenset(
    {
        *(
            "--chat-template",
            "--chat-template-kwargs",
            "--default-chat-template-kwargs",
            "--grammar",
            "--json-schema",
        ),
        *("-j", "-p", "--prompt", "-sys", "--system-prompt", "--override-generation-config"),
    }
)
_HOME = re.compile(r"/(?:home|Users)/([^/]+)/")
_PROVIDER = re.compile(r"[A-Za-z0-9.-]{1,253}(?::\d{1,5})?")


def documents(store: Path, kind: str, most: int = _MOST) -> list[dict[str, Any]]:
    """Return the newest documents of a kind from the database, which is only read.

    Raises sqlite3.Error for a damaged file, ValueError for a document that is none.
    """
    if not store.is_file():
        return []
    with closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True, timeout=2.0)) as database:
        database.text_factory = lambda raw: raw.decode("utf-8", "replace")
        rows = database.execute(
            "SELECT body FROM document WHERE kind = ? AND length(body) <= ? ORDER BY at DESC LIMIT ?",
            (kind, _LARGEST_BODY, most),
        ).fetchall()
    return [json_text.parse_object(str(row[0])) for row in rows]


def learn_from_disk(folders: Folders, mask: Mask) -> None:
    """Learn what this machine's files tell; one that cannot be read is in no report either."""
    for kind in _KINDS:
        try:
            found = documents(folders.store, kind)
        except (sqlite3.Error, ValueError, OSError):
            continue
        learn_from_value(found, mask)
    settings = SettingsFile(folders.settings)
    settings.load_what_holds()
    learn_from_settings({one.name: one.value for one in settings.settings()}, mask)
    mask.know_hosts(_of_ssh(config_file(os.environ)))
    mask.know_secrets(_tokens_of_hugging_face())


def learn_from_settings(values: Mapping[str, Any], mask: Mask) -> None:
    """Learn the machines that settings name."""
    for name in ("endpoint.allowed_hosts", "endpoint.host"):
        value = values.get(name)
        mask.know_hosts(str(one) for one in (value if isinstance(value, list | tuple) else [value or ""]))


def learn_from_value(value: Any, mask: Mask, depth: int = 0) -> None:
    """Learn from a value of JSON by the names of its fields, whatever it is of."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list | tuple):
        for one in value:
            learn_from_value(one, mask, depth + 1)
    if not isinstance(value, Mapping):
        return
    mask.know_hosts(_machines_of(value))
    mask.know_users(_people_of(value))
    if "argv" in value or "environment" in value:
        _learn_from_plan(value, mask)
    if isinstance(command := value.get("command"), str) and command.startswith("sndr "):
        _learn_from_command(command, mask)
    if "url" in value and ("key_variable" in value or "key_file" in value):
        _learn_from_provider(value, mask)
    for one in value.values():
        learn_from_value(one, mask, depth + 1)


def _machines_of(value: Mapping[str, Any]) -> Iterator[str]:
    for name in _PLACES:
        if isinstance(told := value.get(name), str) and told not in ("", THIS_MACHINE):
            yield told
    # The name by which a person calls a machine stands beside the way there.
    if "destination" in value and isinstance(value.get("name"), str):
        yield value["name"]
    provider = value.get("provider")
    if isinstance(provider, str) and _PROVIDER.fullmatch(provider):
        yield provider


def _people_of(value: Mapping[str, Any]) -> Iterator[str]:
    for name in ("data_folder", "log_folder", "folder", "file"):
        if isinstance(path := value.get(name), str) and (found := _HOME.match(path)) is not None:
            yield found[1]
    if isinstance(user := value.get("user"), str):
        yield user
    if isinstance(home := value.get("home"), str) and home.count("/") > 1:
        yield home.rstrip("/").rpartition("/")[2]


def _learn_from_plan(plan: Mapping[str, Any], mask: Mask) -> None:
    settings = plan.get("settings")
    # A start that was refused has no command line, and its settings hold the words that were asked for.
    lines = [plan.get("argv"), *(one.get("value") for one in settings or () if isinstance(one, Mapping))]
    for line in lines:
        words = [str(word) for word in line] if isinstance(line, list | tuple) else []
        told = dict(given({**plan, "argv": words}))
        mask.know_variables(name for name in told if not name.startswith("-"))
        mask.know_secrets(told.values())
        mask.know_secrets(
            value for option, value in pairwise(words) if option in _TEXT_OPTIONS and not value.isidentifier()
        )


def _learn_from_command(command: str, mask: Mask) -> None:
    """Learn from a command that starts a model: a job keeps it when its plan is gone."""
    try:
        words = shlex.split(command)
    except ValueError:
        return
    extra = "extra_arguments="
    settings = [
        {"name": "variables", "value": [value for option, value in pairwise(words) if option == "--env"]},
        {
            "name": "extra_arguments",
            "value": [word.removeprefix(extra) for word in words if word.startswith(extra)],
        },
    ]
    _learn_from_plan({"settings": settings}, mask)


def _learn_from_provider(provider: Mapping[str, Any], mask: Mask) -> None:
    if isinstance(url := provider.get("url"), str) and "://" in url:
        mask.know_hosts([url])
    if isinstance(name := provider.get("key_variable"), str):
        mask.know_variables([name])
        mask.know_secrets([os.environ.get(name, "")])
    if isinstance(file := provider.get("key_file"), str):
        mask.know_secrets(_lines_of(files.expanded(file)))


def _of_ssh(path: Path) -> Iterator[str]:
    """Yield the machines and people that an ssh configuration names."""
    for word, values in config_lines(path):
        if word in ("host", "hostname"):
            # Of a pattern the domain: `*.example.org`.
            named = (value.lstrip("!").removeprefix("*.") for value in values)
            yield from (one for one in named if not set(one) & _OF_PATTERNS)
        elif word == "match":
            for before, value in pairwise(values):
                if before.lower() in ("host", "originalhost"):
                    yield from (one.lstrip("!") for one in value.split(",") if not set(one) & _OF_PATTERNS)
        elif word == "user":
            yield from (f"{value}@" for value in values)
        elif word == "proxyjump":
            yield from (one for value in values for one in value.split(",") if one != "none")
        elif word == "proxycommand":
            # One of its words is a machine; others are options of whatever it is.
            words = (one for value in values for one in value.split())
            yield from (one for one in words if "@" in one or re.search(r"\w\.\w", one))


def _tokens_of_hugging_face() -> Iterator[str]:
    home = files.expanded(os.environ.get("HF_HOME") or "~/.cache/huggingface")
    told = os.environ.get("HF_TOKEN_PATH")
    for place in (home / "token", home / "stored_tokens", *([files.expanded(told)] if told else [])):
        for line in _lines_of(place):
            yield line.rpartition("=")[2].strip()


def _lines_of(path: Path) -> list[str]:
    try:
        return files.read_text(path, _LARGEST_KEY).split("\n")
    except (OSError, UnicodeDecodeError):
        return []
