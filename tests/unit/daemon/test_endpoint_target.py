"""The endpoint promises what the engine says, and not what was asked of it."""

from dataclasses import replace

import pytest

from engine_host.core.package_data import resources
from engine_host.daemon.endpoint_target import KeptTargets, target_of
from engine_host.gateway.openai.listing import model_entry
from engine_host.library.gguf import GgufInfo, read_gguf
from engine_host.library.index import IndexedModel
from engine_host.protocol.engines import Readings, Verification
from engine_host.protocol.launch.plans import EngineKind
from engine_host.protocol.models import ModelFile, ModelOrigin
from tests.plan_samples import engine_of, plain_plan


def test_the_context_that_is_promised_is_the_engines() -> None:
    engine = engine_of(plain_plan(context=32_768))
    assert engine.context == 32_768, "until it says what it gives"
    said = Verification(model_listed=True, token_generated=True, context=8192, ready_after=1)
    engine = engine.model_copy(update={"verified": said})
    entry = model_entry(target_of(engine, None, "/run/e.sock"))
    assert (entry["max_model_len"], entry["context_length"], entry["meta"]["n_ctx"]) == (8192, 8192, 8192)
    silent = said.model_copy(update={"context": None})
    assert engine.model_copy(update={"verified": silent}).context == 32_768


def test_a_target_is_made_once_for_all_requests_until_its_engine_is_another(demo: IndexedModel) -> None:
    engine, kept = engine_of(plain_plan()), KeptTargets()
    once = kept.of([(engine, demo, "/run/e.sock", None)])[0]
    # Each look has a model of its own, made of the same file and metadata.
    assert kept.of([(engine, replace(demo), "/run/e.sock", None)])[0] is once
    assert kept.of([(engine, demo, "/run/e.sock", 60.0)])[0].expires_at == 60.0, "its end moved"
    read = engine.model_copy(update={"readings": Readings(at=1, kv_block=16)})
    assert kept.of([(read, demo, "/run/e.sock", 60.0)])[0].checkpoint_step == 16
    assert not kept.of([(read, None, "/run/e.sock", 60.0)])[0].size, "its files cannot be read any more"
    assert kept.of([]) == [], "it has ended"


@pytest.fixture
def demo() -> IndexedModel:
    path = resources() / "models" / "sndr-demo" / "sndr-demo-q8_0.gguf"
    file = ModelFile(
        id="the-files",
        name="the-files",
        path=str(path),
        origin=ModelOrigin.FOLDER,
        found_in=str(path.parent),
        size=1,
        format="GGUF",
    )
    return IndexedModel(file, read_gguf(path))


def test_an_engine_stands_for_the_id_of_its_files_too_where_its_preset_calls_the_model_otherwise(
    demo: IndexedModel,
) -> None:
    engine = engine_of(plain_plan(model="the-catalogues", preset="one"))
    assert target_of(engine, demo, "/run/e.sock").stands_for == ("one", "the-catalogues", "the-files")


def test_counts_of_each_piece_are_asked_where_their_cost_does_not_grow() -> None:
    plain = plain_plan()
    of_vllm = plain.model_copy(update={"engine": EngineKind.VLLM})
    thinks = of_vllm.model_copy(update={"argv": (*plain.argv, "--reasoning-parser=qwen3")})
    told = [target_of(engine_of(plan), None, "/run/e.sock").tells_counts for plan in (plain, of_vllm, thinks)]
    assert told == [True, True, False], "vLLM reads all of an answer again for each count"


def test_the_prefix_lens_learns_where_hits_can_end(demo: IndexedModel) -> None:
    engine = engine_of(plain_plan())
    hybrid = target_of(engine, demo, "/run/e.sock")
    assert (hybrid.checkpoints, hybrid.checkpoint_step) == (True, None)
    assert not target_of(engine, None, "/run/e.sock").checkpoints, "nothing is known of its files"
    assert isinstance(demo.info, GgufInfo)
    dense = IndexedModel(demo.file, replace(demo.info, ssm={}))
    assert not target_of(engine, dense, "/run/e.sock").checkpoints
    windowed = IndexedModel(demo.file, replace(demo.info, ssm={}, sliding_window=1024))
    assert target_of(engine, windowed, "/run/e.sock").checkpoints, "what lies before the window is forgotten"
    told = engine.model_copy(update={"readings": Readings(at=1, kv_block=768)})
    assert target_of(told, demo, "/run/e.sock").checkpoint_step == 768
