"""Bytes of a checkpoint's weights, by what reads them."""

from pathlib import Path

from engine_host.fit.shapes.model import read_shape
from engine_host.fit.shapes.tensors import checkpoint_weights
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
