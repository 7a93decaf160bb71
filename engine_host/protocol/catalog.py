"""The entries of the catalogue: models, hardware, profiles and presets, as their YAML files say it.

A field that is absent is not known; nothing is guessed. The loader refuses keys that are not here, a reader
of the wire ignores them.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from engine_host.protocol.base import Wire
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.patches import PatchChoice
from engine_host.protocol.text import FileName, Line, Repository, Text

Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")]
Sm = Annotated[str, Field(pattern=r"^\d{1,2}\.\d$", description="compute capability, e.g. 8.6")]


class EntryKind(StrEnum):
    """The kinds of files in the catalogue; each has a folder of that name."""

    ENGINE = "engines"
    HARDWARE = "hardware"
    MODEL = "models"
    PROFILE = "profiles"
    PRESET = "presets"


class PresetEngine(StrEnum):
    """Engines that a preset can be for; this program starts llama.cpp and vLLM."""

    LLAMA_CPP = "llama.cpp"
    VLLM = "vllm"
    SGLANG = "sglang"


class PresetStatus(StrEnum):
    """The trust that a preset deserves; only `verified` may be without caveats."""

    VERIFIED = "verified"
    REPORTED = "reported"
    COMPUTED = "computed"
    EXPERIMENTAL = "experimental"
    PREVIEW = "preview"
    UPSTREAM_GATED = "upstream-gated"
    DEPRECATED = "deprecated"


class Task(StrEnum):
    """A task that a model does."""

    CHAT = "chat"
    TOOLS = "tools"
    REASONING = "reasoning"
    VISION = "vision"
    COMPLETION = "completion"
    INFILL = "infill"
    EMBEDDING = "embedding"
    RERANK = "rerank"


class Workload(StrEnum):
    """A use that a preset or a profile is good for."""

    CHAT = "chat"
    MANY_USERS = "many-users"
    LONG_CONTEXT = "long-context"
    TOOL_AGENT = "tool-agent"
    CODING = "coding"
    EDITOR_COMPLETION = "editor-completion"
    RETRIEVAL = "retrieval"
    TRYING_OUT = "trying-out"


Modality = Literal["text", "image", "audio", "video"]
NumberFormat = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "int8", "int4", "fp8", "fp6", "fp4"]


class Figure(Wire):
    """A number with where it is from; its unit is in the name of its field."""

    value: float = Field(ge=0)
    how: Literal["published", "measured", "reported", "computed"]
    source: Text
    note: str = ""


class Source(Wire):
    """The source of facts of a file; `address` is a page, a repository or a document of this project."""

    about: Text
    address: Text


class Limit(Wire):
    """A setting that a layer cannot go beyond; whoever sets more is in conflict with that layer."""

    setting: Text
    engine: PresetEngine | None = None
    at_most: float | None = None
    at_least: float | None = None
    one_of: tuple[str, ...] | None = None
    none_of: tuple[str, ...] | None = None
    because: Text

    @model_validator(mode="after")
    def _says_something(self) -> "Limit":
        if self.setting not in Overrides.model_fields:
            raise ValueError(f"there is no setting {self.setting}")
        bounds = (self.at_most, self.at_least, self.one_of, self.none_of)
        if all(bound is None for bound in bounds):
            raise ValueError("a limit needs at_most, at_least, one_of or none_of")
        return self


# Settings of a layer: for whichever engine, and for one of them (which wins).
LayerSettings = dict[Literal["any", "llama.cpp", "vllm", "sglang"], Overrides]


class _Entry(Wire):
    format: Literal[1]
    id: Id
    title: Line


class EngineEntry(_Entry):
    """An engine's own defaults; `pin` is the version that they were read from."""

    pin: Text
    settings: Overrides
    limits: tuple[Limit, ...] = ()
    sources: tuple[Source, ...]


class PciE(Wire):
    """The slot that the card is made for."""

    generation: int = Field(ge=1, le=8)
    lanes: int = Field(ge=1, le=16)


