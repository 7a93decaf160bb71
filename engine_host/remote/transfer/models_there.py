"""The models of another machine: where they lie, the path of one, and the id by which it is listed."""

from pathlib import PurePosixPath

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.models import ModelFile
from engine_host.protocol.operations import table as ops
from engine_host.remote.control import answers, ask
from engine_host.remote.hosts import RemoteHosts


async def folder_there(hosts: RemoteHosts, name: str) -> str:
    """Return the folder there that gets models: the host's model root, else what its engine host looks in.

    Raises HostError(conflict) where neither is known.
    """
    root = hosts.book.get(name).model_root
    if root is not None:
        return root
    if not await answers(hosts, name):
        raise HostError(
            Reason.CONFLICT,
            tr("The folder of the models on {name} is not known.", name=name),
            cause="No model root was named for it, and no engine host answers there that could be asked.",
            fix=Fix(
                text="Name it once, or say --to FOLDER.",
                command=f"sndr host change {name} --model-root FOLDER",
            ),
        )
    page = await ask(hosts, name, ops.MODELS)
    if page.folders:
        return page.folders[0]
    return str(PurePosixPath((await ask(hosts, name, ops.HOST)).data_folder, "models"))


async def path_there(hosts: RemoteHosts, name: str, model: str) -> str:
    """Return the path of a model there by its id. Raises HostError(model_file_missing)."""
    if model.startswith(("/", "~")) or model.lower().endswith(".gguf"):
        return model
    kept = hosts.book.get(name)
    if not await answers(hosts, name):
        if kept.model_root is not None:
            return str(PurePosixPath(kept.model_root, model))
        raise HostError(
            Reason.MODEL_FILE_MISSING,
            tr("Nobody on {name} can be asked for a model {model}.", name=name, model=repr(model[:200])),
            cause="No engine host answers there.",
            fix=Fix(text="Give the path that it has there.", command=f"sndr host fetch {name} /PATH"),
        )
    models = (await ask(hosts, name, ops.SCAN_MODELS)).models
    found = next((one for one in models if model in {one.id, one.name}), None)
    if found is None:
        known = ", ".join(one.id for one in models[:20]) or "none"
        raise HostError(
            Reason.MODEL_FILE_MISSING,
            tr("There is no model {model} on {name}.", model=repr(model[:200]), name=name),
            cause=tr("Known there are: {known}.", known=known),
            fix=Fix(text="See what it has.", command=f"sndr --host {name} models"),
        )
    return found.path


async def listed_there(hosts: RemoteHosts, name: str, path: str) -> str | None:
    """Have the host there look again; return the id of the model at a path, None where it lists none."""
    models = (await ask(hosts, name, ops.SCAN_MODELS)).models
    wanted = PurePosixPath(path)

    def like(one: ModelFile) -> bool:
        # The folder may be reached there by a link.
        return PurePosixPath(one.path).parts[-2:] == wanted.parts[-2:]

    exact = (one.id for one in models if PurePosixPath(one.path) == wanted)
    return next(exact, None) or next((one.id for one in models if like(one)), None)
