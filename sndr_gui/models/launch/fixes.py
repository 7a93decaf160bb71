"""Changes of a start by a click: a change that makes it fit, or what the fix of a finding says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine_host.protocol.errors import Fix, Problem
from engine_host.protocol.launch.fit import Change
from engine_host.protocol.launch.plans import Finding
from sndr_gui.models.launch.page import LaunchModel
from sndr_gui.models.launch.sizes import change_values


class LaunchFixes:
    """Makes changes in the form of Launch; its plan, its bars and its command line follow."""

    def __init__(self, model: LaunchModel) -> None:
        self._model = model

    def can_change(self, change: Change) -> bool:
        """Return True when a setting of this start makes the change."""
        return self._has(change_values(change, self._model.engine_kind) or {})

    def apply_change(self, change: Change) -> None:
        """Make a change of fit."""
        self._take(change_values(change, self._model.engine_kind) or {})

    def can_apply(self, fix: Fix) -> bool:
        """Return True when a click does what a fix says: a request to the host, or settings of this start."""
        return fix.action is not None or self._has(fix.settings)

    def apply_fix(self, problem: Problem | Finding) -> None:
        """Do what the fix of a problem says."""
        if problem.fix is not None and problem.fix.action is None:
            self._take(problem.fix.settings)
        else:
            self._model.actions.apply_fix(problem)

    def _has(self, values: Mapping[str, Any]) -> bool:
        known = {entry.name for entry in self._model.fields()} | {"draft_tokens"}
        return bool(values) and set(values) <= known

    def _take(self, values: Mapping[str, Any]) -> None:
        if self._has(values):
            self._model.set_values(dict(values))
            self._model.subject_changed.emit()
