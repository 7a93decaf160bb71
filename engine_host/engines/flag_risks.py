"""Flags of engines that can do harm, each with a sentence on what it can do: for whoever has to allow them.

Read in llama.cpp's common/arg.cpp (0c1e570), vLLM's arg_utils.py and cli_args.py (0.32) and SGLang's
server_args.py (0.5). Some that only compute are here too, as presets use them. What is not here is not known.
"""

from engine_host.engines.flag_spelling import ARGPARSE, EXACT
from engine_host.protocol.engine_settings.row import LLAMA_CPP, SGLANG, VLLM

_PROGRAMS = "Starts programs on this machine: each server in it is a command that runs as you."
_TOOLS = "Lets the model run shell commands, and read and write files, as you."
_CODE = "Imports Python code from the file or module that it names, which then runs as you."
_REMOTE_CODE = "Runs Python code that comes with the model's files, as you."
_FETCHES = "Fetches a model from the internet, and loads it."
_LOADS = "Loads a further model file, from the path that it names."
_CHANGES = "Changes what the model answers, by weights from the file that it names."
_TEMPLATE = "Replaces the chat template: it can put words into every conversation, and leave others out."
_TEMPLATE_VALUES = "Gives the chat template values, by which it may write another prompt."
_READS = "Reads the file that it names."
_LOGS = "Writes prompts or answers into the log."
_OTHERS = "Computes together with other machines, which get prompts and answers."
_SENDS = "Sends what the engine works on to the address that it names."
_MEDIA = "Lets every request read files of the folder that it names."
_OVERRIDES = "Overrides what the model's own files say of it, also which code runs it."
_PAGES = "Changes which web pages may use the engine."
_SERVES = "Changes how, or how often, the engine listens."

