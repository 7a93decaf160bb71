"""Every built-in patch against the text of the installed vLLM."""

from engine_host.overlay.check import check
from engine_host.overlay.patch_catalog import BUILT_IN, PatchCatalog
from engine_host.overlay.sources import open_source
from engine_host.protocol.patches import CheckVerdict
from tests.vllm_environment import vllm_venv

INSTALLED = PatchCatalog.load((BUILT_IN,))


def test_every_built_in_patch_fits_the_installed_vllm_or_says_that_it_is_not_for_it() -> None:
    source = open_source(vllm_venv())
    for found in check(INSTALLED, source):
        wrong = [one for one in found.operations if one.verdict is not CheckVerdict.APPLIES]
        assert found.verdict in {CheckVerdict.APPLIES, CheckVerdict.OUT_OF_RANGE}, wrong
