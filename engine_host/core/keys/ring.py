"""The keys as a request meets them: compared as hashes, all of them each time."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from engine_host.protocol.endpoint.keys import ApiKey, Permission


@dataclass(frozen=True)
class Key:
    """One key: `id` and `name` are for people, `digest` is SHA-256 of the key in hexadecimal.

    `plain_file`: it was taken over from `api-keys`. `weak`: it is short enough to be guessed from its hash.
    """

    id: str
    name: str
    permissions: frozenset[Permission]
    digest: str
    created_at: float
    plain_file: bool = False
    weak: bool = False

    def may(self, permission: Permission) -> bool:
        """Return True if requests with this key may do so; who may administer may also ask."""
        return permission in self.permissions or Permission.ADMIN in self.permissions

    def shown(self) -> ApiKey:
        """Return what is told of the key."""
        permissions = tuple(one for one in Permission if one in self.permissions)
        return ApiKey(
            id=self.id,
            name=self.name,
            permissions=permissions,
            created_at=self.created_at,
            plain_file=self.plain_file,
            weak=self.weak,
        )


def digest_of(key: bytes) -> str:
    """Return what is kept of a key.

    SHA-256, and no slow hash: a key made here has 256 random bits, which no number of guesses finds, and a
    slow hash would let anybody without a key keep the endpoint busy.
    """
    return hashlib.sha256(key).hexdigest()


class KeyRing:
    """The keys that requests may come with, and one of this program's own that lasts as long as the host."""

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._keys = tuple(keys)
        self.own = secrets.token_urlsafe(32)
        self._own = Key(
            "own", "SNDR Control Center", frozenset(Permission), digest_of(self.own.encode()), created_at=0.0
        )

    @property
    def needed(self) -> bool:
        """True if a request has to come with a key."""
        return bool(self._keys)

    def replace(self, keys: Iterable[Key]) -> None:
        """Take other keys from now on."""
        self._keys = tuple(keys)

    def find(self, sent: bytes) -> Key | None:
        """Return the key that was sent, in UTF-8 or in latin-1; None for one that is not known.

        Every key is compared, whichever fits, so that the time tells nothing.
        """
        forms = [digest_of(sent), digest_of(sent.decode("latin-1").encode())]
        found = None
        for key in (*self._keys, self._own):
            fits = [hmac.compare_digest(form, key.digest) for form in forms]
            if any(fits):
                found = key
        return found
