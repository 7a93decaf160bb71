"""The commands of the palette, besides going to pages."""

from __future__ import annotations

from functools import partial

from engine_host.protocol.engines import EngineState
from engine_host.protocol.presets import EntryOrigin
from sndr_gui.kit.shortcuts import keys
from sndr_gui.models.engine.choice import state_word
from sndr_gui.models.engine.start import SERVING
from sndr_gui.models.hosts.words import THIS_MACHINE, state_here, state_of
from sndr_gui.models.window.palette import Entry
from sndr_gui.views.window.context import PageContext


def commands(context: PageContext) -> list[Entry]:
    """Return what can be done now."""
    return [
        *_hosts(context),
        *_engine(context),
        Entry("New chat", keys("new chat"), context.open_new_chat, "conversation"),
        *_servers(context),
        Entry("Rescan models", "action", context.launch.models.rescan, "scan look for models again"),
        *_presets_to_start(context),
        *_models_to_start(context),
        *_presets_to_edit(context),
    ]


def _engine(context: PageContext) -> list[Entry]:
    """Return what can be done with each engine that runs, and with the chosen one."""
    state, stopping = context.session.state, context.home.stopping
    found = []
    for engine in state.live:
        what = f"engine, {state_word(engine)}"
        found.append(Entry(f"Stop {engine.name}", what, partial(stopping.stop, engine), "end engine"))
        if engine.state in SERVING:
            chat = partial(context.chat_with, engine.id)
            found.append(Entry(f"Chat with {engine.name}", what, chat, "talk ask conversation"))
        show = partial(context.show_engine, engine.id)
        found.append(Entry(f"Show {engine.name}", what, show, "engine open choose numbers"))
    if (chosen := state.engine) is not None:
        found.append(
            Entry(f"Relaunch {chosen.name}", keys("relaunch"), context.home.relaunch, "restart engine")
        )
        if chosen.state is EngineState.FAILED:
            found.append(Entry("Open the failure log", "action", partial(context.open_log, chosen.id)))
    return found


def _hosts(context: PageContext) -> list[Entry]:
    """Return the hosts that the pages can be about, where there is more than this machine."""
    fleet = context.fleet
    found = []
    for name in ("", *fleet.names) if fleet.names else ():
        remote = fleet.remote(name)
        word, _tone = state_of(remote, fleet.known_session(name)) if remote else state_here(fleet.local)
        title = f"Host: {name or THIS_MACHINE.lower()}"
        found.append(Entry(title, f"host, {word}", partial(fleet.choose, name), "machine remote ssh switch"))
    return found


def _servers(context: PageContext) -> list[Entry]:
    found = []
    if context.home.can_build:
        found.append(
            Entry("Build llama.cpp", "action", context.actions.build, "compile faster engine server")
        )
    if context.home.can_measure:
        found.append(Entry("Compare both servers", "action", context.actions.measure, "measure benchmark"))
    return found


def _presets_to_start(context: PageContext) -> list[Entry]:
    """Return the presets that can be started now, and a way to those that lack a download or an engine."""
    found = []
    for row in context.launch.presets.fitting:
        preset = row.item.preset
        words = f"launch run preset {preset.id}"
        if row.ready:
            start = partial(context.actions.start_preset, preset.id)
            found.append(Entry(f"Start {preset.title}", "preset", start, words))
        else:
            show = partial(context.show_preset, preset.id)
            found.append(Entry(f"Show {preset.title}", "preset, not ready", show, f"start {words}"))
    return found


def _models_to_start(context: PageContext) -> list[Entry]:
    page = context.session.state.models
    found = []
    for model in page.models if page else ():
        if model.problem is None and (model.format == "GGUF" or context.installations.resolve("")):
            # Files of one name differ in their format, and those of one format in their quantization.
            kind = " ".join(part for part in (model.format, model.quantization, "model") if part)
            run = partial(context.actions.start_model, model.id)
            found.append(Entry(f"Start {model.name}", kind, run, f"launch run {kind}"))
    return found


def _presets_to_edit(context: PageContext) -> list[Entry]:
    """Return one's own presets, once the page has read them."""
    return [
        Entry(
            f"Edit {item.preset.title}",
            "preset",
            partial(context.open_preset, item.preset.id),
            f"yaml {item.preset.id}",
        )
        for item in context.presets.items
        if item.origin is EntryOrigin.USER
    ]
