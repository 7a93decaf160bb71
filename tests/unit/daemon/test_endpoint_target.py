"""The endpoint promises what the engine says, and not what was asked of it."""

from engine_host.core.package_data import resources
from engine_host.daemon.endpoint_target import target_of
from engine_host.gateway.openai.listing import model_entry
from engine_host.library.gguf import read_gguf
from engine_host.library.index import IndexedModel
from engine_host.protocol.engines import Verification
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


def test_an_engine_stands_for_the_id_of_its_files_too_where_its_preset_calls_the_model_otherwise() -> None:
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
    engine = engine_of(plain_plan(model="the-catalogues", preset="one"))
    named = target_of(engine, IndexedModel(file, read_gguf(path)), "/run/e.sock").stands_for
    assert named == ("one", "the-catalogues", "the-files")
