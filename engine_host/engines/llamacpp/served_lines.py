"""Lines that llama-server writes while it serves, none of which can hold text of a request.

Templates are its own format strings (0c1e57098 and the prebuilt build 11549) whose arguments are numbers.
What it says of a request that it refuses quotes the request, and so do its parsers' messages.
"""

from engine_host.engines.served_lines import ServedLines, templates_of

# "0.02.269.837 W srv    operator(): ", "0.00.022.984 I llama_kv_cache: "; of a slot its numbers too.
_PREFIX = (
    r"\d+\.\d+\.\d+\.\d+ [A-Z] (?:slot +[\w()]{1,20}: id +\d+ \| task -?\d+ \| |"
    r"(?:srv|que|res|spec) +[\w()]{1,20}: |~?[a-z]\w{1,60}: )?"
)

_SLOT = """
- checking sim = # (#/#) > #
- skipping, is_processing = #
- skipping, slot is empty
cached n_tokens = #, memory_seq_rm [#, end)
checking checkpoint with [#, #] against #...
clearing prompt with # tokens
created context checkpoint # of # (pos_min = #, pos_max = #, n_tokens = #, size = # MiB)
draft acceptance = # (# accepted / # generated), mean len = #
draft acceptance = # ( # accepted / # generated), mean len = #
empty prompt - releasing slot
encoding mtmd batch from idx = #, n_chunks = #
erased invalidated context checkpoint (pos_min = #, pos_max = #, n_tokens = #, n_swa = #, \
pos_next = #, size = # MiB)
erasing context checkpoint too close to an earlier one (pos_min = #, pos_max = #, n_tokens = #, size = # MiB)
erasing old context checkpoint (pos_min = #, pos_max = #, n_tokens = #, size = # MiB)
eval time = # ms / # tokens ( # ms per token, # tokens per second)
failed to decode mtmd chunk, idx = #, res = #
failed to encode mtmd batch for chunk idx = #, res = #
failed to get embeddings, token = #, seq_id = #
failed to load prompt from cache
failed to process mtmd chunk, res = #
forcing full prompt re-processing due to lack of cache data \
(likely due to SWA or hybrid/recurrent memory, \
see https://github.com/ggml-org/llama.cpp/pull/##issuecomment-#)
graphs reused = #
init sampler, took # ms, tokens: text = #, total = #
n_gen = #, tg = # t/s, tg_3s = # t/s
n_past was set to #
need to evaluate at least # token for each active slot (n_past = #, task.n_tokens() = #)
new prompt, n_ctx_slot = #, n_keep = #, task.n_tokens = #
new slot, n_ctx = #
processing task, is_child = #
prompt eval time = # ms / # tokens ( # ms per token, # tokens per second)
prompt processing, n_tokens = #, progress = #, t = # s / # tokens per second
restored context checkpoint (pos_min = #, pos_max = #, n_tokens = #, n_past = #, size = # MiB)
reusing chunk with size #, shifting KV cache [#, #) -> [#, #)
saving idle slot to prompt cache
selected slot by LCP similarity, f_sim_best = # (> # thold), f_keep = #
selected slot by LRU, t_last = #
selected slot by id (#)
slot context shift, n_keep = #, n_left = #, n_discard = #
slot is not processing
stop processing: n_tokens = #, truncated = #
superseding context checkpoint at n_tokens = #
total time = # ms / # tokens
"""

