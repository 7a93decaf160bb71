"""Consent: a file from somebody else asks for more than harmless settings, and a person allows that."""

from pydantic import Field

from engine_host.protocol.base import Wire
from engine_host.protocol.language.spoken import Sentence, Spoken


class Demand(Spoken):
    """One thing that a file asks for; `does` says in a sentence what it can do.

    `known` is False for a flag that this program knows nothing of.
    """

    file: str
    line: int | None = None
    key: str = Field(description="the place in the file, such as settings.extra_arguments[0]")
    what: str
    does: Sentence
    known: bool = True


class ConsentNeeded(Wire):
    """Everything that a person has to consent to, once for these contents.

    `digest` names the contents: it is given back as the consent, and another content has another one.
    """

    digest: str
    demands: tuple[Demand, ...]
    contents: tuple[str, ...] = Field((), description="SHA-256 of each file that asks")

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files."""
        return tuple(dict.fromkeys(demand.file for demand in self.demands))
