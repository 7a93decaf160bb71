"""The parts of this machine: GPUs and the processes that hold them, main memory, installed engines."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject, QTimer, Signal

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.engines import InstallationPage, ServerPage
from engine_host.protocol.host import Gpu, HostInfo
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.engine.installations import InstallationsModel, title_of
from sndr_gui.models.engine.start import SERVER_NAMES
from sndr_gui.models.home.no_gpu import no_gpu_word, told_of_no_gpu

_READ_MS = 15_000


@dataclass(frozen=True)
class MachinePart:
    """One thing of the machine; `share`: how much of it is taken, None where it is nothing to be filled."""

    name: str
    value: str
    hint: str
    share: float | None = None
    is_engine: bool = False

    @property
    def sentence(self) -> str:
        """Everything about it; lines break between two things and not within one."""
        lines = [line for line in self.hint.split("\n") if line]
        if self.share is not None or not lines:
            lines.insert(0, self.value)
        return "  ·  ".join(line.replace(" ", "\u00a0") for line in lines)


def gpu_part(gpu: Gpu, used: float | None, engines: tuple[str, ...]) -> MachinePart:
    """Return one GPU; `used` is the newest measurement, `engines` those of ours that compute on it."""
    taken = used if used is not None else gpu.memory_used
    lines = [
        tr(
            "{size} free of {size_2}",
            size=formats.size(gpu.memory_total - (gpu.memory_reserved or 0) - taken),
            size_2=formats.size(gpu.memory_total),
        )
    ]
    lines += [
        f"{holder.name or tr('a process')} ({holder.pid}): {formats.size(holder.memory)}"
        for holder in gpu.holders
    ]
    if not gpu.holders and taken > 0.02 * gpu.memory_total:
        lines.append(tr("The driver does not report which process uses it."))
    if engines:
        lines.append(tr("Computes here: {engines}.", engines=", ".join(engines)))
    if gpu.compute_capability:
        lines.append(tr("Compute capability {compute_capability}", compute_capability=gpu.compute_capability))
    value = formats.used_of(taken, gpu.memory_total)
    name = gpu.name.removeprefix("NVIDIA ").removeprefix("GeForce ")
    return MachinePart(
        f"{name} #{gpu.index}", value, "\n".join(lines), formats.share_of(taken, gpu.memory_total)
    )


def engine_parts(
    servers: ServerPage | None, installations: InstallationPage | None
) -> tuple[MachinePart, ...]:
    """Return the engines that are installed, or that none is."""
    parts = []
    if servers is not None:
        here = [server for server in servers.servers if server.present and server.problem is None]
        hint = "\n".join(f"{SERVER_NAMES[server.choice]}: {server.version}" for server in here)
        next_one = next((server for server in here if server.choice is servers.next_start), None)
        version = next_one.version.rpartition(", ")[2] if next_one else ""
        value = (
            f"{version} ({formats.inside(SERVER_NAMES[next_one.choice])})"
            if next_one
            else tr("not installed")
        )
        parts.append(
            MachinePart("llama.cpp", value, hint or tr("No llama.cpp server works here."), is_engine=True)
        )
    if installations is not None:
        present = [one for one in installations.installations if one.present]
        value = ", ".join(title_of(one).removeprefix("vLLM ") for one in present) or tr("not installed")
        hint = "\n".join(title_of(one) for one in present) or "sndr engine install vllm"
        parts.append(MachinePart("vLLM", value, hint, is_engine=True))
    return tuple(parts)


class MachineModel(QObject):
    """Reads the machine again while somebody looks: what others hold changes without an event.

    Signals:
        changed: something of it is new
    """

    changed = Signal()

    def __init__(self, session: Session, installations: InstallationsModel) -> None:
        super().__init__()
        self._session, self._installations = session, installations
        self._clock = QTimer(self)
        self._clock.setInterval(_READ_MS)
        self._clock.timeout.connect(self.read)
        state = session.state
        for signal in (state.host_changed, state.servers_changed, state.engines_changed):
            signal.connect(self.changed)
        installations.changed.connect(self.changed)

    def set_shown(self, shown: bool) -> None:
        """Read while shown."""
        if shown:
            self._clock.start()
            self.read()
        else:
            self._clock.stop()

    def read(self) -> None:
        """Read the machine now."""
        if not self._session.connection.connected:
            return

        async def work(client: AsyncControlClient) -> None:
            self._session.state.host = await client.call(ops.HOST)
            self.changed.emit()

        def failed(_error: object) -> None:
            """The status bar says that the host is away."""

        self._session.command("read the machine", work, failed=failed)

    @property
    def host(self) -> HostInfo | None:
        """The machine as it was read last."""
        return self._session.state.host

    def parts(self) -> tuple[MachinePart, ...]:
        """Return every GPU or why there is none, the main memory, and the engines."""
        host = self.host
        if host is None:
            return ()
        state = self._session.state
        parts = [
            gpu_part(
                gpu,
                state.measured(f"gpu.{gpu.index}.memory.used"),
                tuple(engine.name for engine in state.live if gpu.uuid in engine.plan.gpus),
            )
            for gpu in host.gpus
        ]
        if not host.gpus:
            hint = told_of_no_gpu(host) or tr("Models run on the CPU.")
            parts.append(MachinePart("GPU", no_gpu_word(host), hint))
        used = state.measured("ram.used") or host.ram_used
        cpu = f"{host.cpu_name}, {formats.plural(host.cpu_cores, 'core')}"
        free = tr("{size} free", size=formats.size(host.ram_total - used))
        value = formats.used_of(used, host.ram_total)
        parts.append(MachinePart("RAM", value, f"{free}\n{cpu}", formats.share_of(used, host.ram_total)))
        return (*parts, *engine_parts(state.servers, self._installations.page))
