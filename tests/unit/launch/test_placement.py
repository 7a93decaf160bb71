"""Engines side by side: which go on, which end first, and the memory that this leaves a start."""

from typing import Any

import pytest

from engine_host.launch.placement import (
    FoundMemory,
    Placement,
    found_memory,
    name_taken,
    no_room_beside,
    nothing_to_end,
    place,
    shares_processor,
)
from engine_host.launch.preflight.machine import Holder, MachineState
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.plans import MAIN_MEMORY, DeviceNeed
from engine_host.telemetry.machine import ProcessMemory
from tests.plan_samples import engine_of, plain_plan

GIB = 1 << 30


def engine(name: str, state: EngineState = EngineState.READY, **plan: Any) -> Engine:
    """An engine whose id tells its name; `plan` are fields of its plan."""
    made = plain_plan(**{"name": name, "id": f"plan-{name}", "model_path": f"/models/{name}", **plan})
    return engine_of(made, state, id=f"engine-{name}", pid=100)


def need(size: int, device: str = MAIN_MEMORY) -> dict[str, Any]:
    return {"device": device, "bytes": size * GIB}


A, B = engine("a"), engine("b")


def names(engines: tuple[Engine, ...]) -> list[str]:
    return [one.name for one in engines]


@pytest.mark.parametrize(
    ("name", "instead_of", "ended", "beside"),
    [
        ("c", None, [], ["a", "b"]),
        ("a", None, ["a"], ["b"]),
        ("a", (), [], ["a", "b"]),
        ("c", ("b",), ["b"], ["a"]),
        ("c", ("engine-b", "a"), ["a", "b"], []),
        ("c", ("*",), ["a", "b"], []),
    ],
)
def test_a_start_ends_what_it_names_or_its_own_name(
    name: str, instead_of: tuple[str, ...] | None, ended: list[str], beside: list[str]
) -> None:
    placement = place(name, instead_of, [A, B])
    assert (names(placement.ended), names(placement.beside), placement.absent) == (ended, beside, ())


def test_what_ends_already_is_neither_ended_nor_beside() -> None:
    draining, queued = engine("a", EngineState.DRAINING), engine("q", EngineState.PREPARING)
    assert names(place("a", None, [draining, B]).leaving) == ["a"]
    # A start that waits for its turn will end b.
    queued = engine("q", EngineState.PREPARING, instead_of=[{"id": "engine-b", "name": "b"}])
    placement = place("c", None, [B, queued])
    assert (names(placement.leaving), names(placement.beside)) == (["b"], ["q"])


def test_a_name_that_nothing_has_is_told() -> None:
    placement = place("c", ("lama", "a", "c"), [A])
    (found,) = nothing_to_end(placement)
    assert (found.id, found.evidence) == ("nothing_to_end", {"name": "lama"})


def test_a_name_that_is_taken_gets_a_free_one() -> None:
    placement = place("a", (), [A, engine("a-2")])
    (found,) = name_taken("a", placement, lambda free: f"sndr run m --name {free}")
    assert (found.id, found.reason) == ("name_taken", Reason.CONFLICT)
    assert found.fix is not None
    assert found.fix.command == "sndr run m --name a-3"
    assert not name_taken("c", placement, str)


def test_engines_on_one_processor_are_told_of_each_other() -> None:
    cpu, card = engine("a", needs=[need(1)]), engine("b", needs=[need(1, "GPU-0")])
    placement = Placement(beside=(cpu, card))
    (told,) = shares_processor([DeviceNeed(device=MAIN_MEMORY)], placement)
    assert told.evidence == {"beside": ["a"]}
    assert shares_processor([DeviceNeed(device="GPU-0")], placement) == []
    assert shares_processor([DeviceNeed(device=MAIN_MEMORY)], Placement(beside=(card,))) == []


def found(
    placement: Placement,
    free: int = 10,
    gpus: tuple[Gpu, ...] = (),
    holders: tuple[Holder, ...] = (),
    path: str = "/models/new",
    **held: tuple[int, int],
) -> FoundMemory:
    """The memory of a machine with so many GiB free, whose engines hold GiB, some of them of files."""

    def of(one: Engine) -> ProcessMemory | None:
        resident, of_files = held.get(one.name, (0, 0))
        return ProcessMemory(resident * GIB, of_files * GIB) if resident else None

    return found_memory(placement, path, free * GIB, gpus, MachineState(holders=holders), of)


def test_what_ends_gives_back_all_but_what_was_free_already() -> None:
    assert found(Placement(ended=(A,)), a=(6, 4)).main == 12 * GIB, "mapped files counted as free before"
    assert found(Placement(leaving=(A,)), a=(6, 0)).main == 16 * GIB


