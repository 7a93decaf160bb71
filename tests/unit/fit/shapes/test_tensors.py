"""Bytes of a checkpoint's weights, by what reads them."""

from pathlib import Path

import pytest

from engine_host.fit.shapes.model import read_shape
from engine_host.fit.shapes.tensors import checkpoint_weights, gguf_tables
from engine_host.library.checkpoint import read_checkpoint
from tests.unit.fit.test_kv import DENSE
from tests.unit.library.checkpoints import checkpoint, tensors


def test_tables_that_drafting_layers_bring_themselves_are_told_apart(tmp_path: Path) -> None:
    """Names as in DeepSeek's checkpoints: the layer after the last one drafts."""
    weights = tensors(
        model__embed_tokens__weight=(8, 4),
        model__layers__0__mlp__up_proj__weight=(4, 4),
        model__layers__3__eh_proj__weight=(2, 4),
        model__layers__3__embed_tokens__weight=(8, 4),
        model__layers__3__shared_head__head__weight=(8, 4),
        model__layers__3__shared_head__norm__weight=(4,),
        lm_head__weight=(8, 4),
    )
    found = checkpoint_weights(read_checkpoint(checkpoint(tmp_path, weights)), read_shape(DENSE))
    table = 2 * 8 * 4
    assert (found.embedding, found.head) == (table, table)
    assert found.drafting_tables == 2 * table
    assert found.drafting == 2 * table + 2 * 2 * 4 + 2 * 4, "all of it is loaded"


@pytest.mark.parametrize(
    ("quantization", "tables"),
    [
        ("Q4_K_M", (4.5, 6.5625)),
        ("UD-Q8_K_XL", (8.5, 8.5)),
        ("QAT Q4_0", (4.5, 6.5625)),
        ("IQ4_XS", (4.25, 6.5625)),
        ("MXFP4", (8.5, 8.5)),
        ("bf16", (16, 16)),
        ("IQ1_S", None),
        ("", None),
    ],
)
def test_tables_of_a_gguf_file_have_bits_by_its_kind(quantization: str, tables: tuple[float, float]) -> None:
    found = gguf_tables(quantization)
    assert (found and (found.embedding, found.head)) == tables
