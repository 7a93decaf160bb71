"""Findings of the checks of a preset, its engine and its weights."""

from engine_host.core.findings.text import ERROR, INFO, WARNING, Text
from engine_host.protocol.errors import Reason

PRESETS = {
    "engine.build": Text(
        ERROR,
        "{label} is installed, and this preset needs the build for GPUs.",
        Reason.ENGINE_UNUSABLE,
        "Install it.",
    ),
    "engine.missing": Text(ERROR, "{problem}", fix="See which engines are here.", command="sndr engine list"),
    "engine.not_started": Text(
        ERROR,
        "This program does not start {name}.",
        Reason.UNSUPPORTED,
        "Write the start down for something that does.",
        "sndr launch {preset} --render docker",
    ),
    "engine.without_gpu": Text(
        ERROR,
        "{preset} is for GPUs, and this llama.cpp ({server}) was built without them.",
        Reason.ENGINE_UNUSABLE,
        "Build llama.cpp for the GPU of this machine, or run it in a container: "
        "sndr launch {preset} --render docker",
    ),
    "engine.without_gpu/vulkan": Text(
        ERROR,
        "{preset} is for GPUs, and this llama.cpp ({server}) was built without them.",
        Reason.ENGINE_UNUSABLE,
        "Build llama.cpp for the GPU (AMD's and Intel's compute with Vulkan), or run it in a container: "
        "sndr launch {preset} --render docker",
        "sndr engine build llama.cpp --backend vulkan",
    ),
    "preset.consent": Text(
        WARNING,
        "{preset} asks for more than harmless settings ({files}), and was not written with this program: it "
        "starts once you have consented to that.",
        Reason.CONSENT_NEEDED,
        "Look at what it asks for.",
        "{command}",
    ),
    "preset.formats": Text(ERROR, "It computes in {absent}, which {card} cannot.", Reason.UNSUPPORTED),
    "preset.gpus": Text(ERROR, "It needs {gpus}; {there}.", Reason.ENGINE_UNUSABLE),
    "preset.nvlink": Text(ERROR, "It needs NVLink, which {card} does not have.", Reason.UNSUPPORTED),
    "preset.other_version": Text(
        INFO,
        "What is known of {preset} was measured with {pins}; {version} runs here.",
        fix="Take its figures as a hint, and compare with what this machine does.",
        command="sndr presets show {preset}",
    ),
    "preset.other_weights": Text(
        INFO,
        "{model} takes the place of {title} ({variant}): what was measured with the preset is not known of "
        "it.",
        fix="See what it needs with these settings.",
    ),
    "preset.overruled": Text(INFO, "{setting} is {value} by {file}; the preset says {of_preset}."),
    "preset.sm": Text(ERROR, "It needs compute capability {needs}; {card} has {has}.", Reason.UNSUPPORTED),
    "preset.unproven": Text(
        INFO,
        "Nobody has reported it on {card}.",
        fix="Compare what it does here with its figures.",
        command="sndr presets show {preset}",
    ),
    "preset.vram": Text(
        ERROR,
        "It needs {needs:g} GiB of memory on each GPU; {card} has {has:g}.",
        Reason.OUT_OF_MEMORY,
    ),
    "setting_without_effect": Text(WARNING, "{problem}"),
    "weights.ambiguous": Text(
        ERROR,
        "Several models here could be {title} ({quantization}): {models}.",
        Reason.CONFLICT,
        "Say which.",
        "{command}",
    ),
    "weights.by_name": Text(
        INFO,
        "{path} is taken for {title} ({quantization}) by its name: neither its place nor its size tells.",
        fix="Name another file if it is not.",
    ),
    "weights.damaged": Text(ERROR, "{path} cannot be used: {problem}"),
    "weights.files": Text(
        WARNING,
        "Files of {path} are not those of the catalogue: {wrong}.",
        Reason.MODEL_FILE_DAMAGED,
    ),
    "weights.hash": Text(
        ERROR,
        "{path} is not the file that the catalogue means: its SHA-256 is {sha256}.",
        Reason.MODEL_FILE_DAMAGED,
    ),
    "weights.missing": Text(
        ERROR,
        "{title}, {quantization}[ ({size_text})], is not on this machine; it is in {where}.",
        Reason.MODEL_FILE_MISSING,
    ),
    "weights.not_verified": Text(
        INFO,
        "The sizes are right; the hash of {files} was not checked yet.",
        fix="Check it once; it takes about a second for each GiB.",
        command="sndr presets verify {preset}",
    ),
    "weights.other_size": Text(
        ERROR,
        "{path} has {size:,} bytes, and {title} ({quantization}) {expected:,}.",
        Reason.MODEL_FILE_DAMAGED,
        "The download is not finished, or it is another version; this command takes it up. "
        "To use the file as it is, say so: {as_it_is}",
        "{command}",
    ),
}
