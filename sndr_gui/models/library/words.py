"""The words of Library: columns of models, of what a search found and of what can be downloaded."""

from __future__ import annotations

from engine_host.protocol.language import tr
from engine_host.protocol.library import HubChoice, HubModelEntry
from engine_host.protocol.models import ModelFile, ModelOrigin
from sndr_gui.kit import formats
from sndr_gui.kit.rows import Column
from sndr_gui.kit.setting_words import word_of


def mark(model: ModelFile) -> str:
    """Return a few words on a model's hashes."""
    if model.problem is not None:
        return tr("cannot be used")
    if model.origin is ModelOrigin.BUNDLED:
        return tr("as the package")
    return {True: tr("✓ verified"), False: tr("WRONG"), None: tr("UNVERIFIED")}[model.verified]


def _mark_tone(model: ModelFile) -> str:
    if model.problem is not None:
        return "bad"
    if model.origin is ModelOrigin.BUNDLED:
        return "muted"
    return {True: "good", False: "bad", None: "muted"}[model.verified]


def mark_tip(model: ModelFile) -> str:
    """Return the meaning of the mark."""
    if model.problem is not None:
        return model.problem.sentence()
    if model.origin is ModelOrigin.BUNDLED:
        return tr("It is part of the package, which is checked as a whole.")
    return {
        True: tr("Its files were hashed here, and have the SHA-256 that their place in the cache promises."),
        False: tr("Its files have other hashes than their place promises: download it again."),
        None: tr("Nobody has hashed its files yet, or nothing here says what their hashes should be."),
    }[model.verified]


def columns() -> list[Column[ModelFile]]:
    """Return the columns of the models of this machine."""

    def tone(model: ModelFile) -> str:
        return "bad" if model.problem else ""

    return [
        Column(tr("Model"), lambda m: m.name, lambda m: m.name.casefold(), tone, tip=lambda m: m.path),
        Column(tr("Size"), lambda m: formats.size(m.size), lambda m: m.size, right=True),
        Column(tr("Format"), lambda m: m.format),
        Column(tr("Quant"), lambda m: m.quantization or formats.UNMEASURED),
        Column(tr("Lies in"), lambda m: word_of(m.found_in), tip=lambda m: m.path),
        Column(tr("Hashes"), mark, tone=_mark_tone, tip=mark_tip),
    ]


def found_columns() -> list[Column[HubModelEntry]]:
    """Return the columns of what a search found."""

    def forms(one: HubModelEntry) -> str:
        has = (("GGUF", one.gguf), ("safetensors", one.safetensors))
        return ", ".join(form for form, there in has if there) or "–"

    return [
        Column(tr("Model"), lambda one: one.repository, tip=lambda one: one.repository),
        Column(tr("Files"), forms),
        Column(tr("Downloads"), lambda one: formats.count(one.downloads), right=True),
        Column(tr("Updated"), lambda one: one.updated or "–"),
        Column("", lambda one: tr("gated") if one.gated else "", tone=lambda _one: "warn"),
    ]


def choice_columns() -> list[Column[HubChoice]]:
    """Return the columns of what can be downloaded of a repository."""

    def here(one: HubChoice) -> str:
        if one.model is not None:
            return tr("on this machine")
        return tr("{size} here", size=formats.size(one.here)) if one.here else ""

    def hashed(one: HubChoice) -> str:
        return "SHA-256" if all(file.hashed for file in one.files) else tr("no hash: UNVERIFIED")

    return [
        Column(tr("Choice"), lambda one: one.label, tip=lambda one: one.id),
        Column(tr("Size"), lambda one: formats.size(one.size), lambda one: one.size, right=True),
        Column(tr("Format"), lambda one: one.format),
        Column(tr("Files"), lambda one: str(len(one.files)), lambda one: len(one.files), right=True),
        Column(tr("Checked by"), hashed, tone=lambda one: "" if hashed(one) == "SHA-256" else "warn"),
        Column("", here, tone=lambda _one: "good"),
    ]


def belongs(model: ModelFile) -> str:
    """Return whose a model is, in a sentence."""
    if model.origin is ModelOrigin.BUNDLED:
        return tr("It comes with the program.")
    if model.origin is ModelOrigin.OTHER_PROGRAM:
        return tr(
            "It lies in the folder of {found_in}, which other programs use too.",
            found_in=word_of(model.found_in),
        )
    return tr("It lies in {found_in}.", found_in=word_of(model.found_in))