_LLAMA_CPP = {
    "--mcp-servers-json": _PROGRAMS,
    "--mcp-servers-config": _PROGRAMS,
    "--tools": _TOOLS,
    "--agent": _TOOLS,
    "-ag": _TOOLS,
    "--tools-runtime": "Runs the tools of the model in a container, or on another machine over SSH.",
    "--ui-mcp-proxy": "Lets web pages reach other addresses through the engine.",
    "--webui-mcp-proxy": "Lets web pages reach other addresses through the engine.",
    "--video-ffmpeg-dir": "Runs the programs ffmpeg and ffprobe of the folder that it names.",
    "--log-prompts-dir": "Writes every prompt into files of the folder that it names.",
    "--log-file": "Writes the log into the file that it names, in place of what is there.",
    "--verbose": _LOGS,
    "--log-verbose": _LOGS,
    "-v": _LOGS,
    "--slot-save-path": "Lets requests write conversations into the folder that it names.",
    "--path": "Serves every file of the folder that it names to whoever reaches the engine.",
    "--media-path": _MEDIA,
    "--props": "Lets whoever reaches the engine change its settings while it runs.",
    "--rpc": _OTHERS,
    "--lora": _CHANGES,
    "--lora-scaled": _CHANGES,
    "--control-vector": _CHANGES,
    "--control-vector-scaled": _CHANGES,
    "--mmproj": _LOADS,
    "-mm": _LOADS,
    "--mmproj-url": _FETCHES,
    "-mmu": _FETCHES,
    "--model-draft": _LOADS,
    "--spec-draft-model": _LOADS,
    "-md": _LOADS,
    "--hf-repo-draft": _FETCHES,
    "--spec-draft-hf": _FETCHES,
    "-hfd": _FETCHES,
    "-hfrd": _FETCHES,
    "--hf-token": "Names itself to Hugging Face with the token that it holds.",
    "-hft": "Names itself to Hugging Face with the token that it holds.",
    "--chat-template": _TEMPLATE,
    "--chat-template-file": _TEMPLATE,
    "--chat-template-kwargs": _TEMPLATE_VALUES,
    "--grammar": "Forces answers into the grammar that it holds.",
    "--grammar-file": _READS,
    "--json-schema": "Forces answers into the schema that it holds.",
    "--json-schema-file": _READS,
    "-jf": _READS,
    "--override-kv": _OVERRIDES,
    "--lookup-cache-static": _READS,
    "--lookup-cache-dynamic": "Writes statistics of prompts into the file that it names.",
    "--ui-config-file": _READS,
    "--webui-config-file": _READS,
    "--ssl-key-file": _READS,
    "--ssl-cert-file": _READS,
    "--cors-origins": _PAGES,
    "--cors-methods": _PAGES,
    "--cors-headers": _PAGES,
    "--cors-credentials": _PAGES,
    "--api-prefix": _SERVES,
    "--reuse-port": _SERVES,
    "--embd-gemma-default": _FETCHES,
    "--pooling": "Chooses how vectors are made of a text.",
}
_VLLM = {
    "--trust-remote-code": _REMOTE_CODE,
    "--code-revision": "Chooses which Python code comes with the model's files.",
    "--tool-parser-plugin": _CODE,
    "--reasoning-parser-plugin": _CODE,
    "--logits-processors": _CODE,
    "--io-processor-plugin": _CODE,
    "--worker-cls": _CODE,
    "--worker-extension-cls": _CODE,
    "--scheduler-cls": _CODE,
    "--model-class-overrides": _CODE,
    "--distributed-executor-backend": "Chooses how its processes are started; it can name Python code.",
    "--logging-config": "Sets up logging by a file that can name Python code and files to write.",
    "--log-config-file": "Sets up logging by a file that can name Python code and files to write.",
    "--compilation-config": "Changes how the model is compiled; it can name Python code.",
    "-cc": "Changes how the model is compiled; it can name Python code.",
    "--hf-overrides": _OVERRIDES,
    "--hf-config-path": _OVERRIDES,
    "--config-format": _OVERRIDES,
    "--model-impl": _OVERRIDES,
    "--quantization-config": _OVERRIDES,
    "--tokenizer": "Takes the tokenizer from another path or repository.",
    "--tokenizer-mode": "Chooses the code that reads the tokenizer.",
    "--tokenizer-revision": "Takes another version of the tokenizer.",
    "--generation-config": "Takes the defaults of sampling from the folder that it names.",
    "--override-generation-config": "Changes the defaults of sampling.",
    "--model-loader-extra-config": "Changes how the model's files are loaded, and from where.",
    "--download-dir": "Writes downloaded models into the folder that it names.",
    "--hf-token": "Names itself to Hugging Face with the token that it holds.",
    "--enable-lora": "Lets weights change what the model answers.",
    "--lora-modules": _CHANGES,
    "--default-mm-loras": _CHANGES,
    "--chat-template": _TEMPLATE,
    "--default-chat-template-kwargs": _TEMPLATE_VALUES,
    "--trust-request-chat-template": "Lets every request bring a chat template, which is a program.",
    "--trust-request-mm-kwargs": "Lets every request set how images and sound are read.",
    "--tool-server": "Connects to servers of tools that the model may call.",
    "--allowed-local-media-path": _MEDIA,
    "--allowed-media-domains": "Lets requests make the engine fetch from the addresses that it names.",
    "--media-io-kwargs": "Changes how images, sound and video are read.",
    "--enable-prompt-embeds": "Takes tensors from requests; a wrong one can end the engine.",
    "--enable-mm-embeds": "Takes tensors from requests; a wrong one can end the engine.",
    "--enable-log-requests": _LOGS,
    "--enable-log-outputs": _LOGS,
    "--enable-log-deltas": _LOGS,
    "--max-log-len": _LOGS,
    "--otlp-traces-endpoint": _SENDS,
    "--collect-detailed-traces": "Collects traces of requests.",
    "--kv-transfer-config": f"{_SENDS[:-1]}; it can name Python code.",
    "--kv-events-config": _SENDS,
    "--ec-transfer-config": f"{_SENDS[:-1]}; it can name Python code.",
    "--weight-transfer-config": "Lets others put weights into the engine while it runs.",
    "--kv-offloading-backend": "Moves the KV cache, which holds prompts, out of the GPU.",
    "--profiler-config": "Writes records of what it does into the folder that it names.",
    "--enable-sleep-mode": "Lets whoever reaches the engine put it to sleep.",
    "--enable-tokenizer-info-endpoint": "Shows the chat template to whoever reaches the engine.",
    "--data-parallel-address": _OTHERS,
    "-dpa": _OTHERS,
    "--master-addr": _OTHERS,
    "--nnodes": _OTHERS,
    "-n": _OTHERS,
    "--headless": _SERVES,
    "--grpc": _SERVES,
    "--grpc-port": _SERVES,
    "--api-server-count": _SERVES,
    "-asc": _SERVES,
    "--root-path": _SERVES,
    "--ssl-ca-certs": _READS,
    "--allowed-origins": _PAGES,
    "--allowed-methods": _PAGES,
    "--allowed-headers": _PAGES,
    "--allow-credentials": _PAGES,
    "--mm-encoder-fp8-scale-path": _READS,
    "--attention-backend": "Chooses the kernels of attention.",
    "--diffusion-config": "Says how a diffusion model writes.",
    "--disable-custom-all-reduce": "Has GPUs exchange values in a slower way that works everywhere.",
    "--kv-cache-dtype-skip-layers": "Leaves some layers out of the compressed KV cache.",
    "--num-gpu-blocks-override": "Sets the size of the KV cache in blocks.",
    "--quantization": "Says how the weights are compressed.",
    "-q": "Says how the weights are compressed.",
    "--mm-encoder-fp8-scale-save-path": "Writes into the file that it names.",
}
_SGLANG = {
    "--trust-remote-code": _REMOTE_CODE,
    "--chat-template": _TEMPLATE,
    "--completion-template": _TEMPLATE,
    "--tool-server": "Connects to servers of tools that the model may call.",
    "--lora-paths": _CHANGES,
    "--tokenizer-path": "Takes the tokenizer from another path or repository.",
    "--model-loader-extra-config": "Changes how the model's files are loaded, and from where.",
    "--json-model-override-args": _OVERRIDES,
    "--speculative-draft-model-path": _LOADS,
    "--enable-custom-logit-processor": "Lets every request bring Python code, which runs as you.",
    "--log-requests": _LOGS,
    "--file-storage-path": "Writes uploaded files into the folder that it names.",
    "--dist-init-addr": _OTHERS,
    "--nnodes": _OTHERS,
    "--download-dir": "Writes downloaded models into the folder that it names.",
    "--attention-backend": "Chooses the kernels of attention.",
    "--enable-metrics": "Counts requests and tokens for whoever asks the engine.",
    "--enable-trace": _SENDS,
    "--oltp-traces-endpoint": _SENDS,
    "--hicache-storage-backend": "Keeps the KV cache, which holds prompts, outside of the engine.",
}
_RISKS = {LLAMA_CPP: _LLAMA_CPP, VLLM: _VLLM, SGLANG: _SGLANG}


def risk(engine: str | None, word: str) -> str | None:
    """Return what the flag in one word of a command line can do; None for one that is not known here.

    Without an engine it is what the flag does to any of them.
    """
    for name in (engine,) if engine in _RISKS else _RISKS:
        table = _RISKS[name or ""]
        reader = EXACT if name == LLAMA_CPP else ARGPARSE
        flag = reader.name(word)
        meant = None if flag is None else reader.meant(flag, table)
        opposite = meant is not None and meant != flag and (flag or "").startswith("--no-")
        if meant is not None and not opposite:
            return table[meant] if meant == flag else f"Where it is short for {meant}: {table[meant]}"
    return None
