"""What the overlay does in a process, in real Python processes with a FAKE vllm of a few lines.

The real vLLM takes eight seconds to import, and can't be made to have each of these faults.
"""

import os
import sys
import threading
from pathlib import Path

import pytest

from tests.unit.overlay.fake_vllm import FakeVllm, hook, rebind, text

SCHEDULER = "vllm.scheduler"
LIMIT = text(SCHEDULER, "LIMIT = 10", "LIMIT = 20")
SCHEDULE = rebind(SCHEDULER, "schedule", "(request, *, streams = ...)")
PLUS_100 = """
def replacement(original):
    def patched(request, *, streams=1):
        return original(request) + 100
    return patched
"""
PRINT = "from vllm.scheduler import schedule; print(schedule(1))"


def test_a_text_edit_takes_effect_and_says_where_it_stands(vllm: FakeVllm) -> None:
    vllm.patch("limit", LIMIT)
    ran = vllm.run(
        """
        import inspect, linecache, traceback
        from vllm import scheduler
        print(scheduler.schedule(1))
        print(scheduler.__file__ == scheduler.schedule.__code__.co_filename)
        print("LIMIT = 20" in inspect.getsource(scheduler), inspect.getsource(scheduler.schedule)[:12])
        print(linecache.getline(scheduler.__file__, 1).strip())
        print(scheduler.__sndr_origin__)
        print(scheduler.__name__, scheduler.__package__, scheduler.Scheduler.__module__)
        try:
            scheduler.schedule(None)
        except TypeError:
            print("return request + LIMIT" in traceback.format_exc())
        """
    )
    lines = ran.stdout.splitlines()
    assert lines[:4] == ["21", "True", "True def schedule", "LIMIT = 20"]
    original = vllm.packages / "vllm" / "scheduler.py"
    assert lines[4] == str(original)
    assert lines[5] == "vllm.scheduler vllm vllm.scheduler"
    assert lines[6] == "True"
    assert "LIMIT = 10" in original.read_text()
    assert ran.settled("limit") == ("applied", None)
    (result,) = [line for line in ran.ledger if line["event"] == "result"]
    assert (result["op"], result["target"]) == ("text", SCHEDULER)
    assert len(result["before"]) == len(result["after"]) == 64
    assert result["before"] != result["after"]
    assert ran.ledger[0]["event"] == "start"
    assert ran.ledger[0]["vllm"] == "0.32.0"


def test_a_module_that_makes_paths_of_its_file_finds_its_package(vllm: FakeVllm) -> None:
    vllm.write(
        "data",
        """
        import os, json
        HERE = os.path.dirname(__file__)
        LIMIT = 10

        def later():
            return f"{__file__} {os.path.basename(json.__file__)} {getattr(json, '__file__')[-2:]}"
        """,
    )
    vllm.patch("limit", text("vllm.data", "LIMIT = 10", "LIMIT = 20"))
    ran = vllm.run("from vllm import data; print(data.LIMIT, data.HERE, data.later())")
    place = vllm.packages / "vllm"
    assert ran.stdout == f"20 {place} {place / 'data.py'} __init__.py py\n"
    assert ran.settled("limit") == ("applied", None)


def test_two_patches_edit_one_module_in_order(vllm: FakeVllm) -> None:
    vllm.patch("one", LIMIT)
    vllm.patch("two", text(SCHEDULER, "LIMIT = 20", "LIMIT = 30"), requires=["one"])
    ran = vllm.run(PRINT)
    assert ran.stdout == "31\n"
    assert ran.settled("one") == ran.settled("two") == ("applied", None)


def test_a_package_is_edited(vllm: FakeVllm) -> None:
    vllm.patch("rank", text("vllm.worker", "RANK = 0", "RANK = 5"))
    vllm.write("worker/gpu", "from . import RANK")
    ran = vllm.run("import vllm.worker.gpu as gpu; print(gpu.RANK)")
    assert ran.stdout == "5\n"


REFUSED = {
    "anchor_missing": text(SCHEDULER, "LIMIT = 11", "x"),
    "anchor_ambiguous": text(SCHEDULER, "LIMIT", "x"),
    "module_missing": text("vllm.gone", "a", "b"),
    "out_of_range": LIMIT.replace("[[text]]", "[[text]]\nvllm = '<0.30'"),
    "upstream_merged": f'{LIMIT}[upstream_merged]\nmodule = "{SCHEDULER}"\ntext = "LIMIT"\n',
}


