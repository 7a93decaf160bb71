"""Each form of a key is taken out wherever its example stands, and each near miss stays."""

import pytest

from engine_host.core.outside.key_forms import KEY_FORMS, KeyForm
from engine_host.core.outside.secret_texts import HIDDEN, redacted


@pytest.mark.parametrize("form", KEY_FORMS, ids=lambda form: form.issuer)
def test_a_form_hides_its_example(form: KeyForm) -> None:
    key = form.example
    for text in (key, f"a {key} b", f'"{key}"', f"one\\n{key}", f"k%3D{key}", f"a\\u003d{key}", f"é{key}"):
        assert redacted(text) == text.replace(key, HIDDEN), text


@pytest.mark.parametrize("form", KEY_FORMS, ids=lambda form: form.issuer)
def test_its_beginning_alone_is_none(form: KeyForm) -> None:
    beginning = (
        form.example[: form.example.lower().find("example0")] if "xample" in form.example.lower() else ""
    )
    assert redacted(f"a {beginning} b") == f"a {beginning} b"


@pytest.mark.parametrize(
    "text",
    [
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "GPU-01234567-89ab-cdef-0123-456789abcdef",
        "0c1e57098ab04c1e9b0d6a0a3fbd6b6f8e1f2a3b",
        "q8_0 fp8_e4m3 turboquant_3bit_nc r8_b4",
        "0.32.0+cu128 12.8.0.1 v1.2.3",
        "hf_quantizer_config_of_the_model xai-org/grok-2 gl-pat npm_config_registry fw_bwd_kernel",
        "sk-local task-oriented-risk-assessment sndr-diagnostics-20251124-010203.zip",
    ],
)
def test_what_is_no_key_stays(text: str) -> None:
    assert redacted(text) == text