class NvLink(Wire):
    """The link between cards: GB/s of one card in both directions together; `most` cards in one link."""

    gb_s: Figure
    most: int = Field(ge=2)


class HardwareEntry(_Entry):
    """One GPU; a machine has `count` of it, one to eight.

    `vram_mib` is what the driver reports where that is known (`how: reported`), else the published size.
    `tflops` are dense, by number format. `nvlink: false` says that it has none, absent that it is not known.
    """

    vendor: Literal["nvidia"]
    architecture: Text
    sm: Sm
    names: tuple[Text, ...] = Field(min_length=1, description="how the driver calls it")
    vram_mib: Figure
    bandwidth_gb_s: Figure
    bandwidth_measured_gb_s: Figure | None = None
    tflops: dict[NumberFormat, Figure] = Field(default_factory=dict)
    pcie: PciE | None = None
    nvlink: NvLink | Literal[False] | None = None
    power_w: Figure | None = None
    formats: tuple[NumberFormat, ...] = Field(min_length=1, description="that its tensor cores multiply")
    settings: LayerSettings = Field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    sources: tuple[Source, ...] = Field(min_length=1)
    notes: tuple[Text, ...] = ()


class WeightFile(Wire):
    """One file of a model; size in bytes."""

    name: FileName
    size: int | None = Field(None, gt=0)
    sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")
    role: Literal["weights", "mmproj", "drafter", "config", "tokenizer", "template"] = "weights"


class Variant(Wire):
    """One set of weights of a model; `bundled` is its place among the files that ship with the program.

    `size_gb` (10^9 bytes) is for weights whose files are not listed with their sizes.
    """

    id: Id
    format: Literal["gguf", "safetensors"]
    quantization: Line
    bits: float | None = Field(None, gt=0, le=64, description="of most weights")
    repository: Repository | None = None
    revision: str | None = Field(None, pattern=r"^[0-9a-f]{40}$")
    bundled: FileName | None = None
    files: tuple[WeightFile, ...] = ()
    size_gb: Figure | None = None
    sm: Sm | None = Field(None, description="least compute capability that runs it")
    mtp: bool | None = Field(None, description="whether the weights of the MTP head are there")
    settings: LayerSettings = Field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    notes: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _is_somewhere(self) -> "Variant":
        if (self.repository is None) is (self.bundled is None):
            raise ValueError("weights have either a repository or a place in the program")
        return self

    @property
    def size(self) -> int | None:
        """Bytes of the weights; None where they are not known."""
        weights = [file.size for file in self.files if file.role == "weights"]
        if weights and all(weights):
            return sum(size or 0 for size in weights)
        return None if self.size_gb is None else round(self.size_gb.value * 10**9)


class Drafter(Wire):
    """A model that drafts for another; `tokens` a step as its maker or a measurement says."""

    id: Id
    method: Text
    repository: Repository | None = None
    size_gb: Figure | None = None
    tokens: int | None = Field(None, ge=1, le=16)
    notes: tuple[Text, ...] = ()


class Sampling(Wire):
    """The sampling that the model's maker recommends."""

    temperature: float | None = Field(None, ge=0)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=0)
    min_p: float | None = Field(None, ge=0, le=1)
    repetition_penalty: float | None = Field(None, gt=0)
    presence_penalty: float | None = None


class ModelEntry(_Entry):
    """A model in all its variants; `shape` is the part of its config.json that says how large things are.

    The keys of `shape` are config.json's own, also below `text_config` and `vision_config`.
    """

    family: Text
    publisher: Text
    licence: Text
    repository: Repository | None = Field(None, description="of the original weights")
    tasks: tuple[Task, ...] = Field(min_length=1)
    modalities: tuple[Modality, ...] = Field(min_length=1)
    context: int = Field(gt=0, description="tokens that it was trained for")
    parameters: int | None = Field(None, gt=0)
    active_parameters: int | None = Field(None, gt=0)
    mtp_layers: int | None = Field(None, ge=0)
    shape: dict[str, JsonValue] = Field(default_factory=dict)
    drafters: tuple[Drafter, ...] = ()
    sampling: Sampling | None = None
    variants: tuple[Variant, ...] = Field(min_length=1)
    settings: LayerSettings = Field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    sources: tuple[Source, ...] = Field(min_length=1)
    notes: tuple[Text, ...] = ()

    def variant(self, variant_id: str) -> Variant | None:
        """The weights of that id."""
        return next((one for one in self.variants if one.id == variant_id), None)