_SERVER = """
all slots are idle
cancel task, id_task = #
conv_id= (empty=#)
entering sleeping state
exiting sleeping state
failed to find free space in the KV cache, retrying with smaller batch size, off = #, n_batch = #, ret = #
failed to launch slot with child task, id_task = #
failed to launch slot with parent task, id_task = #
failed to launch slot with task, id_task = #
failed to process speculative batch
failed to restore state with size #
launching slots for parent task id_task = # with # child tasks
model loaded
no tokens to decode
prompt cache update took # ms
purging slot # with # tokens
server is entering sleeping state
server is exiting sleeping state
task id = #, error: Failed to initialize samplers: failed to parse grammar
task id = #, error: request (# tokens) exceeds the available context size (# tokens), try increasing it
unauthorized: Invalid API Key
updating prompt cache
- cache size limit reached, removing oldest entry (size = # MiB)
- cache size limit reduced to # MiB
- cache state: # prompts, # MiB (limits: # MiB, # tokens, # est)
- cache token limit (#, est: #) reached, removing oldest entry (size = # MiB)
- found better prompt with f_keep = #, f_sim = #
- looking for better prompt, base f_keep = #, f_sim = #
- making room for prompt cache entry, removing oldest entry (size = # MiB)
- prompt is already in the cache, skipping
- prompt state size # MiB exceeds cache size limit # MiB, skipping
- removing obsolete cached prompt with length #
- saving prompt with length #, total state size = # MiB (draft: # MiB)
cleaning up before exit...
llama_server: cleaning up before exit...
operator(): cleaning up before exit...
exiting due to HTTP server error
failed to stop HTTP server
"""

# Of the model, its caches and its drafters.
_MODEL = """
all entries in the batch must have the same content types
compute failed while preparing batch of size #
could not initialize batch
could not reserve space for batch with # outputs
failed to allocate compute buffers
failed to allocate graph
failed to allocate output buffer of size # MiB
failed to apply memory context
failed to apply memory update
failed to compute graph, compute status: #
failed to decode, ret = #
failed to encode, ret = #
failed to find # available cells in kv cache
failed to find a memory slot for batch of size #
failed to find a slot for # tokens
failed to initialize batch
failed to initialize graph
failed to prepare attention ubatches
failed to prepare memory update
failed to prepare recurrent ubatches
failed to reserve graph after the memory update
failed to restore sequence state
failed to update the memory context
ggml_backend_sched_graph_compute_async failed with error #
invalid token[#] = #
n_tokens == #
n_tokens = # > size = #
not enough cells in kv cache
not enough cells in kv cache to restore state (# > #)
non-consecutive token position # after # for sequence # with # new tokens
sequence # positions are decreasing (not allowed)
sequence # positions are not continuous
the tokens of sequence # in the input batch have inconsistent sequence positions:
- the last position stored in the memory module of the context (i.e. the KV cache) for sequence # is X = #
- the tokens for sequence # in the input batch have a starting position of Y = #
it is required that the sequence positions remain consecutive: Y = X + #
reserve took # ms, sched copies = #
reserving ...
graphs reused = #
load time = # ms
prompt eval time = # ms / # tokens ( # ms per token, # tokens per second)
eval time = # ms / # runs ( # ms per token, # tokens per second)
total time = # ms / # tokens
llama_process returned #
llama_process(ctx_dft) failed rc=# (n_tokens=#, offset=#)
failed to decode draft batch, ret = #
low acceptance streak (#) - resetting ngram_mod
ngram_mod occupancy # exceeds threshold (#) - resetting
ngram_mod occupancy = #/# (#)
failed to parse grammar
grammar does not contain a 'root' symbol
"""

_SAMPLER = """
sampler params:
repeat_last_n = #, repeat_penalty = #, frequency_penalty = #, presence_penalty = #
dry_multiplier = #, dry_base = #, dry_allowed_length = #, dry_penalty_last_n = #
top_k = #, top_p = #, min_p = #, xtc_probability = #, xtc_threshold = #, typical_p = #, \
top_n_sigma = #, temp = #
mirostat = #, mirostat_lr = #, mirostat_ent = #, adaptive_target = #, adaptive_decay = #
"""

# How it ends: in order, by an assertion, by an exception that nobody caught, by its GPU.
_ENDS = """
Received second interrupt, terminating immediately.
terminate called without an active exception
Aborted (core dumped)
"""