def test_what_goes_on_keeps_the_files_that_it_has_mapped() -> None:
    assert found(Placement(beside=(A, B)), a=(5, 4), b=(3, 2)).main == 4 * GIB
    shared = found(Placement(beside=(A,)), path="/models/a", a=(5, 4))
    assert shared.main == 10 * GIB, "who maps the same file shares its pages"


def test_an_engine_that_loads_takes_what_it_still_needs() -> None:
    loading = engine("a", EngineState.STARTING, needs=[need(7)])
    assert found(Placement(beside=(loading,)), a=(3, 0)).main == 6 * GIB
    queued = engine("a", EngineState.PREPARING, needs=[need(7)])
    assert found(Placement(beside=(queued,))).main == 3 * GIB
    ready = engine("a", EngineState.READY, needs=[need(7)])
    assert found(Placement(beside=(ready,)), a=(3, 0)).main == 10 * GIB


def gpu(number: int, used: int = 0) -> Gpu:
    return Gpu(index=number, uuid=f"GPU-{number}", name="T", memory_total=24 * GIB, memory_used=used * GIB)


def test_gpus_are_free_of_what_ends_and_hold_what_loads() -> None:
    cards = (gpu(0, 12), gpu(1, 3))
    holders = (
        Holder(0, 1, "a", 9 * GIB, "engine-a"),
        Holder(1, 2, "b", 2 * GIB, "engine-b"),
        Holder(0, 3, "Xorg", GIB),
    )
    loading = engine("b", EngineState.STARTING, needs=[need(8, "GPU-1")])
    seen = found(Placement(ended=(A,), beside=(loading,)), gpus=cards, holders=holders)
    assert [card.memory_used for card in seen.gpus] == [3 * GIB, 9 * GIB]
    assert [one.name for one in seen.state.holders] == ["b", "Xorg"]
    assert seen.held["engine-b"] == {MAIN_MEMORY: 0, "GPU-0": 0, "GPU-1": 8 * GIB}


def test_where_the_driver_does_not_say_who_holds_what_the_plan_does() -> None:
    planned = engine("a", needs=[need(9, "GPU-0")])
    assert found(Placement(ended=(planned,)), gpus=(gpu(0, 12),)).gpus[0].memory_used == 3 * GIB
    seen = found(Placement(beside=(planned,)), gpus=(gpu(0, 12),))
    assert (seen.gpus[0].memory_used, seen.held["engine-a"]["GPU-0"]) == (12 * GIB, 9 * GIB)
    unknown = engine("a", needs=[{"device": "GPU-0"}])
    assert found(Placement(ended=(unknown,)), gpus=(gpu(0, 12),)).gpus[0].memory_used == 0, "nobody knows"


def lacking(short: dict[str, int], **held: dict[str, int]) -> list[str] | None:
    """The engines that `no_room_beside` would end."""
    placement = Placement(beside=tuple(engine(name) for name in held))
    memory = FoundMemory(0, held={f"engine-{name}": one for name, one in held.items()})
    told = no_room_beside(short, placement, memory, lambda ended: f"sndr run m: {', '.join(ended)}")
    if told is None:
        return None
    assert (told.id, told.reason) == ("no_room_beside", Reason.OUT_OF_MEMORY)
    assert told.fix is not None
    assert told.fix.command == f"sndr run m: {', '.join(told.evidence['instead_of'])}"
    assert told.evidence["missing_by_device"] == short
    assert list(told.evidence["beside"]) == list(held)
    return list(told.evidence["instead_of"])


def test_the_fewest_and_smallest_engines_are_named_whose_end_is_enough() -> None:
    main, card = MAIN_MEMORY, "GPU-0"
    assert lacking({main: 3}, a={main: 9}, b={main: 4}, c={main: 2}) == ["b"]
    assert lacking({main: 12}, a={main: 9}, b={main: 4}, c={main: 2}) == ["a", "b"]
    assert lacking({card: 5}, a={main: 9}, b={card: 6}) == ["b"], "what is elsewhere helps nothing"
    assert lacking({main: 20}, a={main: 9}, b={main: 4}) is None
    assert lacking({main: 1}) is None
    assert lacking({}, a={main: 9}) is None


def test_what_is_missing_is_told_by_device() -> None:
    seen = FoundMemory(4 * GIB, (gpu(0, 20),))
    needs = [DeviceNeed(device=MAIN_MEMORY, bytes=5 * GIB), DeviceNeed(device="GPU-0", bytes=3 * GIB)]
    assert seen.missing(needs) == {MAIN_MEMORY: GIB}
    assert seen.missing([DeviceNeed(device="GPU-0")]) == {}, "not known"