@pytest.mark.parametrize(("reason", "operations"), REFUSED.items())
def test_a_patch_that_does_not_fit_is_skipped_whole(vllm: FakeVllm, reason: str, operations: str) -> None:
    other = "" if reason == "out_of_range" else text("vllm.sampler", "TEMPERATURE = 1", "TEMPERATURE = 2")
    vllm.patch("wrong", other + operations)
    vllm.patch("needs", text("vllm.worker", "RANK = 0", "RANK = 5"), requires=["wrong"])
    vllm.patch("right", text(SCHEDULER, "tokens * 2", "tokens * 3"))
    ran = vllm.run(
        """
        from vllm import sampler, scheduler, worker
        print(sampler.TEMPERATURE, worker.RANK, scheduler.LIMIT, scheduler.Scheduler().step(1))
        """
    )
    assert ran.stdout == "1 0 10 3\n"
    assert ran.settled("wrong") == ("skipped", reason)
    assert ran.settled("needs") == ("skipped", "requirement_skipped")
    assert ran.settled("right") == ("applied", None)


def test_a_source_that_cannot_be_read_skips_only_its_patches(vllm: FakeVllm) -> None:
    vllm.write("odd", "").write_bytes(b"# \xff\xfe\n")
    vllm.patch("odd", text("vllm.odd", "a", "b"))
    vllm.patch("limit", LIMIT)
    ran = vllm.run(PRINT)
    assert ran.stdout == "21\n"
    assert ran.settled("odd") == ("skipped", "module_missing")


def test_a_missing_module_of_a_rebind(vllm: FakeVllm) -> None:
    vllm.patch("gone", rebind("vllm.gone", "f", "()"))
    assert vllm.run("import vllm").settled("gone") == ("skipped", "module_missing")


def test_an_edit_that_raises_gives_the_module_as_it_was(vllm: FakeVllm) -> None:
    vllm.patch("bad", text(SCHEDULER, "LIMIT = 10", "LIMIT = 1 / 0"))
    vllm.patch("needs", text("vllm.worker", "RANK = 0", "RANK = 5"), requires=["bad"])
    ran = vllm.run(
        """
        import inspect
        from vllm import scheduler, worker
        print(scheduler.schedule(1), worker.RANK, hasattr(scheduler, "__sndr_origin__"))
        print(scheduler.__file__ == scheduler.__spec__.origin == scheduler.schedule.__code__.co_filename)
        print("LIMIT = 10" in inspect.getsource(scheduler))
        """
    )
    assert ran.stdout.splitlines() == ["11 0 False", "True", "True"]
    assert ran.settled("bad") == ("failed", "raised")
    assert "ZeroDivisionError" in next(line for line in ran.ledger if line["event"] == "result")["detail"]
    assert ran.settled("needs") == ("skipped", "requirement_skipped")


def test_what_is_left_of_a_patch_that_fell_does_not_enter_later_modules(vllm: FakeVllm) -> None:
    vllm.patch(
        "half", text(SCHEDULER, "LIMIT = 10", "LIMIT = ]") + text("vllm.worker", "RANK = 0", "RANK = 5")
    )
    vllm.patch("other", text("vllm.worker", "RANK = 5", "RANK = 6"))
    vllm.patch("third", text("vllm.triton_utils.dispatcher", "KERNELS = {}", "KERNELS = {1: 2}"))
    ran = vllm.run(
        """
        from vllm import scheduler, worker
        from vllm.triton_utils.dispatcher import KERNELS
        print(worker.RANK, KERNELS)
        """
    )
    assert ran.stdout == "0 {1: 2}\n"
    assert ran.settled("half") == ("failed", "raised")
    assert ran.settled("other") == ("skipped", "anchor_missing")
    assert ran.settled("third") == ("applied", None)


def test_a_syntax_error_in_an_edit(vllm: FakeVllm) -> None:
    vllm.patch("bad", text(SCHEDULER, "LIMIT = 10", "LIMIT = ]"))
    ran = vllm.run(PRINT)
    assert ran.stdout == "11\n"
    assert ran.settled("bad") == ("failed", "raised")