class ProfileEntry(_Entry):
    """A way of running whichever model."""

    summary: Text
    good_for: tuple[Workload, ...] = Field(min_length=1)
    settings: LayerSettings = Field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    notes: tuple[Text, ...] = ()


class Needs(Wire):
    """The least that a preset runs on; `gpus` 0 is a processor. `known_good`: hardware with evidence."""

    gpus: int = Field(ge=0, le=8)
    vram_gib: float | None = Field(None, gt=0, description="of each GPU")
    sm: Sm | None = None
    formats: tuple[NumberFormat, ...] = ()
    ram_gib: float | None = Field(None, gt=0)
    nvlink: bool = False
    known_good: tuple[Id, ...] = ()

    @property
    def short(self) -> str:
        """The devices in a column of a table: `2 × 24 GiB`, or `CPU`."""
        if not self.gpus:
            return "CPU"
        return f"{self.gpus}" + (f" × {self.vram_gib:g} GiB" if self.vram_gib else "")

    @property
    def devices(self) -> str:
        """The devices in a sentence: `2 GPUs of 24 GiB`, `a GPU`, `a CPU`."""
        if not self.gpus:
            return "a CPU"
        many = "a GPU" if self.gpus == 1 else f"{self.gpus} GPUs"
        return f"{many} of {self.vram_gib:g} GiB" if self.vram_gib else many

    @property
    def words(self) -> str:
        """Everything that is needed, in a line."""
        parts = (
            self.devices,
            f"compute capability {self.sm}" if self.sm else "",
            f"{', '.join(self.formats)} in its tensor cores" if self.formats else "",
            f"{self.ram_gib:g} GiB of RAM" if self.ram_gib else "",
            "NVLink" if self.nvlink else "",
        )
        return ", ".join(part for part in parts if part)


class NotFor(Wire):
    """A use that a preset must not be put to."""

    when: Text
    because: Text
    instead: Id | None = None


class Evidence(Wire):
    """One measurement that a preset stands on; `by` says whether this project or somebody else made it.

    A rate of decoding also says in ids and numbers what it was measured with: `hardware` of the catalogue,
    how many of it, and the streams that ran together. Only such a figure is shown beside a ceiling.
    """

    metric: Text
    value: float | None = None
    unit: str = ""
    machine: Text
    hardware: Id | None = None
    count: int | None = Field(None, ge=1, le=8)
    streams: int | None = Field(None, ge=1)
    pin: Text
    by: Literal["us", "others"]
    source: Text
    conditions: str = ""


class Card(Wire):
    """The card that a person reads before choosing a preset."""

    status: PresetStatus
    caveats: tuple[Text, ...] = ()
    audience: Text
    good_for: tuple[Workload, ...] = Field(min_length=1)
    do_not_use: tuple[NotFor, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    fallback: Id | None = None


class PresetEntry(_Entry):
    """A model, its weights, an engine, a profile and what they need, with a card."""

    summary: Text
    model: Id
    variant: Id
    engine: PresetEngine
    profile: Id
    drafter: Id | None = None
    needs: Needs
    settings: Overrides = Overrides.model_construct()
    limits: tuple[Limit, ...] = ()
    patches: PatchChoice = PatchChoice.model_construct()
    card: Card


class PresetVariation(_Entry):
    """A person's changes to a preset: what is absent is as in the preset that it extends."""

    extends: Id
    summary: Text | None = None
    variant: Id | None = None
    profile: Id | None = None
    settings: Overrides = Overrides.model_construct()
    patches: PatchChoice | None = None
    notes: tuple[Text, ...] = ()
