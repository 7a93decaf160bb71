"""The choice of a repository that a word on the command line means."""

import pytest

from engine_host.cli.library.commands import _chosen
from engine_host.core.errors import HostError
from engine_host.protocol.library import HubChoice, HubFiles


def found(*labels: str) -> HubFiles:
    """Return a repository with these choices."""
    made = [HubChoice(id=f"m-{label}.gguf", label=label, format="GGUF", size=1, files=()) for label in labels]
    return HubFiles.model_construct(
        repository="org/m", revision="main", commit="c" * 40, folder="/f", choices=tuple(made)
    )


def test_a_quantisation_is_found_where_its_makers_put_a_mark_before_it() -> None:
    assert _chosen(found("UD-Q8_K_XL", "Q8_0"), "Q8_K_XL").label == "UD-Q8_K_XL"
    assert _chosen(found("UD-Q4_K_M", "Q4_K_M"), "q4_k_m").label == "Q4_K_M", "the very name goes before"
    assert _chosen(found("Q8_0", "F16"), "m-F16.gguf").label == "F16"
    for unclear in ("K_XL", "Q6_K", None):
        with pytest.raises(HostError):
            _chosen(found("UD-Q8_K_XL", "Q8_0"), unclear)
