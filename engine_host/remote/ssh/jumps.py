"""The jump hosts before a machine: which of them shows another key than the known one, as ssh itself says.

What the ssh of a jump host says arrives among what servers may say. So each is asked once more by an ssh of
its own, which lets nobody in and asks nothing: what that one says of the key is believed.
"""

from dataclasses import replace

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Problem, Reason
from engine_host.remote.ssh.command_lines import Effective, OpenSsh, communicate
from engine_host.remote.ssh.failures import Ended, problem_of
from engine_host.remote.ssh.questions import Attempt

_PATIENCE = 30.0
_MOST = 5


async def changed_jump(ssh: OpenSsh, destination: str, effective: Effective) -> Problem | None:
    """Return the problem of the first jump host whose key changed; None where none is known to have."""
    for place, before, said in await _hops(ssh, effective):
        argv = ssh.asking_nothing(f"ssh://{place}", before)
        try:
            code, told, _ = await communicate(argv, ssh.asking_nobody(), seconds=_PATIENCE)
        except HostError:
            continue
        ended = Ended(
            place, code, "", Attempt(place), told.replace("\r", ""), replace(said, jump=None, proxy=None)
        )
        problem = problem_of(ended, was_connected=False)
        if problem.reason is Reason.HOST_KEY_CHANGED:
            message = f"{problem.message} It is a jump host before {destination}."
            return problem.model_copy(
                update={"message": message, "evidence": {**problem.evidence, "jump": place}}
            )
    return None


async def _hops(ssh: OpenSsh, effective: Effective) -> list[tuple[str, str, Effective]]:
    """Return each jump host with those before it, the first that is connected to at first."""
    found: list[tuple[str, str, Effective]] = []
    hops = [one.strip().removeprefix("ssh://") for one in (effective.jump or "").split(",") if one.strip()]
    for number, place in enumerate(hops[:_MOST]):
        try:
            said = await ssh.effective(f"ssh://{place}")
        except HostError:
            continue
        if not number and said.jump:
            found += await _hops(ssh, said)
        found.append((place, ",".join(hops[:number]), said))
    return found[:_MOST]
