"""The commands of the palette, besides going to pages: what can be done now, and what can be gone to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from engine_host.protocol.engines import EngineState
from engine_host.protocol.language import LANGUAGES, tr
from engine_host.protocol.presets import EntryOrigin
from engine_host.protocol.remote.host_command import for_host
from sndr_gui.kit import formats
from sndr_gui.kit.look.level import Level, is_simple
from sndr_gui.kit.shortcuts import keys
from sndr_gui.models.engine.choice import state_word
from sndr_gui.models.engine.start import SERVING
from sndr_gui.models.hosts.words import THIS_MACHINE, state_here, state_of
from sndr_gui.models.settings.entries import Entry as SettingEntry
from sndr_gui.models.settings.look import AT_START, LOOK_ENTRIES, OWN_ENTRIES, WindowEntry
from sndr_gui.models.window.palette import ACTION, Entry
from sndr_gui.views.window.context import PageContext


def commands(context: PageContext) -> list[Entry]:
    """Return what can be done now, and what can be gone to."""
    return [
        *_hosts(context),
        *_engines(context),
        *_demo(context),
        _action(tr("New chat"), context.open_new_chat, "conversation", hint=keys("new chat")),
        *_servers(context),
        _action(tr("Rescan models"), context.launch.models.rescan, "scan look for models again"),
        *_first_run(context),
        *_own_settings(context),
        *_level(context),
        *_presets_to_start(context),
        *_models(context),
        *_presets_to_edit(context),
        *_routes(context),
        *_presets_to_show(context),
        *_settings(context),
        *_patches(context),
    ]


def _action(title: str, run: Callable[[], object], words: str, hint: str = tr("action")) -> Entry:
    return Entry(title, hint, run, words, ACTION)


def _demo(context: PageContext) -> list[Entry]:
    """Return the start that Home offers while no engine runs."""
    if context.home.demo_to_start is None:
        return []
    return [_action(tr("Start the demo model"), context.home.start_demo, "run bundled model first try")]


def _first_run(context: PageContext) -> list[Entry]:
    """Return the way back to the first run, which is about this machine."""
    words = "first run start setup introduction tour benchmark"
    return [] if context.session.host else [_action(tr("Welcome"), context.first_run.wanted.emit, words)]


def _own_settings(context: PageContext) -> list[Entry]:
    """Return each choice of the window's own settings; the one in force says so."""
    model = context.settings
    found = []
    for entry in (*LOOK_ENTRIES, *OWN_ENTRIES):
        for title, value in entry.choices:
            # A language is called as it calls itself.
            said = title if title in LANGUAGES.values() else formats.inside(title)
            now = value == getattr(model.window, entry.name)
            hint = tr("chosen") if now else tr("action")
            run = partial(_choose, context, entry.name, value)
            found.append(_action(f"{entry.label}: {said}", run, f"{entry.words} setting", hint))
    return found


def _choose(context: PageContext, name: str, value: object) -> None:
    context.settings.set_own(name, value)
    if name in AT_START:
        # The page says from when on it holds.
        context.show_setting(name)


def _level(context: PageContext) -> list[Entry]:
    """Return the level that is not in force."""
    other = Level.EXPERT if is_simple() else Level.SIMPLE
    set_it = partial(context.settings.set_level, other)
    title = tr("Expert level") if other is Level.EXPERT else tr("Simple level")
    return [_action(title, set_it, "fewer rows all settings beginner advanced")]


def _engines(context: PageContext) -> list[Entry]:
    """Return what can be done with each engine that runs, and with the chosen one."""
    state, stopping = context.session.state, context.home.stopping
    found = []

    def entry(title: str, verb: str, run: Callable[[], object], words: str) -> Entry:
        # The id changes with each start, and who used it means the name.
        return Entry(title, what, run, words, ACTION, f"{verb} engine {engine.name}")

    for engine in state.live:
        what = tr("engine, {state_word}", state_word=state_word(engine))
        found.append(
            entry(tr("Stop {name}", name=engine.name), "Stop", partial(stopping.stop, engine), "end engine")
        )
        if engine.state in SERVING:
            found.append(
                entry(
                    tr("Chat with {name}", name=engine.name),
                    "Chat with",
                    partial(context.chat_with, engine.id),
                    "talk ask conversation",
                )
            )
        found.append(
            entry(
                tr("Show {name}", name=engine.name),
                "Show",
                partial(context.show_engine, engine.id),
                "engine open choose numbers",
            )
        )
        found.append(
            entry(
                tr("Log of {name}", name=engine.name),
                "Log of",
                partial(context.show_log, engine.id),
                "engine lines output",
            )
        )
    last = context.home.last
    if state.engine is None and last.engine is not None:
        words = "restart relaunch engine last same"
        found.append(Entry(last.label, keys("relaunch"), last.start, words, ACTION, "relaunch"))
    if (chosen := state.engine) is not None:
        relaunch = context.home.relaunch
        found.append(
            Entry(
                tr("Relaunch {name}", name=chosen.name),
                keys("relaunch"),
                relaunch,
                "restart engine",
                ACTION,
                "relaunch",
            )
        )
        if chosen.state is EngineState.FAILED:
            found.append(
                _action(tr("Open the failure log"), partial(context.open_log, chosen.id), "engine died")
            )
    return found


