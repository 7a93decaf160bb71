"""Models that were sent to other machines, kept so that they can be sent again: place, folder and hashes."""

import time
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine_host.core.store import Store

_KIND = "sent_model"
_MOST = 1000


class SentModel(BaseModel):
    """A model that lies on another machine since it was sent: `files` are the SHA-256 of its paths there."""

    model_config = ConfigDict(defer_build=True)

    destination: str
    model: str
    to: str
    files: Mapping[str, str]
    at: float = Field(default_factory=time.time)


class SentModels:
    """The models that were sent, newest first, but for those that another version kept otherwise."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def keep(self, sent: SentModel) -> None:
        """Keep what was sent, in the place of what lay there before. Raises what saving raises."""
        # Of files without a known hash none could be sent again by it.
        if not sent.files:
            return
        self._store.put(_KIND, f"{sent.destination}\n{min(sent.files)}", sent.at, sent.model_dump_json())
        self._store.prune(_KIND, _MOST)

    def to(self, destination: str) -> list[SentModel]:
        """Return what was sent to one machine."""
        found = []
        for body in self._store.newest(_KIND, _MOST):
            try:
                one = SentModel.model_validate_json(body)
            except ValidationError:
                continue
            if one.destination == destination:
                found.append(one)
        return found
