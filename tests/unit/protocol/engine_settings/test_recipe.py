"""The recipe "How to add a setting" of CONTRIBUTING.md, carried out: a row of the table, and nothing else."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import click
import pytest
from click.testing import CliRunner
from pydantic import BaseModel, Field, ValidationError
from pydantic.fields import FieldInfo

from engine_host.catalog.resolve import resolve
from engine_host.cli.start.options import LaunchOptions, launch_options, overrides_of
from engine_host.core.errors import HostError
from engine_host.engines.vllm.command import Additions, VllmStart, serve
from engine_host.launch.equivalent_command import equivalent_command
from engine_host.protocol import catalog as catalog_types
from engine_host.protocol import presets as preset_types
from engine_host.protocol.catalog import PresetEntry, PresetVariation
from engine_host.protocol.engine_settings import table
from engine_host.protocol.engine_settings.row import VLLM, Argument, EngineSetting, row_of
from engine_host.protocol.engine_settings.table import SETTINGS, Overrides, foreign_to
from engine_host.protocol.launch import plans
from engine_host.protocol.launch.deploy import RenderTarget
from engine_host.protocol.launch.plans import EngineKind, LaunchRequest, Layer
from engine_host.protocol.models import ModelFile, ModelOrigin
from engine_host.protocol.presets import PresetForm
from sndr_gui.models.launch.form import Form
from sndr_gui.models.launch.subject import of_model
from sndr_gui.models.presets.form import fields_of, fits_engine
from tests.unit.deploy.samples import catalog, deployed, wanted_of
from tests.unit.launch.vllm_desk import Desk, after, settings

ROW: Any = Annotated[
    int | None,
    Field(ge=1, le=9),
    EngineSetting(
        "Made-up number",
        "a number that only this test knows",
        default=2,
        why="as good as any",
        vllm=Argument("--made-up", implied=(2,)),
        option="--made-up",
        more=True,
    ),
]


def rebuild() -> None:
    """Let every wire type that holds an `Overrides` have its fields of now."""
    for module in (table, plans, catalog_types, preset_types):
        for one in vars(module).values():
            if isinstance(one, type) and issubclass(one, BaseModel) and one.__module__ == module.__name__:
                one.model_rebuild(force=True)
    catalog.cache_clear()


@pytest.fixture(autouse=True, scope="module")
def made_up() -> Iterator[None]:
    """The table with one row more."""
    info = FieldInfo.from_annotated_attribute(ROW, None)
    Overrides.model_fields["made_up"] = info
    SETTINGS["made_up"] = row_of("made_up", info)
    rebuild()
    yield
    del Overrides.model_fields["made_up"], SETTINGS["made_up"]
    rebuild()


def given(value: int) -> Overrides:
    return Overrides.model_validate({"made_up": value})


def value_of(overrides: Overrides) -> object:
    return overrides.model_dump()["made_up"]


def test_its_bounds_are_checked() -> None:
    assert value_of(given(9)) == 9
    with pytest.raises(ValidationError):
        given(10)


def test_the_command_line_takes_it_and_names_it() -> None:
    assert value_of(overrides_of(("made_up=3",))) == 3
    with pytest.raises(click.UsageError, match=r"made_up cannot be .10.: .*whole number from 1 to 9"):
        overrides_of(("made_up=10",))

    @click.command()
    @launch_options
    def start(options: LaunchOptions) -> None:
        click.echo(value_of(options.request("m").overrides))

    assert CliRunner().invoke(start, ["--made-up", "4"]).output == "4\n"
    assert CliRunner().invoke(start, ["--made-up", "10"]).exit_code == 2
    assert "vLLM: a number" in CliRunner().invoke(start, ["--help"]).output
    assert equivalent_command(LaunchRequest(model="m", overrides=given(3))) == "sndr run m --made-up 3"


def test_launch_offers_it_for_its_engine_and_sends_it() -> None:
    form = Form(values={"made_up": 3})
    (field,) = (one for one in form.fields(EngineKind.VLLM, "cuda") if one.name == "made_up")
    assert (field.caption, field.kind, field.low, field.high) == ("Made-up number", "whole", 1, 9)
    assert "made_up" not in [one.name for one in form.fields(EngineKind.LLAMA_CPP, "")]
    sent = {}
    for kind in ("safetensors", "GGUF"):
        model = ModelFile(
            id="m", name="m", path="/m", origin=ModelOrigin.FOLDER, found_in="/", size=1, format=kind
        )
        sent[kind] = value_of(form.request(of_model(model), "").overrides)
    assert sent == {"safetensors": 3, "GGUF": None}


def test_the_form_of_presets_has_it_and_the_catalogue_takes_it() -> None:
    form = PresetForm(
        preset=PresetEntry.model_json_schema(),
        variation=PresetVariation.model_json_schema(),
        settings=Overrides.model_json_schema(),
    )
    (field,) = (one for one in fields_of(form, None) if one.key == "settings.made_up")
    assert (field.caption, field.kind, field.low, field.high) == ("Made-up number", "whole", 1, 9)
    assert fits_engine(field, "vllm")
    assert not fits_engine(field, "llama.cpp")
    assert "made_up" in foreign_to("llama.cpp")
    resolved = resolve(catalog(), "demo-vllm", overrides=given(3))
    (setting,) = (one for one in resolved.settings if one.name == "made_up")
    assert (setting.value, setting.by.layer) == (3, Layer.OVERRIDE)


def test_a_plan_has_it_with_its_layer_and_its_argument(home: Path) -> None:
    desk = Desk(home)
    plan = desk.plan()
    assert (settings(plan)["made_up"].value, settings(plan)["made_up"].why) == (2, "as good as any")
    assert "--made-up" not in plan.argv, "the engine does so unasked"
    plan = desk.plan(made_up=3)
    assert settings(plan)["made_up"].layer is Layer.OVERRIDE
    assert after(plan, "--made-up") == "3"
    refused = desk.refused(LaunchRequest(model="gguf", overrides=given(3)))
    assert "made_up" in refused.problem.message


def test_a_start_that_is_written_down_has_it_too() -> None:
    spec = wanted_of("demo-vllm")
    spec = replace(spec, values={**spec.values, "made_up": 3})
    words = deployed(spec, RenderTarget.DOCKER).arguments
    assert words[words.index("--made-up") + 1] == "3"
    sglang = wanted_of("qwen3.6-35b-a3b-sglang-4xl4")
    told = deployed(replace(sglang, values={**sglang.values, "made_up": 3}), RenderTarget.DOCKER).findings
    assert "made_up=3" in [one.evidence.get("setting") for one in told]


def test_no_extra_argument_takes_it_over() -> None:
    start = VllmStart("/m", "m", {"extra_arguments": ["--made-up=4"]})
    with pytest.raises(HostError, match="--made-up cannot be an extra argument"):
        serve(start, "cuda", (), "/c", Additions())


def test_every_row_says_how_its_engine_gets_it() -> None:
    """What has neither flag nor words is written by the engine's module: these, and no others."""
    special = {
        name
        for name, row in SETTINGS.items()
        if VLLM in row.arguments and not row.arguments[VLLM].flags and not row.arguments[VLLM].words
    }
    assert special == {
        "allow_wrong_answers",
        "batch_invariant",
        "draft_tokens",
        "extra_arguments",
        "variables",
    }
