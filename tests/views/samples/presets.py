"""Presets, their verdicts and details for view tests, like those that a host sends."""

from typing import Any

from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import (
    Card,
    Evidence,
    ModelEntry,
    Needs,
    NotFor,
    PresetEngine,
    PresetEntry,
    PresetStatus,
    ProfileEntry,
    Source,
    Task,
    Variant,
    Workload,
)
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.launch.fit import Verdict
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.patches import PatchChoice
from engine_host.protocol.presets import (
    EntryOrigin,
    PresetDetail,
    PresetItem,
    PresetPage,
    PresetVerdict,
    PresetVerdicts,
    ResolvedPreset,
)

GIB = 2**30


def card(**changes: Any) -> Card:
    """A card of a preset that others measured."""
    return Card(
        status=PresetStatus.REPORTED,
        caveats=("This project has not run it with real weights.",),
        audience="owners of one 24 GB card",
        good_for=(Workload.CHAT, Workload.CODING),
        do_not_use=(
            NotFor(when="tool results are long", because="a cliff at 50,000 tokens", instead="demo-llamacpp"),
        ),
        evidence=(
            Evidence(
                metric="tokens a second of one stream, prose",
                value=70.7,
                unit="tok/s",
                machine="1 x RTX 3090",
                pin="vLLM 0.24.0",
                by="others",
                source="https://github.com/noonghunna/club-3090, baselines.yml",
                conditions="prose",
            ),
        ),
        fallback="demo-llamacpp",
    ).model_copy(update=changes)


def preset(name: str, **changes: Any) -> PresetEntry:
    """A preset of vLLM."""
    return PresetEntry(
        format=1,
        id=name,
        title=name.replace("-", " ").capitalize(),
        summary="Weights in 4 bits and a small KV cache.",
        model="big",
        variant="int4",
        engine=PresetEngine.VLLM,
        profile="latency",
        needs=Needs(gpus=1, vram_gib=24, sm="8.0"),
        card=card(),
    ).model_copy(update=changes)


def item(name: str, **changes: Any) -> PresetItem:
    """A preset in the list; what is not of the list goes into the preset."""
    own: dict[str, Any] = {
        key: changes.pop(key) for key in ("origin", "startable", "digest") if key in changes
    }
    return PresetItem(
        preset=preset(name, **changes),
        origin=EntryOrigin.PROGRAM,
        file=f"presets/presets/{name}.yaml",
        digest="d1",
        model_title="Big 27B",
        family="big",
        tasks=(Task.CHAT, Task.TOOLS),
        size=16 * GIB,
        startable=True,
    ).model_copy(update=own)


def presets() -> PresetPage:
    """The demo, two that differ in status, one of the person's own, and one that is not started from here."""
    verified = card(
        status=PresetStatus.VERIFIED,
        caveats=(),
        do_not_use=(),
        fallback=None,
        good_for=(Workload.TRYING_OUT,),
    )
    listed = (
        item("big-24"),
        item("big-long", card=card(status=PresetStatus.EXPERIMENTAL, good_for=(Workload.LONG_CONTEXT,))),
        item("demo-llamacpp", engine=PresetEngine.LLAMA_CPP, needs=Needs(gpus=0), card=verified),
        item("my-27b", origin=EntryOrigin.USER),
        item("on-sglang", engine=PresetEngine.SGLANG, startable=False),
    )
    return PresetPage(seq=0, presets=listed)


def missing() -> Finding:
    """Weights that have to be fetched first."""
    return Finding(
        id="model.missing",
        severity=Severity.ERROR,
        message="The weights of Big 27B are not on this machine.",
        reason=Reason.MODEL_FILE_MISSING,
        fix=Fix(text="Download them.", command="sndr models download example/big-int4 --choice safetensors"),
    )


def verdicts() -> PresetVerdicts:
    """The demo works best; the others nearly, not at all, or for no known reason."""

    def one(name: str, verdict: Verdict, **more: Any) -> PresetVerdict:
        return PresetVerdict(preset=name, verdict=verdict, **more)

    return PresetVerdicts(
        hardware="1 x RTX 3090",
        verdicts=(
            one("demo-llamacpp", Verdict.FITS, needed=GIB, room=20 * GIB, largest_context=8192),
            one("my-27b", Verdict.FITS, needed=18 * GIB, room=21 * GIB, largest_context=65_536, decode=48.5),
            one("big-24", Verdict.TIGHT, why="Little is left.", decode=41.0, missing=(missing(),)),
            one("big-long", Verdict.DOES_NOT_FIT, reason=Reason.OUT_OF_MEMORY, why="3 GiB are missing."),
            one(
                "on-sglang", Verdict.CANNOT_RUN, reason=Reason.UNSUPPORTED, why="SGLang is not started here."
            ),
        ),
    )


def model() -> ModelEntry:
    """A model of the catalogue."""
    return ModelEntry(
        format=1,
        id="big",
        title="Big 27B",
        family="big",
        publisher="Example",
        licence="Apache-2.0",
        tasks=(Task.CHAT, Task.TOOLS),
        modalities=("text",),
        context=262_144,
        parameters=27_000_000_000,
        mtp_layers=1,
        variants=(
            Variant(id="int4", format="safetensors", quantization="AutoRound", repository="example/big-int4"),
        ),
        sources=(Source(about="everything", address="https://example.org"),),
    )


def detail(name: str) -> PresetDetail:
    """One preset with its model and profile."""
    found = next(entry for entry in presets().presets if entry.preset.id == name)
    return PresetDetail(
        seq=0,
        item=found,
        text="format: 1\n",
        model=model(),
        profile=ProfileEntry(
            format=1, id="latency", title="Latency", summary="One user at a time.", good_for=(Workload.CHAT,)
        ),
        resolved=ResolvedPreset(
            preset=found.preset,
            model=model(),
            engine=found.preset.engine,
            settings=(),
            overrides=Overrides(),
            patches=PatchChoice(),
        ),
    )
