"""Findings of the checks of the machine and of a start."""

from engine_host.core.findings.text import ERROR, INFO, WARNING, Text
from engine_host.protocol.errors import Reason

STARTS = {
    # The machine, before a start.
    "disk_short": Text(
        WARNING,
        "{free:gib} GiB are free in the cache ({cache}); vLLM compiles up to {compiled:gib} GiB into it.",
        Reason.DISK_FULL,
        "Free some space there, or move the cache to another disk with SNDR_CACHE.",
        "du -sh {cache}/*",
    ),
    "driver_too_old": Text(
        ERROR,
        "{build} is made with CUDA {built_with}, which needs NVIDIA's driver {needs} or newer; this machine "
        "has {driver_text}.",
        Reason.ENGINE_UNUSABLE,
        "Install a newer driver (on Ubuntu with this command) and start the machine again.",
        "sudo ubuntu-drivers install",
    ),
    "endpoint_address": Text(ERROR, "{problem} The endpoint is on {address} instead."),
    "gpu_too_old": Text(
        ERROR,
        "{name} is too old for {build}: it has compute capability {sm}, and {needs} or more is needed.",
        Reason.UNSUPPORTED,
        "Run a GGUF file of the model with llama.cpp.",
        "sndr presets list --engine llama.cpp",
    ),
    "port_in_use": Text(
        WARNING,
        "Port {wanted} is used by {by}; the endpoint is on {port} instead.",
        Reason.PORT_IN_USE,
        "Use {url} in editors, or end {by} and start again.",
    ),
    "port_moved": Text(
        WARNING,
        "Port {taken} is used by {by}; the endpoint is on {port} from now on.",
        Reason.PORT_IN_USE,
        "Use {url} in editors. For {wanted} again, end {by} and set the port.",
        "sndr settings set endpoint.port {wanted}",
    ),
    "shared_memory_small": Text(
        WARNING,
        "/dev/shm has {shared:mib} MiB; NCCL between {processes} GPUs needs more.",
        Reason.OUT_OF_MEMORY,
        "In a container start it with --shm-size=8g or --ipc=host, elsewhere make it larger.",
        "sudo mount -o remount,size=8G /dev/shm",
    ),
    "version_not_pinned": Text(
        WARNING,
        "{label} has vLLM {version}; patches, arguments and figures here are for {pinned}.",
        Reason.UNSUPPORTED,
    ),
    "vram_held": Text(
        ERROR,
        "vLLM starts only when its share of {wanted:.0%} is free: on GPU {gpu} ({name}) that is {share:gib} "
        "GiB, and {free:gib} are free. {held}",
        Reason.OUT_OF_MEMORY,
        "End what holds it, or give vLLM the share that is free.",
    ),
    # A start of either engine.
    "replaces": Text(
        INFO,
        "{name} runs now and is stopped first; its requests get ten seconds to end.",
        fix="Let its requests end before you start this.",
        command="sndr status",
    ),
    "nothing_to_end": Text(
        WARNING,
        "No engine {name} runs, so that none is ended for this start.",
        fix="See what runs, and what it is called.",
        command="sndr status",
    ),
    "name_taken": Text(
        ERROR,
        "An engine with the public name {name} runs, and goes on beside this start.",
        Reason.CONFLICT,
        "Give this one another name, such as {free}, or put it in the other's place.",
    ),
    "shares_processor": Text(
        INFO,
        "On this processor compute too: {beside}. While they answer at once, each is slower.",
        fix="For the full speed of one, end the others first.",
    ),
    "no_room_beside": Text(
        ERROR,
        "There is no room beside {beside}: {missing:gib} GiB are missing in {device} (estimated).",
        Reason.OUT_OF_MEMORY,
        "End {instead_of} first; or take fewer streams, a shorter context or a smaller model.",
    ),
    "memory_short/llama.cpp": Text(
        WARNING,
        "{parts} want about {needed:gib} GiB (estimated); {free:gib} GiB are free[, and this machine has "
        "{most:gib} GiB in all].",
        Reason.OUT_OF_MEMORY,
        "Take fewer streams, a shorter context, a smaller KV type or a smaller model.[ A context of "
        "{longest:,} tokens fits.]",
    ),
    "memory_short/vllm": Text(
        WARNING,
        "Weights, KV cache and vLLM's processes want about {needed:gib} GiB (estimated); {free:gib} GiB are "
        "free[, and this machine has {most:gib} GiB in all].",
        Reason.OUT_OF_MEMORY,
        "Take a smaller KV cache (kv_cache_gib) or a smaller model.",
    ),
    "vram_short/llama.cpp": Text(
        WARNING,
        "Weights, KV cache and buffers want about {needed:gib} GiB on each of {gpus} GPU(s) (estimated); "
        "{room:gib} GiB are free. {held}",
        Reason.OUT_OF_MEMORY,
        "Take a shorter context, fewer streams, a smaller KV type or a smaller model, or end what holds the "
        "memory.",
        "sndr fit {model}",
    ),
    "vram_short/vllm": Text(
        WARNING,
        "Weights, buffers and one request of full length want about {needed:gib} GiB on each GPU "
        "(estimated); {room:gib} GiB is vLLM's share of it.",
        Reason.OUT_OF_MEMORY,
        "Take a smaller or quantised model, a shorter context, or share it over more GPUs (tensor_parallel).",
        "sndr fit {model}",
    ),
    "vram_short/weights": Text(
        WARNING,
        "The weights want about {weights:gib} GiB on each GPU; {free:gib} GiB are free.",
        Reason.OUT_OF_MEMORY,
        "Take a smaller or quantised model, a shorter context, or share it over more GPUs (tensor_parallel).",
        "sndr fit {model}",
    ),
    "context_beyond_training/llama.cpp": Text(
        WARNING,
        "The model was trained for {trained:,} tokens, and llama.cpp gives a stream no more: it starts with "
        "these, not with the {context:,} that are asked for.",
        Reason.CONTEXT_TOO_LONG,
        "Set the context to {trained} or less.",
    ),
    "context_beyond_training/vllm": Text(
        ERROR,
        "The model has positions for {trained:,} tokens; vLLM does not start beyond that.",
        Reason.CONTEXT_TOO_LONG,
        "Set the context to {trained} or less.",
    ),
    "no_mtp_layer": Text(
        ERROR,
        "This model has no MTP layer, so it cannot draft for itself.",
        Reason.UNSUPPORTED,
        "Switch speculation off, or choose an n-gram kind.",
    ),
    "mtp_available": Text(
        INFO,
        "The model has an MTP layer: speculative decoding can be switched on.",
        fix="Set speculation to {speculation} and measure.",
    ),
    # A start of llama.cpp.
    "prebuilt_server": Text(
        INFO,
        "The prebuilt llama.cpp runs: it works at once, but uses no more than AVX2.",
        fix="Build llama.cpp for this processor once.",
    ),
    "gpu_unused": Text(
        WARNING,
        "{name} stays idle: this llama.cpp ({choice}, {server}) was built for the processor alone.",
        fix="Build llama.cpp for the GPU once.[ Or set engine.server to {other}.]",
    ),
    # A start of vLLM.
    "cpu_build": Text(
        INFO,
        "vLLM runs on the processor here: good for trying things out, slow for work.",
        fix="For work on a processor take a GGUF file, which llama.cpp runs faster.",
    ),
    "drafter_missing": Text(
        ERROR,
        "{drafter}, which drafts for this model, is not on this machine.",
        Reason.MODEL_FILE_MISSING,
        "Download it, or switch speculation off.",
    ),
    "dummy_weights": Text(
        INFO,
        "The weights are random: speed and memory are real, the text means nothing.",
        fix="Put the weights beside its config.json to have answers.",
    ),
    "invariance_of_hybrid": Text(
        ERROR,
        "vLLM has no batch-invariant mode for models with gated-delta or Mamba layers.",
        Reason.UNSUPPORTED,
        "Switch batch_invariant off.",
    ),
    "invariance_of_turboquant": Text(
        ERROR,
        "vLLM's own TurboQuant kernels are not batch-invariant, and vLLM refuses the start.",
        Reason.UNSUPPORTED,
        "Start with the patch {patch}, or switch batch_invariant off.",
        "sndr patches explain {patch}",
    ),
    "kv_cache_small": Text(
        ERROR,
        "A KV cache of {kv_cache_gib} GiB holds about {tokens} tokens, not {context}.",
        Reason.OUT_OF_MEMORY,
        "Take a larger KV cache (kv_cache_gib) or a shorter context.",
    ),
    "no_chat_template": Text(
        WARNING,
        "The model has no chat template: it answers completions, and no chats.",
        fix="Put its chat_template.jinja into the model's folder.",
    ),
    "no_gpu": Text(
        ERROR,
        "This build of vLLM needs an NVIDIA GPU, and none is here.",
        Reason.ENGINE_UNUSABLE,
        "Install the CPU build.",
    ),
    "no_tokenizer": Text(
        WARNING,
        "The model has no tokenizer: it takes completions of token numbers, and no text.",
        fix="Put a tokenizer.json into the model's folder to use it with text.",
    ),
    "no_tokenizer/embeddings": Text(
        ERROR,
        "The model has no tokenizer, and without one vLLM answers with no vectors.",
        Reason.UNSUPPORTED,
        "Put a tokenizer.json into the model's folder.",
    ),
    "prefix_caching_breaks": Text(
        WARNING,
        "MTP with prefix caching ends vLLM's CPU build at the first request to this model.",
        fix="Leave prefix_caching to the program, which switches it off here.",
    ),
    "prefix_caching_off": Text(
        INFO,
        "Prefix caching is off: with MTP it ends vLLM's CPU build at the first request.",
        fix="Switch speculation off to have it.",
    ),
    "speculation_samples_noise": Text(
        WARNING,
        "With speculation, vLLM's CPU build answers with noise at any temperature above 0.",
        Reason.UNSUPPORTED,
        "Leave the patch {patch} on, or ask with temperature 0.",
        "sndr patches explain {patch}",
    ),
    "too_few_gpus": Text(
        ERROR,
        "tensor_parallel is {tensor_parallel}, but this machine has {gpus} GPU(s).",
        Reason.SETTING_INVALID,
        "Set tensor_parallel to {gpus} or less.",
    ),
    "turboquant_hybrid": Text(
        ERROR,
        "vLLM {vllm} ends while it allocates a hybrid's TurboQuant cache.",
        Reason.KV_TYPE_UNSUPPORTED,
        "Leave the patch {patch} on, or take another KV cache type.",
        "sndr patches explain {patch}",
    ),
    "turboquant_kernels": Text(
        INFO,
        "TurboQuant runs on this program's kernels {kernels}, which are compared with float64 at the start; "
        "seen right on {gpus} with vLLM {vllm}.",
        fix="Nothing is to be done; the ledger says which kernel runs once it serves.",
        command="sndr patches status",
    ),
    "turboquant_kernels/unproven": Text(
        INFO,
        "TurboQuant runs on this program's kernels {kernels}. They are not proven on {gpus} with vLLM {vllm} "
        "and {kv_cache_dtype} yet: their comparison with float64 at the start decides, and a start with "
        "drafts ends where it fails.[ Last time, {before}.]",
        fix="Prove it on this GPU.",
    ),
    "turboquant_kernels/here": Text(
        INFO,
        "TurboQuant runs on this program's kernels {kernels}, proven here on {date} with vLLM {vllm} on "
        "{gpus}: {figures}.",
        fix="Nothing is to be done; a new driver, vLLM or version of this program asks for it again.",
        command="sndr prove --list",
    ),
    "turboquant_kernels/wrong": Text(
        WARNING,
        "TurboQuant's kernels are not right on this machine: {why}. Their comparison with float64 at the "
        "start decides if vLLM's own run instead.",
        Reason.KV_TYPE_UNSUPPORTED,
        "Take fp8 or an uncompressed KV cache, or prove it again.",
        "sndr prove",
    ),
    "turboquant_speculation/4bit": Text(
        ERROR,
        "TurboQuant with speculation answers wrongly on vLLM's own kernels, and this program's cannot be "
        "used: {why}.",
        Reason.KV_TYPE_UNSUPPORTED,
        "Take turboquant_4bit_nc, which this program's kernels read; or switch speculation off.",
    ),
    "turboquant_speculation/allowed": Text(
        WARNING,
        "Answers will be wrong: TurboQuant with speculation runs on vLLM's own kernels ({why}).",
        Reason.KV_TYPE_UNSUPPORTED,
        "Leave allow_wrong_answers off for anything but measuring.",
    ),
    "turboquant_speculation/drafts": Text(
        ERROR,
        "TurboQuant with speculation answers wrongly on vLLM's own kernels, and this program's cannot be "
        "used: {why}.",
        Reason.KV_TYPE_UNSUPPORTED,
        "Draft 7 tokens or less.",
    ),
    "turboquant_speculation/fp8": Text(
        ERROR,
        "TurboQuant with speculation answers wrongly on vLLM's own kernels, and this program's cannot be "
        "used: {why}.",
        Reason.KV_TYPE_UNSUPPORTED,
        "Take fp8 for the KV cache, or switch speculation off; or let in what keeps the kernels out.",
    ),
    "turboquant_speculation/off": Text(
        ERROR,
        "TurboQuant with speculation answers wrongly on vLLM's own kernels, and this program's cannot be "
        "used: {why}.",
        Reason.KV_TYPE_UNSUPPORTED,
        "Switch speculation off, or take an uncompressed KV cache; or let in what keeps the kernels out.",
    ),
    "turboquant_stock": Text(
        INFO,
        "TurboQuant runs on vLLM's own kernels, which decode up to three times slower: {why}.",
        fix="See why the patch is no part of this start.",
        command="sndr patches show {patch}",
    ),
    "weights_missing": Text(
        ERROR,
        "This model is a config without weights; it runs with random ones alone.",
        Reason.MODEL_FILE_MISSING,
        "Leave dummy_weights on, or fetch the weights into its folder.",
    ),
}
