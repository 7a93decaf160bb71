"""Keys of the public endpoint, as the control API tells and changes them."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from engine_host.protocol.base import Command, Seconds, Wire
from engine_host.protocol.text import Line

_MARKS = " ._-@+'"


def _key_name(name: str) -> str:
    plain = all(letter.isalnum() or letter in _MARKS for letter in name)
    if not plain or not name[0].isalnum() or name != name.rstrip():
        raise ValueError(
            "it is letters, digits, spaces and any of . _ - @ + ', and begins with a letter or a digit"
        )
    return name


KeyName = Annotated[Line, Field(max_length=60), AfterValidator(_key_name)]
"""The name of a key that is made; one that was made before may have another."""


class Permission(StrEnum):
    """A thing that requests with a key may do: ask models, or also see how the endpoint is used."""

    INFER = "infer"
    ADMIN = "admin"


class ApiKey(Wire):
    """A key as it is shown: never the key itself.

    `plain_file` says that it comes from the file `api-keys`; `weak` that it is short enough to be guessed by
    somebody who has its hash.
    """

    id: str
    name: str
    permissions: tuple[Permission, ...]
    created_at: Seconds
    plain_file: bool = False
    weak: bool = False


class KeyPage(Wire):
    """All keys; `needed` says whether the endpoint asks for one.

    `plain_file` is the file that still holds keys as plain text; it can be deleted, its keys are kept as
    hashes.
    """

    seq: int
    keys: tuple[ApiKey, ...]
    needed: bool
    plain_file: str | None = None


class CreateKey(Command):
    """A key to make."""

    name: KeyName
    permissions: tuple[Permission, ...] = Field((Permission.INFER,), min_length=1, max_length=2)


class CreatedKey(Wire):
    """A key that was made; `key` is shown this once, and kept nowhere."""

    entry: ApiKey
    key: str


class OwnKey(Wire):
    """A key that ends with this run of the host, for who has its token; None where none is needed."""

    key: str | None
