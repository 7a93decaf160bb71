"""`keys.json`: the endpoint's keys in the folder of the settings, with what is taken over from `api-keys`."""

import json
import logging
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine_host.core import atomic_file
from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.core.keys import plain
from engine_host.core.keys.ring import Key, digest_of
from engine_host.core.outside import files
from engine_host.protocol.endpoint.keys import CreatedKey, KeyPage, Permission
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.text import Line

NAME = "keys.json"
_log = logging.getLogger(__name__)

_LARGEST = 1 << 20
_MOST = 1000
_SHORT = 20
"""Letters below which a key that a person chose may be guessed from its hash."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    id: str = Field(pattern=r"^[0-9a-f]{8}$")
    name: Line = Field(max_length=60)
    permissions: tuple[Permission, ...]
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    created_at: float
    plain_file: bool = False
    weak: bool = False


class _Content(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    format: int = Field(1, ge=1, le=1)
    keys: tuple[_Entry, ...] = Field((), max_length=_MOST)
    revoked: tuple[str, ...] = Field((), max_length=_MOST)


class KeyFile:
    """The keys of one folder of settings.

    Lines of `api-keys` are taken over as hashes when they are read. While that file is there it rules its own
    keys: a line that is gone from it is a key that is gone. When the whole file is gone, its keys stay.
    """

    def __init__(self, config: Path) -> None:
        self.path = config / NAME
        self._config = config

    def read(self) -> tuple[Key, ...]:
        """Return all keys, with those of the plain file taken over.

        Raises HostError(setting_invalid) for a file that is damaged or that others can read, and what saving
        raises.
        """
        content = self._content()
        keys = tuple(_key(entry) for entry in content.keys)
        lines = plain.read_api_keys(self._config)
        if lines is None:
            return keys
        digests = {digest_of(line.encode()): line for line in lines}
        kept = [key for key in keys if not key.plain_file or key.digest in digests]
        known = {key.digest for key in kept} | set(content.revoked)
        for digest, line in digests.items():
            if digest not in known:
                kept.append(_taken_over(digest, line, kept))
        if len(kept) > _MOST:
            raise _too_many(str(self._config / plain.NAME))
        if tuple(kept) != keys:
            try:
                self._save(kept, content.revoked)
            except HostError as error:
                # They hold all the same, and are taken over when the disk has room again.
                _log.warning("keys were not taken over: %s", error.problem.sentence())
        return tuple(kept)

    def create(self, name: str, permissions: Iterable[Permission]) -> CreatedKey:
        """Make a key; it is returned here and kept nowhere.

        Raises HostError(conflict) for a name that is taken, and what `read` raises.
        """
        keys = self.read()
        if any(key.name == name for key in keys):
            raise HostError(
                Reason.CONFLICT,
                tr("There is a key named {name} already.", name=name),
                cause="The name is how a key is told apart in the list, and how it is revoked.",
                fix=Fix(text="Choose another name, or revoke that one first.", command="sndr keys list"),
                evidence={"name": name},
            )
        if len(keys) >= _MOST:
            raise _too_many(str(self.path))
        secret = f"sndr-{secrets.token_urlsafe(32)}"
        made = Key(_new_id(keys), name, frozenset(permissions), digest_of(secret.encode()), time.time())
        self._save([*keys, made], self._content().revoked)
        return CreatedKey(entry=made.shown(), key=secret)

    def _named(self, which: str) -> Key:
        keys = self.read()
        for key in keys:
            if which in {key.id, key.name}:
                return key
        near = near_names(which, [key.name for key in keys])
        meant = tr("Did you mean {near}?", near=near[0]) if near else tr("The list has their names and ids.")
        raise HostError(
            Reason.NOT_FOUND,
            tr("There is no key {which}.", which=which),
            cause="It was revoked, or made on another machine or by another user.",
            fix=Fix(text=meant, command="sndr keys list"),
            evidence={"key": which},
        )

    def page(self, seq: int = 0) -> KeyPage:
        """Return all keys as they are told. Raises what `read` raises."""
        keys = self.read()
        plain_file = self._config / plain.NAME
        return KeyPage(
            seq=seq,
            keys=tuple(key.shown() for key in keys),
            needed=bool(keys),
            plain_file=str(plain_file) if plain_file.is_file() else None,
        )

    def revoke(self, which: str, *, needed: bool) -> None:
        """Forget a key by its id or its name; its line in the plain file is not taken over again.

        Raises HostError(not_found), and HostError(conflict) for the last one where one is `needed`.
        """
        key = self._named(which)
        rest = [one for one in self.read() if one.id != key.id]
        if needed and not rest:
            raise HostError(
                Reason.CONFLICT,
                tr("{key} is the last key, and other machines reach the endpoint: it stays.", key=key.name),
                cause="Without any key everybody on that network could ask.",
                fix=Fix(
                    text="Make another key first, or bring the endpoint back to this machine.",
                    command="sndr settings unset endpoint.host",
                ),
                evidence={"key": key.name},
            )
        content = self._content()
        revoked = (*content.revoked, key.digest)[-_MOST:] if key.plain_file else content.revoked
        self._save(rest, revoked)

    def _content(self) -> _Content:
        try:
            plain.check_private(self.path)
            return _Content.model_validate_json(files.read(self.path, _LARGEST))
        except FileNotFoundError:
            return _Content()
        except (OSError, ValidationError) as error:
            raise HostError(
                Reason.SETTING_INVALID,
                tr("{path} cannot be read: it is not what this program writes there.", path=self.path),
                cause="The file was edited or damaged.",
                fix="Bring it back from a copy, or move it away and make new keys.",
                evidence={"file": str(self.path)},
            ) from error

    def _save(self, keys: Sequence[Key], revoked: Sequence[str]) -> None:
        entries = [
            {
                "id": key.id,
                "name": key.name,
                "permissions": sorted(key.permissions),
                "sha256": key.digest,
                "created_at": key.created_at,
                "plain_file": key.plain_file,
                "weak": key.weak,
            }
            for key in keys
        ]
        text = json.dumps({"format": 1, "keys": entries, "revoked": list(revoked)}, indent=1)
        atomic_file.write(self.path, text + "\n", follow=True)


def _too_many(file: str) -> HostError:
    return HostError(
        Reason.CONFLICT,
        tr("{file} holds more than {most} keys, or would.", file=file, most=_MOST),
        cause="Every request is compared with each of them.",
        fix=Fix(text="Revoke some that are not used.", command="sndr keys list"),
        evidence={"file": file, "most": _MOST},
    )


def _key(entry: _Entry) -> Key:
    return Key(
        entry.id,
        entry.name,
        frozenset(entry.permissions),
        entry.sha256,
        entry.created_at,
        entry.plain_file,
        entry.weak,
    )


def _taken_over(digest: str, line: str, others: Sequence[Key]) -> Key:
    names = {key.name for key in others}
    number = next(place for place in range(1, len(names) + 2) if f"{plain.NAME}-{place}" not in names)
    key = Key(_new_id(others), f"{plain.NAME}-{number}", frozenset(Permission), digest, time.time())
    return replace(key, plain_file=True, weak=len(line) < _SHORT)


def _new_id(keys: Iterable[Key]) -> str:
    known = {key.id for key in keys}
    while (made := secrets.token_hex(4)) in known:
        pass
    return made