def test_a_module_that_fails_by_itself_fails_as_without_the_overlay(vllm: FakeVllm) -> None:
    vllm.write("optional", "WIDTH = 1\nimport not_installed\n")
    vllm.patch("wide", text("vllm.optional", "WIDTH = 1", "WIDTH = 2"))
    ran = vllm.run(
        """
        try:
            import vllm.optional
        except ModuleNotFoundError as error:
            print(error.name)
        import sys
        print("vllm.optional" in sys.modules)
        """
    )
    assert ran.stdout == "not_installed\nFalse\n"


def test_a_shadow_folder_that_cannot_be_written(vllm: FakeVllm) -> None:
    vllm.patch("limit", LIMIT + text("vllm.worker", "RANK = 0", "RANK = 5"))
    blocked = vllm.root / "file"
    blocked.write_text("not a folder")
    ran = vllm.run(
        "from vllm import scheduler, worker; print(scheduler.LIMIT, worker.RANK)",
        environment=vllm.environment(SNDR_OVERLAY_SHADOW=str(blocked)),
    )
    assert ran.stdout == "10 0\n"
    assert ran.settled("limit") == ("failed", "shadow_unwritable")


def test_modules_that_were_there_before_are_too_late_for_text_not_for_rebinds(vllm: FakeVllm) -> None:
    vllm.patch("limit", LIMIT + text("vllm.worker", "RANK = 0", "RANK = 5"))
    vllm.patch("needs", text("vllm.sampler", "TEMPERATURE = 1", "TEMPERATURE = 2"), requires=["limit"])
    vllm.patch("bound", SCHEDULE, PLUS_100)
    variables = vllm.environment()
    bundle = variables.pop("SNDR_OVERLAY")
    ran = vllm.run(
        f"""
        import sys
        from vllm import scheduler
        del sys.modules["vllm"]
        sys.path.insert(0, {bundle!r})
        import sndr_overlay.start
        from vllm import sampler, worker
        print(scheduler.schedule(1), worker.RANK, sampler.TEMPERATURE)
        """,
        environment=variables,
    )
    assert ran.stdout == "111 0 1\n"
    assert ran.settled("limit") == ("skipped", "too_late")
    assert ran.settled("needs") == ("skipped", "requirement_skipped")
    assert ran.settled("bound") == ("applied", None)


WRAP = """
import functools
def replacement(original):
    @functools.wraps(original)
    def patched(*args, **kwargs):
        return "patched", original(*args, **kwargs)
    return patched
"""
REBINDS = {
    "function": (SCHEDULER, "schedule", "(request, *, streams = ...)", "scheduler.schedule(1)", 11),
    "method": (SCHEDULER, "Scheduler.step", "(self, tokens)", "scheduler.Scheduler().step(2)", 4),
    "classmethod": (
        SCHEDULER,
        "Scheduler.named",
        "(cls, name)",
        "scheduler.Scheduler.named('a')",
        "Scheduler a",
    ),
    "staticmethod": (SCHEDULER, "Scheduler.plus", "(a, b = ...)", "scheduler.Scheduler().plus(1)", 2),
    "property": (SCHEDULER, "Scheduler.size", "(self)", "scheduler.Scheduler().size", 3),
    "decorated": ("vllm.sampler", "sample", "(logits, k = ...)", "sampler.sample(1)", 2),
}


@pytest.mark.parametrize("kind", REBINDS)
def test_rebinds_keep_the_kind_of_what_they_replace(vllm: FakeVllm, kind: str) -> None:
    module, target, signature, call, plain = REBINDS[kind]
    vllm.patch("bound", rebind(module, target, signature), WRAP)
    ran = vllm.run(f"from vllm import sampler, scheduler; print({call})")
    assert ran.stdout == f"{('patched', plain)}\n"
    assert ran.results("bound") == [("rebind", f"{module}:{target}", "applied", None)]
    assert ran.settled("bound") == ("applied", None)


REFUSED_REBINDS = {
    "signature_changed": (rebind(SCHEDULER, "schedule", "(request)"), PLUS_100, "skipped"),
    "target_missing": (rebind(SCHEDULER, "Gone.schedule", "(request)"), PLUS_100, "skipped"),
    "raised": (SCHEDULE, "def replacement(original):\n    raise SystemError('no')", "failed"),
}