_SAMPLERS = (
    "logits|logit-bias|penalties|dry|top-n-sigma|top-k|typical|top-p|min-p|xtc|temp-ext|temp|infill|adaptive-p|"
    "greedy|dist|mirostat|mirostat-v2"
)
_DRAFTERS = r"[a-z][a-z0-9-]{2,24}"
_PATTERNS = (
    rf"sampler chain: (?:\??(?:{_SAMPLERS})(?: -> )?){{1,24}} ?",
    rf"statistics +{_DRAFTERS}: #(?:[a-z# (),.=/_%|+-]|\d){{0,400}}",
    r"acc per pos = \([\d., ]{0,400}\)",
    r"\| (?:memory breakdown \[MiB\]|  - [\w ()./-]{1,60}) {0,40}\|[\d =+|a-z.()-]{1,200}",
    r"chat format: [A-Za-z0-9 ._-]{1,40}",
    r"(?:srv +llama_server: )?listening on (?:unix://)?/[^\s'\"]{1,200}\.sock",
    r"done request: (?:GET|POST) /(?:v1/)?(?:health|metrics|slots|props|models|completions?|infill|tokenize|"
    r"detokenize|apply-template|embeddings?|chat/completions) \S{0,60} \d{3}",
    # "/src/ggml/src/ggml-cuda/ggml-cuda.cu:98: CUDA error"; an assertion says a piece of its own source.
    r"\S{0,200}/[\w.-]{1,60}\.(?:c|cc|cpp|cu|cuh|h|hpp|m|mm):\d{1,6}: "
    r"(?:GGML_ASSERT\([^\"]{0,200}\) failed|(?:CUDA|HIP|Vulkan|Metal|SYCL) error|fatal error|not implemented|"
    r"unsupported op[\w ':]{0,60})",
    r"CUDA error: [a-z][a-z ,()-]{1,120}",
    r" {1,4}current device: \d{1,3}, in function \w{1,80} at \S{1,200}:\d{1,6}",
    r" {1,4}\w{1,60}\([\w ,.&*>()-]{0,200}\)",
    r"terminate called after throwing an instance of '[\w:<> ,]{1,120}'",
    r"(?:ggml_vulkan|vk|ggml_backend_cuda_buffer_type_alloc_buffer|alloc_tensor_range|ggml_gallocr_\w{1,40})"
    r": [\w .:=-]{0,120}(?:out of memory|failed|ErrorDeviceLost|ErrorOutOfDeviceMemory)[\w .:=-]{0,80}",
    r"(?:[\w ]{0,20}: )?(?:failed to allocate|unable to allocate) [\w ]{0,20} ?buffer(?: of size \d{1,20})?",
    # Frames of a stack: by gdb, by glibc.
    r"#\d{1,3} +0x[0-9a-f]{6,16} in [\w:~<>,()*& .-]{1,300}(?: from \S{1,200})?",
    r"\S{1,200}\([\w.+-]{0,200}\) ?\[0x[0-9a-f]{6,16}\]",
)

# Of each prompt in its cache and of each of its slots some lines before or after each request: thousands, as
# the cache fills, and 200 with 64 slots. They took longer than the request itself. How many prompts there
# are, and which slot and prompt were chosen, is said beside.
_LISTS = (
    r"\d+\.\d+\.\d+\.\d+ [A-Z] (?:srv +(?:"
    r"(?:load|update): +- prompt (?:"
    r"0x[0-9a-f]{1,16}: +\d+ tokens, checkpoints: +\d+, +\d+\.\d+ MiB|"
    r"with length +\d+, lcp = +\d+, f_keep = \d+\.\d+, f_sim = \d+\.\d+)|"
    r"prompt_save: +- saving prompt with length \d+, total state size = \d+\.\d+ MiB \(draft: \d+\.\d+ MiB\)|"
    r"alloc: +- prompt is already in the cache, skipping)|"
    r"slot +[\w()]{1,20}: id +\d+ \| task -?\d+ \| (?:saving idle slot to prompt cache|"
    r" ?- checking sim = \d+\.\d+ \(\d+/\d+\) > \d+\.\d+|"
    r" ?- skipping, (?:is_processing = \d+|slot is empty)))"
)

LLAMA_CPP_LINES = ServedLines(
    prefix=_PREFIX,
    templates=templates_of(_SLOT + _SERVER + _MODEL + _SAMPLER + _ENDS),
    patterns=_PATTERNS,
    left_out=_LISTS,
)
