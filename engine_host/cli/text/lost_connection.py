"""A job of another machine whose connection was lost: it goes on there, and is found again."""

import time
from collections.abc import Callable

from engine_host.client.sync import ControlClient, connected
from engine_host.core.errors import HostError
from engine_host.core.likely_causes import ended_host
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.jobs import Job
from engine_host.protocol.language import tr
from engine_host.protocol.operations import remote_hosts as host_ops
from engine_host.protocol.operations import table as ops
from engine_host.protocol.remote.hosts import RemoteHost, RemoteHostState

LONGEST = 600.0
"""Seconds for which a connection is waited for, as transfers of files do."""
_LOOK = 1.0
_AWAY = {Reason.HOST_GONE, Reason.HOST_UNREACHABLE, Reason.RUN_FOLDER_UNSAFE, Reason.UNAUTHORIZED}
_NOT_WANTED = {RemoteHostState.DISCONNECTED, RemoteHostState.FAILED}


def is_lost(client: ControlClient, error: HostError) -> bool:
    """Tell whether an error may mean no more than that the connection to another machine is lost."""
    return bool(client.host) and error.reason in _AWAY


def found_again(client: ControlClient, job: Job, say: Callable[[str], None]) -> ControlClient:
    """Wait until the machine answers again, and return a client that knows the job.

    Raises HostError: ssh_lost where it does not come back, host_gone where its host was started anew.
    """
    host = client.host
    say(f"the connection to {host} was lost: {job.title} goes on there, and is waited for")
    end = time.monotonic() + LONGEST
    while True:
        fresh = client.again()
        try:
            fresh.connect()
            fresh.call(ops.JOB, id=job.id)
        except HostError as error:
            fresh.close()
            if error.reason is Reason.NOT_FOUND:
                raise _ended_with_its_host(host, job) from error
            if error.reason not in _AWAY:
                raise
        except BaseException:
            fresh.close()
            raise
        else:
            say(f"{host} is connected again")
            return fresh
        kept = _kept(host)
        if kept is None or kept.state in _NOT_WANTED or time.monotonic() > end:
            raise goes_on(client, job, kept)
        time.sleep(_LOOK)


def goes_on(client: ControlClient, job: Job, kept: RemoteHost | None = None) -> HostError:
    """Return the error of who waits no longer for a job that goes on."""
    why = kept.problem.message if kept is not None and kept.problem is not None else ""
    return HostError(
        Reason.SSH_LOST,
        tr("The connection to {host} was lost. {job} goes on there.", host=client.host, job=job.title),
        cause=why
        or tr(
            "It did not come back within {longest:.0f} minutes, or is not wanted any more.",
            longest=LONGEST / 60,
        ),
        fix=Fix(
            text="Connect, and see how far it is; what it made is kept there.",
            command=f"sndr --host {client.host} jobs",
        ),
        evidence={"host": client.host, "job": job.id},
    )


def _ended_with_its_host(host: str, job: Job) -> HostError:
    return HostError(
        Reason.HOST_GONE,
        tr(
            "The engine host on {host} was started anew, and {job} ended with the one before.",
            host=host,
            job=job.title,
        ),
        cause=ended_host(),
        fix=Fix(
            text="Run the same command again; downloads go on from what is there.",
            command=f"sndr --host {host} jobs",
        ),
        evidence={"host": host, "job": job.id},
    )


def _kept(host: str) -> RemoteHost | None:
    """Return what this machine's host knows of the other one; None where none keeps a connection."""
    try:
        with connected() as here:
            return here.call(host_ops.REMOTE_HOST, name=host)
    except HostError:
        return None