@pytest.mark.parametrize("reason", REFUSED_REBINDS)
def test_a_rebind_that_does_not_fit_takes_the_patch_back(vllm: FakeVllm, reason: str) -> None:
    operation, code, outcome = REFUSED_REBINDS[reason]
    first = rebind(SCHEDULER, "Scheduler.step", "(self, tokens)", "patch:first")
    code += "\ndef first(original):\n    return lambda self, tokens: 'ours'\n"
    vllm.patch("bound", first + operation, code)
    vllm.patch("needs", rebind("vllm.sampler", "sample", "(logits, k = ...)"), WRAP, requires=["bound"])
    ran = vllm.run(
        """
        from vllm import sampler, scheduler
        print(scheduler.Scheduler().step(2), scheduler.schedule(1), sampler.sample(1))
        """
    )
    assert ran.stdout == "4 11 2\n"
    assert ran.settled("bound") == (outcome, reason)
    assert ran.results("bound")[-1][2:] == ("reverted", reason)
    assert ran.settled("needs") == ("skipped", "requirement_skipped")


def test_what_was_put_over_a_patch_that_falls_falls_with_it(vllm: FakeVllm) -> None:
    late = rebind("vllm.sampler", "sample", "(other)")
    vllm.patch("below", SCHEDULE + late, WRAP)
    vllm.patch("over", SCHEDULE, WRAP)
    ran = vllm.run(
        """
        from vllm import scheduler
        print(scheduler.schedule(1))
        from vllm import sampler
        print(scheduler.schedule(1))
        """
    )
    assert ran.stdout.splitlines() == ["('patched', ('patched', 11))", "11"]
    assert ran.settled("below") == ("skipped", "signature_changed")
    assert ran.settled("over") == ("skipped", "requirement_skipped")
    assert ran.results("over")[-1][2] == "reverted"


@pytest.mark.parametrize(
    "code",
    [
        "import not_installed",
        "def replacement(original):\n    return 3",
        "other = 1",
        "def replacement(:",
    ],
)
def test_code_of_a_patch_that_is_broken_is_its_own_failure(vllm: FakeVllm, code: str) -> None:
    vllm.patch("bound", SCHEDULE, code)
    ran = vllm.run(PRINT)
    assert ran.stdout == "11\n"
    assert ran.settled("bound") == ("failed", "raised")


@pytest.mark.parametrize("damage", ["", "{", '{"patches": 3}', None])
def test_a_damaged_bundle_never_stops_the_engine(vllm: FakeVllm, damage: str | None) -> None:
    vllm.patch("limit", LIMIT)
    variables = vllm.environment()
    manifest = vllm.bundle().folder / "manifest.json"
    if damage is None:
        manifest.unlink()
    else:
        manifest.write_text(damage)
    ran = vllm.run(PRINT, environment=variables)
    assert ran.stdout == "11\n"
    assert "vllm is imported unpatched" in ran.stderr


def test_a_ledger_that_cannot_be_written_changes_nothing(vllm: FakeVllm) -> None:
    vllm.patch("limit", LIMIT)
    ran = vllm.run(PRINT, environment=vllm.environment(SNDR_OVERLAY_LEDGER=str(vllm.root / "gone")))
    assert ran.stdout == "21\n"
    assert ran.stderr == ""


def test_without_vllm_nothing_is_imported_and_nothing_is_written(vllm: FakeVllm) -> None:
    vllm.patch("limit", LIMIT)
    ran = vllm.run(
        """
        import sys, json, email
        print(sorted(name for name in sys.modules if name.startswith("sndr_overlay")))
        """
    )
    assert ran.stdout.strip() == str(
        ["sndr_overlay", "sndr_overlay.finder", "sndr_overlay.start", "sndr_overlay.targets"]
    )
    assert ran.ledger == ()


def test_threads_that_import_at_once_all_get_their_edits(vllm: FakeVllm) -> None:
    names = [f"part{number}" for number in range(24)]
    for name in names:
        vllm.write(name, "import time\ntime.sleep(0.001)\nVALUE = 1\n")
        vllm.patch(name, text(f"vllm.{name}", "VALUE = 1", "VALUE = 2"))
    ran = vllm.run(
        f"""
        import importlib, threading, vllm
        found = []
        def read(name):
            found.append(importlib.import_module("vllm." + name).VALUE)
        threads = [threading.Thread(target=read, args=(name,)) for name in {names!r}]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(sum(found))
        """
    )
    assert ran.stdout == "48\n"


