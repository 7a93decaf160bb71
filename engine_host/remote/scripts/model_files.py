"""Lists the files of a model: a GGUF file with its parts and its projector, or the folder of a checkpoint.

Runs on another machine with one line of JSON on its standard input, {"path"}; here it is imported, so that
both sides mean the same files. Standard library only, for any Python from 3.6 on; it changes nothing.
"""

import json
import os
import re
import stat
import sys

_MOST, _DEEPEST = 2000, 3
_PART = re.compile(r"^(.+)-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
_PROJECTOR = re.compile(r"(^|[-_.])mmproj", re.IGNORECASE)
_FORM = re.compile(r"[-_.](ud-)?(i?q\d\w*|t?q\d\w*|f16|f32|bf16|mxfp4\w*)$", re.IGNORECASE)
# The same weights in another form, beside those of a folder with safetensors.
_COPIES = (".bin", ".pt", ".pth", ".h5", ".msgpack", ".onnx", ".ot", ".gguf", ".tflite")


def listing(path: str) -> "dict[str, object]":
    """Return the files of the model at a path, with their folder; or `error`, and what it is about.

    `start` is the file that an engine is started with, empty for the folder itself.
    """
    path = os.path.abspath(os.path.join(os.path.expanduser("~"), os.path.expanduser(path)))
    if os.path.isdir(path):
        if os.path.isfile(os.path.join(path, "config.json")):
            return _with_sizes(path, _of_checkpoint(path), "")
        inside = [name for name in sorted(os.listdir(path)) if _is_model(name)]
        if len(inside) != 1:
            return {"error": "several" if inside else "none", "path": path, "found": inside[:20]}
        path = os.path.join(path, inside[0])
    if not os.path.isfile(path):
        return {"error": "missing" if not os.path.exists(path) else "none", "path": path}
    folder, name = os.path.split(path)
    parts = _parts(name)
    for part in parts:
        if not os.path.isfile(os.path.join(folder, part)):
            return {"error": "missing", "path": os.path.join(folder, part)}
    return _with_sizes(folder, parts + _projectors(folder, parts), parts[0])


def _is_model(name: str) -> bool:
    part = _PART.match(name)
    first = part is None or int(part.group(2)) == 1
    return _is_shown(name) and first and not _PROJECTOR.search(name)


def _is_shown(name: str) -> bool:
    """Return True for a GGUF file that is not hidden: some systems put a small file "._NAME" beside each."""
    return name.lower().endswith(".gguf") and not name.startswith(".")


def _parts(name: str) -> "list[str]":
    part = _PART.match(name)
    if part is None or not 0 < int(part.group(3)) <= _MOST:
        return [name]
    stem, count = part.group(1), part.group(3)
    return [f"{stem}-{at:05d}-of-{count}{name[-5:]}" for at in range(1, int(count) + 1)]


def _projectors(folder: str, parts: "list[str]") -> "list[str]":
    """Return the projectors beside a model: all where it is the only one there, else those of its name."""
    names = sorted(os.listdir(folder))
    found = [name for name in names if _PROJECTOR.search(name) and _is_shown(name)]
    if [name for name in names if _is_model(name)] == parts[:1]:
        return found
    stem = re.sub(r"-\d{5}-of-\d{5}$", "", os.path.splitext(parts[0])[0])
    own = _FORM.sub("", stem).lower()
    return [name for name in found if own and own in name.lower()]


def _of_checkpoint(folder: str) -> "list[str]":
    found = []
    for here, folders, names in os.walk(folder):
        below = os.path.relpath(here, folder)
        depth = 0 if below == "." else below.count(os.sep) + 1
        folders[:] = sorted(one for one in folders if not one.startswith(".")) if depth < _DEEPEST else []
        for name in sorted(names):
            if not name.startswith(".") and os.path.isfile(os.path.join(here, name)):
                found.append(name if below == "." else os.path.join(below, name))
    if any(name.endswith(".safetensors") for name in found):
        found = [name for name in found if not name.lower().endswith(_COPIES)]
    return found


def _with_sizes(folder: str, names: "list[str]", start: str) -> "dict[str, object]":
    if len(names) > _MOST:
        return {"error": "many", "path": folder}
    files = []
    for name in names:
        about = os.stat(os.path.join(folder, name))
        if stat.S_ISREG(about.st_mode):
            files.append({"name": name, "size": about.st_size})
    return {"folder": folder, "files": files, "start": start}


def main() -> "dict[str, object]":
    """Answer what the first line asks for."""
    try:
        return listing(str(json.loads(sys.stdin.buffer.readline().decode("utf-8"))["path"]))
    except OSError as error:
        return {"error": "refused", "text": str(error)}


if __name__ == "__main__":
    # A shell's start files may have printed half a line before.
    sys.stdout.write("\n" + json.dumps(main()) + "\n")
