"""The models that requests may load, kept in the database; and the settings that a load may be given."""

import logging
import time

from pydantic import Field, ValidationError

from engine_host.core.errors import HostError
from engine_host.core.store import Store
from engine_host.protocol.base import Seconds, Wire
from engine_host.protocol.endpoint.on_demand import LoadSetting
from engine_host.protocol.engine_settings.row import EngineSetting
from engine_host.protocol.engine_settings.table import settings_of
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest

_log = logging.getLogger(__name__)
_KIND = "on demand"
_MOST = 500
# Clients put a model's id into paths, and before a tag.
_NOT_IN_NAMES = "/:"
_FINE = 0.01


class Entry(Wire):
    """One model that requests may load: its start, and how long it stays, in seconds.

    One `at_start` is also loaded when the host starts.
    """

    name: str
    launch: LaunchRequest
    keep_alive: float
    pinned: bool = False
    at_start: bool = False
    added_at: Seconds = Field(default_factory=time.time)


class Entries:
    """The entries of one database, by name."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self) -> list[Entry]:
        """Return every entry by name; one of another version of this program is left out."""
        found = []
        for body in self._store.newest(_KIND, _MOST):
            try:
                found.append(Entry.model_validate_json(body))
            except ValidationError as error:
                _log.warning("a model on demand of another version of this program is left out: %s", error)
        return sorted(found, key=lambda entry: entry.name)

    def put(self, entry: Entry) -> None:
        """Save an entry, in place of one of its name. Raises what saving raises."""
        self._store.put(_KIND, entry.name, entry.added_at, entry.model_dump_json())

    def remove(self, name: str) -> None:
        """Remove an entry, if there is one."""
        self._store.remove(_KIND, name)


def check_name(name: str) -> None:
    """Raise HostError(setting_invalid) for a public name that clients cannot use everywhere."""
    if any(letter in name for letter in _NOT_IN_NAMES):
        free = name.replace("/", "-").replace(":", "-")
        raise HostError(
            Reason.SETTING_INVALID,
            tr(
                "{name} cannot be the name of a model that is loaded on demand: it holds a / or a colon.",
                name=name,
            ),
            cause="Some clients take these for a path or a tag.",
            fix=tr("Give it another name: --name {free}", free=free),
            evidence={"field": "name", "name": name},
        )


def check_launch(launch: LaunchRequest) -> None:
    """Raise HostError(setting_invalid) for a start that nobody could make room for again."""
    if launch.keep:
        raise HostError(
            Reason.SETTING_INVALID,
            "A model that is loaded on demand ends with the host: it cannot be kept.",
            cause="The next request loads it again, also after the host was started anew.",
            fix="Leave --keep out, and use --pin for one that is to stay.",
            evidence={"field": "keep"},
        )
    if launch.instead_of:
        raise HostError(
            Reason.SETTING_INVALID,
            "A model that is loaded on demand takes the place of no engine that was named beforehand.",
            cause="What it makes room with is found when it is loaded.",
            fix="Leave --instead-of and --replace out.",
            evidence={"field": "instead_of"},
        )


def load_settings(launch: LaunchRequest, plan: LaunchPlan) -> tuple[LoadSetting, ...]:
    """Return the settings that a load may be given, as its start has them."""
    values = {setting.name: setting.value for setting in plan.settings}
    given = launch.overrides.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return tuple(
        LoadSetting(
            name=row.name,
            caption=row.caption,
            help=row.help,
            kind=row.kind,
            unit=row.unit,
            minimum=row.low if step is not None else None,
            maximum=row.high if step is not None else None,
            step=step,
            choices=tuple(choice.value for choice in row.choices),
            value=values.get(row.name, given.get(row.name)),
            given=row.name in given,
        )
        for row, step in ((row, _step(row)) for row in settings_of(plan.engine))
    )


def _step(row: EngineSetting) -> float | None:
    return {"whole": 1.0, "decimal": _FINE}.get(row.kind)