HOOKS = """
def register():
    import vllm.scheduler
    vllm.scheduler.HOOKED = True

def broken():
    raise LookupError("no")

def kernels():
    return {"vllm.worker.kernel": len}

class Header:
    def __init__(self, app):
        self.app = app

class Routes:
    required_tasks = None
"""
PLUGINS = """
from importlib.metadata import entry_points
import vllm, vllm.scheduler, vllm.triton_utils.dispatcher as dispatcher
for found in entry_points(group="vllm.general_plugins"):
    found.load()()
print(hasattr(vllm.scheduler, "HOOKED"), sorted(dispatcher.KERNELS))
for found in entry_points(group="vllm.endpoint_plugins"):
    try:
        print(found.name, found.load().__name__)
    except Exception as error:
        print(found.name, type(error).__name__)
"""


def test_hooks_are_found_by_the_entry_points_of_the_bundle(vllm: FakeVllm) -> None:
    vllm.patch("first", hook("general_plugins", "patch:register"), HOOKS)
    vllm.patch("bad", hook("general_plugins", "patch:broken"), HOOKS)
    vllm.patch("fast", hook("kernels", "patch:kernels"), HOOKS)
    vllm.patch("doors", hook("endpoint_plugins", "patch:Routes"), HOOKS)
    vllm.patch("shut", hook("endpoint_plugins", "patch:Gone"), HOOKS)
    bundle = vllm.bundle()
    assert bundle.plugins == ("sndr-doors", "sndr-shut")
    assert vllm.environment()["VLLM_PLUGINS"] == "sndr,sndr-doors,sndr-shut"
    ran = vllm.run(PLUGINS)
    assert ran.stdout.splitlines() == [
        "True ['vllm.worker.kernel']",
        "sndr-doors Routes",
        "sndr-shut AttributeError",
    ]
    assert ran.settled("first") == ran.settled("fast") == ran.settled("doors") == ("applied", None)
    assert ran.settled("bad") == ran.settled("shut") == ("failed", "raised")
    assert ran.results("fast") == [("hook", "kernels:patch:kernels", "applied", None)]


def test_hooks_of_a_patch_that_was_skipped_are_not_called(vllm: FakeVllm) -> None:
    drifted = text(SCHEDULER, "LIMIT = 11", "x")
    vllm.patch("first", hook("general_plugins", "patch:register") + drifted, HOOKS)
    vllm.patch("doors", hook("endpoint_plugins", "patch:Routes") + drifted, HOOKS)
    ran = vllm.run(PLUGINS)
    assert ran.stdout.splitlines() == ["False []", "sndr-doors RefusedError"]
    assert ran.results("first") == []


MIDDLEWARE = """
import importlib, sys, vllm
for name in sys.argv[1:]:
    module, _, last = name.rpartition(".")
    print(getattr(importlib.import_module(module), last).__name__)
"""


def test_middleware_is_found_by_name_and_passes_through_where_it_is_not_in_force(vllm: FakeVllm) -> None:
    vllm.patch("header", hook("middleware", "patch:Header"), HOOKS)
    vllm.patch("gone", hook("middleware", "patch:Nothing"), HOOKS)
    vllm.patch("drifted", hook("middleware", "patch:Header") + text(SCHEDULER, "LIMIT = 11", "x"), HOOKS)
    names = vllm.bundle().middleware
    assert len(names) == 3
    ran = vllm.run(MIDDLEWARE, *names)
    assert ran.stdout.splitlines() == ["Header", "PassThrough", "PassThrough"]
    assert ran.settled("header") == ("applied", None)
    assert ran.settled("gone") == ("failed", "raised")


def test_shadow_files_are_named_by_content_and_shared(vllm: FakeVllm) -> None:
    vllm.patch("limit", LIMIT)
    script = "from vllm import scheduler; print(scheduler.__file__)"
    first, second = vllm.run(script).stdout, vllm.run(script).stdout
    assert first == second
    folders = list((vllm.root / "cache" / "overlay" / "shadow").iterdir())
    assert len(folders) == 1
    os.utime(folders[0], (0, 0))
    vllm.run(script)
    assert folders[0].stat().st_mtime > 1e9, "a use counts, or the host would remove it"


def test_the_interpreter_of_this_test_is_not_touched(tmp_path: Path) -> None:
    assert not any(type(finder).__name__ == "SndrOverlayFinder" for finder in sys.meta_path)
    assert not any(thread.name == "sndr-probe" for thread in threading.enumerate())
