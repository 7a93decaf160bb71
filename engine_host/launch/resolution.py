"""Settings resolved layer by layer, each value remembering which layer set it and why."""

from typing import Any

from engine_host.protocol.plans import Layer, Setting

_ORDER = list(Layer)


class Resolution:
    """The settings of one start; a later layer wins over an earlier one."""

    def __init__(self) -> None:
        self._settings: dict[str, Setting] = {}

    def set(self, name: str, value: Any, layer: Layer, why: str = "") -> None:
        """Set a value, unless a later layer has already set it."""
        known = self._settings.get(name)
        if known is None or _ORDER.index(layer) >= _ORDER.index(known.layer):
            self._settings[name] = Setting(name=name, value=value, layer=layer, why=why)

    def set_given(self, name: str, value: Any, layer: Layer, why: str = "") -> None:
        """Set a value unless it is None, which means that this layer does not say."""
        if value is not None:
            self.set(name, value, layer, why)

    def limit(self, name: str, value: Any, why: str) -> None:
        """Replace a value by what the hardware allows, whichever layer has set it."""
        self._settings[name] = Setting(name=name, value=value, layer=Layer.HARDWARE, why=why)

    def replace(self, name: str, value: Any) -> None:
        """Say the same in another way: who set it stays."""
        self._settings[name] = self._settings[name].model_copy(update={"value": value})

    def __getitem__(self, name: str) -> Any:
        return self._settings[name].value

    def layer(self, name: str) -> Layer:
        """The layer that set a value."""
        return self._settings[name].layer

    def values(self) -> dict[str, Any]:
        """Return every value by its name."""
        return {name: setting.value for name, setting in self._settings.items()}

    def settings(self) -> tuple[Setting, ...]:
        """Everything resolved, in the order it was first named."""
        return tuple(self._settings.values())
