"""Models known on this machine: GGUF files and checkpoint folders."""

from enum import StrEnum

from pydantic import Field

from engine_host.protocol.base import Page, Wire
from engine_host.protocol.errors import Problem


class ModelOrigin(StrEnum):
    """The place where a model file was found."""

    BUNDLED = "bundled"
    FOLDER = "folder"
    OTHER_PROGRAM = "other_program"


class ModelFile(Wire):
    """A model that can be started, or the problem that stops it; sizes in bytes, context in tokens."""

    id: str
    name: str
    path: str
    origin: ModelOrigin
    found_in: str
    size: int
    format: str = Field(description="GGUF, safetensors, or shape (a config without weights)")
    architecture: str | None = None
    quantization: str | None = None
    parameters: int | None = None
    context: int | None = None
    mtp_layers: int = 0
    head_dim: int | None = None
    embedding_only: bool = False
    chat_template: bool = False
    licence: str | None = None
    repository: str | None = Field(None, description="organisation/model on Hugging Face, by its place")
    commit: str | None = None
    companions: tuple[str, ...] = Field((), description="projectors beside it, for images and sound")
    verified: bool | None = Field(
        None, description="its hashes are those of its place in a cache; None: nobody computed or knows them"
    )
    problem: Problem | None = None


class ModelPage(Page):
    """The models found, bundled first, then by name."""

    seq: int
    models: tuple[ModelFile, ...]
    folders: tuple[str, ...]