def _hosts(context: PageContext) -> list[Entry]:
    """Return the hosts that the pages can be about, where there is more than this machine."""
    fleet = context.fleet
    found = []
    for name in ("", *fleet.names) if fleet.names else ():
        remote = fleet.remote(name)
        word, _tone = state_of(remote, fleet.known_session(name)) if remote else state_here(fleet.local)
        title, hint = (
            tr("Host: {name}", name=name or formats.inside(THIS_MACHINE)),
            tr("host, {word}", word=word),
        )
        choose = partial(fleet.choose, name)
        found.append(Entry(title, hint, choose, "machine remote ssh switch", key=f"host {name}"))
        if name:
            show = partial(context.show_host, name)
            found.append(
                Entry(tr("Show {name}", name=name), hint, show, "machine remote ssh", key=f"show host {name}")
            )
    return found


def _servers(context: PageContext) -> list[Entry]:
    found = []
    if context.home.can_build:
        found.append(_action(tr("Build llama.cpp"), context.actions.build, "compile faster engine server"))
    title, words = tr("Compare both servers"), f"{tr('Compare')} measure benchmark"
    if context.home.can_measure:
        found.append(_action(title, context.actions.measure, words))
    elif context.home.can_build:
        # Found all the same: it says what is missing, and leads to where that is done.
        lacks = tr("Build the other server first.")
        found.append(_action(title, partial(context.go, "home"), words, lacks))
    return found


def _presets_to_start(context: PageContext) -> list[Entry]:
    """Return the presets that can be started now."""
    return [
        Entry(
            tr("Start {title}", title=preset.title),
            tr("preset"),
            partial(context.actions.start_preset, preset.id),
            f"launch run preset {preset.id}",
            key=f"start preset {preset.id}",
        )
        for preset in (row.item.preset for row in context.launch.presets.fitting if row.ready)
    ]


def _presets_to_show(context: PageContext) -> list[Entry]:
    """Return the way to every preset, also to those that lack something or do not fit."""
    found = []
    for row in context.launch.presets.every:
        preset = row.item.preset
        lacks = (
            "" if row.ready or row.verdict is None else tr("not ready") if row.works else tr("does not fit")
        )
        show = partial(context.show_preset, preset.id)
        words = f"launch start run preset {preset.id}"
        found.append(
            Entry(
                tr("Show {title}", title=preset.title),
                tr("preset, {state_word}", state_word=lacks) if lacks else tr("preset"),
                show,
                words,
                key=f"preset {preset.id}",
            )
        )
    return found


def _models(context: PageContext) -> list[Entry]:
    """Return a start of each model that can be started as it is, and the way to each of the others."""
    page = context.session.state.models
    vllm = context.installations.resolve("")
    found = []
    for model in page.models if page else ():
        # Files of one name differ in their format, and those of one format in their quantization.
        kind = " ".join(part for part in (model.format, model.quantization, "model") if part)
        words = f"launch run {kind}"
        if model.problem is None and (model.format == "GGUF" or vllm):
            run = partial(context.actions.start_model, model.id)
            found.append(
                Entry(tr("Start {name}", name=model.name), kind, run, words, key=f"start model {model.id}")
            )
        else:
            show = partial(context.show_model, model.id)
            found.append(
                Entry(tr("Show {name}", name=model.name), kind, show, words, key=f"model {model.id}")
            )
    return found


def _presets_to_edit(context: PageContext) -> list[Entry]:
    """Return one's own presets, once the page has read them."""
    return [
        Entry(
            tr("Edit {title}", title=item.preset.title),
            tr("preset"),
            partial(context.open_preset, item.preset.id),
            f"yaml {item.preset.id}",
            key=f"edit preset {item.preset.id}",
        )
        for item in context.presets.items
        if item.origin is EntryOrigin.USER
    ]


def _routes(context: PageContext) -> list[Entry]:
    return [
        Entry(
            tr("Route: {name}", name=name),
            tr("route"),
            partial(context.show_route, name),
            "public id",
            key=f"route {name}",
        )
        for name in (status.route.id for status in context.routes.routes)
    ]


def _settings(context: PageContext) -> list[Entry]:
    """Return the way to each setting on its page, the window's own ones too."""
    model = context.settings
    own: list[tuple[WindowEntry | SettingEntry, str, str, str]] = [
        (entry, tr("This window"), f"{entry.words} window", "") for entry in (*LOOK_ENTRIES, *OWN_ENTRIES)
    ]
    kept = [
        (entry, entry.group, entry.name, for_host(model.command(entry.name), context.session.host))
        for entry in model.entries()
    ]
    return [
        Entry(
            tr("Setting: {label}", label=entry.label),
            hint,
            partial(context.show_setting, entry.name),
            f"{words} {entry.help}",
            key=f"setting {entry.name}",
            command=command,
        )
        for entry, hint, words, command in (*own, *kept)
    ]


def _patches(context: PageContext) -> list[Entry]:
    page = context.patches.page
    return [
        Entry(
            tr("Patch: {title}", title=patch.title),
            patch.id,
            partial(context.show_patch, patch.id),
            f"{patch.family} overlay",
            key=f"patch {patch.id}",
        )
        for patch in (page.patches if page else ())
    ]
