"""Lines that vLLM writes while it serves, none of which can hold text of a request (0.26 and 0.32).

What it says of a request quotes the request: tool calls, grammars, the parameters of the requests at work
when its engine died. Of an error its type and the places in the source are kept.
"""

from engine_host.engines.served_lines import ServedLines, templates_of

# "(EngineCore pid=2900) INFO 11-21 03:24:50 [kv_cache_utils.py:2327] "; of an exception its type.
_BUILT_IN = (
    "ArithmeticError|AssertionError|AttributeError|BrokenPipeError|BufferError|ConnectionResetError|EOFError|"
    "FileNotFoundError|FloatingPointError|ImportError|IndexError|KeyError|KeyboardInterrupt|LookupError|"
    "MemoryError|ModuleNotFoundError|NameError|NotImplementedError|OSError|OverflowError|PermissionError|"
    "RecursionError|ReferenceError|RuntimeError|StopIteration|SystemError|SystemExit|TimeoutError|TypeError|"
    "UnicodeDecodeError|UnicodeEncodeError|ValueError|ZeroDivisionError|asyncio\\.CancelledError"
)
_PREFIX = (
    r"(?:\([A-Z]\w{1,40}(?: pid=\d{1,10})?\) )?"
    r"(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)(?: \d\d-\d\d [\d:]{8} \[\w{1,60}\.py:\d{1,6}\] ?|: {1,5}))?"
    rf"(?:(?:(?:vllm|torch|triton|pydantic_core|fastapi|starlette)\.[\w.]{{1,120}}(?:Error|Exception)|"
    rf"{_BUILT_IN}): )?"
)

_TEMPLATES = """
Started server process [#]
Waiting for application startup.
Application startup complete.
Application shutdown complete.
Waiting for application shutdown.
Finished server process [#]
Shutting down
Waiting for connections to close. (CTRL+C to force quit)
Waiting for background tasks to complete. (CTRL+C to force quit)
Invalid HTTP request received.
Exception in ASGI application
Exception in thread
Traceback (most recent call last):
During handling of the above exception, another exception occurred:
The above exception was the direct cause of the following exception:
+ Exception Group Traceback (most recent call last):
EngineCore encountered a fatal error.
EngineCore failed to start.
EngineCore encountered an issue. See stack trace (above) for the root cause.
Engine core initialization failed. See root cause above. Failed core proc(s): {}
AsyncLLM output_handler failed.
AsyncLLM failed.
WorkerProc hit an exception.
WorkerProc failed.
WorkerProc failed to start.
WorkerProc was terminated
Error in chat completion stream generator.
Error in completion stream generator.
Error in parser creation.
Error in preprocessing prompt inputs
Parent process exited, terminating worker queues
Successfully reset prefix cache
Failed to reset prefix cache because some blocks (#) are not freed yet
Dumping input data
LLMatcher error:
Unexpected engine_idx: #
Very small vocabulary intersection (# tokens).
[shutdown] API server: shutdown triggered
[shutdown] API server: engine client stopped
[shutdown] API server: signalling HTTP server shutdown
[shutdown] API server: shutting down FastAPI HTTP server
[shutdown] MPClient: stopping engine manager
[shutdown] MPClient: engine manager stopped
[shutdown] MPClient: cleaning up background resources
[shutdown] MPClient: complete
[shutdown] EngineCore: request processing complete; starting resource teardown
[shutdown] EngineCore: exiting busy loop
[shutdown] Executor: all workers exited gracefully
CUDA out of memory.
CUDA driver error: out of memory
warnings.warn('resource_tracker: There appear to be %d '
"""

_PATTERNS = (
    # "Engine 000: Avg prompt throughput: 1.2 tokens/s, …, GPU KV cache usage: 0.1%, …"
    r"Engine \d{1,4}: Avg prompt throughput: [\w :,./%()-]{1,400}",
    r"SpecDecoding metrics: [\w :,./%()+-]{1,600}",
    r"MM cache hit rate: [\d.]{1,8}%",
    r"Starting vLLM server on [\w:/.\[\]@-]{1,200}",
    r"\S{0,120} - \"(?:GET|POST) /(?:health|metrics|ping|version|tokenize|detokenize|sndr/\w{1,40}|"
    r"v1/(?:models|completions|chat/completions|embeddings|responses|messages|messages/count_tokens)) "
    r"HTTP/1\.[01]\" \d{3}(?: [A-Z][A-Za-z ]{1,40})?",
    r"\[shutdown\] (?:API server|MPClient|EngineCore|Executor|Process manager|Subprocess manager): "
    r"(?:trigger received signal=[A-Z]{3,10}|start|stopping engine client|waiting for worker exit|"
    r"send sigterm to process|force killing remaining process(?:es)?|"
    r"workers still running after [\w ;]{1,60})"
    r"(?: (?:mode|timeout|count|pid)(?:=| )[a-z\d.]{1,12}| (?:EngineCore|APIServer|VLLM)[\w:]{0,30})*",
    r"\[shutdown\] force killing sub process VLLM::\w{1,30} pid \d{1,10}",
    r"Worker proc [\w-]{1,30} died unexpectedly \(exit code: (?:-?\d{1,4}|None)\), shutting down executor\.",
    r"(?:Exception|HTTPException|RequestValidationError|Engine Exception) caught\. Request id: "
    r"(?:None|(?:chatcmpl|cmpl|resp|embd|message)-[0-9a-f-]{16,64})",
    r"Request (?:chatcmpl|cmpl|resp|embd)-[0-9a-f-]{16,64}(?:-\d{1,4})? (?:aborted\.|"
    r"failed with an internal error during generation)",
    r"(?:CUDA out of memory\. )?Tried to allocate [\d.]{1,12} [KMGT]iB\.(?: [A-Za-z][\w ,.:()/%=-]{0,700})?",
    r"CUDA error: [a-z][a-z ,()-]{1,120}",
    r"(?:CUDA kernel errors might be asynchronously reported|For debugging consider passing|Compile with "
    r"`TORCH_USE_CUDA_DSA`|Search for `cuda\w{1,60}')[\w ,.`'/:=-]{0,300}",
    r"NCCL error[\w ,.:/()-]{0,200}",
    r"DefaultCPUAllocator: can't allocate memory: you tried to allocate \d{1,20} bytes\.[\w ,.:()-]{0,100}",
    r"terminate called after throwing an instance of '[\w:<> ,]{1,120}'",
    r"Fatal Python error: [A-Z][a-z ]{1,60}",
    # Places in the sources of Python and of installed packages; the lines of source are left out.
    r"[ |]{0,24}File \"/[\w./+~@-]{0,300}/(?:site-packages|dist-packages|python3\.\d{1,2})/"
    r"[\w./+-]{1,200}\.py\", line \d{1,7}, in [\w.<>]{1,120}",
    r"[ |]{0,24}File \"<frozen [\w.]{1,60}>\", line \d{1,7}, in [\w.<>]{1,120}",
    r"[ |]{0,24}[\^~][\^~ ]{0,200}",
    r"/[\w./+~@-]{0,300}/python3\.\d{1,2}/multiprocessing/resource_tracker\.py:\d{1,5}: UserWarning: "
    r"resource_tracker: There appear to be \d{1,6} leaked (?:semaphore|shared_memory) objects "
    r"to clean up at shutdown",
)

VLLM_LINES = ServedLines(prefix=_PREFIX, templates=templates_of(_TEMPLATES), patterns=_PATTERNS)
