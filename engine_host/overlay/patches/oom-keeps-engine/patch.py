"""A step without enough memory: the worker says so instead of dying, the scheduler fails what was in it."""

from functools import wraps

PATCH = "oom-keeps-engine"
MARK = "sndr_out_of_memory"
# Steps with half the token budget after such a step, so that the next one does not run into the same.
CAREFUL_STEPS = 100
SMALLEST_BUDGET = 256
# How long the ranks of a step wait for one another before they give the engine up.
AGREE_SECONDS = 10.0
# How often this rank has asked the others.
_asked = 0


def survive(original):
    """The worker's step; what runs out of memory becomes an output that carries the mark."""
    from sndr_overlay.hits import count

    @wraps(original)
    def execute_model(self, scheduler_output):
        import torch

        count(PATCH)
        self._sndr_pending = None
        try:
            return original(self, scheduler_output)
        except torch.OutOfMemoryError as error:
            if not _all_ran_out(self.vllm_config.parallel_config, error):
                _end_if_unheard(self, error)
                raise
            said = str(error)
        # Outside of the handler: the traceback would keep the step's tensors alive.
        return _failed_output(self, scheduler_output, said)

    return execute_model


def _all_ran_out(parallel, error):
    """Return True if every rank ran out of memory at the same place, so that none waits for another.

    A rank that went on would wait for the others' part of a sum; the error then goes on and ends the engine.
    """
    ranks = parallel.world_size
    if ranks == 1:
        return True
    if parallel.tensor_parallel_size != ranks or getattr(parallel, "data_parallel_size", 1) > 1:
        return False
    import torch
    from vllm.distributed import get_tp_group

    group = get_tp_group().cpu_group
    # First who is there: the other calls have no limit of their own.
    return _in_time(torch.distributed.get_rank(), ranks) and _same_everywhere(
        (_place(error), _drained()), ranks, group
    )


def _end_if_unheard(worker, error):
    """End this process if vLLM does not hear its rank; the executor sees that, and ends the engine.

    MultiprocExecutor takes the answer to a step from one rank (`_get_output_rank`). Where another one fails,
    the ranks that went on wait for its part of a sum, and the executor for them: 300 seconds by default.
    """
    import os

    from vllm.logger import init_logger

    parallel = worker.vllm_config.parallel_config
    stage = parallel.tensor_parallel_size * getattr(parallel, "prefill_context_parallel_size", 1)
    if parallel.distributed_executor_backend != "mp" or worker.rank == parallel.world_size - stage:
        return
    said = str(error).split("\n")[0]
    init_logger("vllm.sndr").error("rank %d ran out of memory and not every other: %s", worker.rank, said)
    os._exit(1)


def _in_time(rank, ranks):
    """Return True if every rank came here, each for the same time of asking.

    `monitored_barrier` has its limit on rank 0 alone (ProcessGroupGloo.cpp): another one that came alone
    would wait for the group's own half an hour.
    """
    global _asked
    from datetime import timedelta

    from torch.distributed import distributed_c10d

    _asked += 1
    here = [f"{PATCH}/{_asked}/{number}" for number in range(ranks)]
    store = distributed_c10d._get_default_store()
    store.set(here[rank], "out of memory")
    try:
        store.wait(here, timedelta(seconds=AGREE_SECONDS))
    except Exception:  # noqa: BLE001 - whatever keeps the ranks apart, the step's own error is told
        return False
    return True


def _same_everywhere(mine, ranks, group):
    import torch

    told = [None] * ranks
    torch.distributed.all_gather_object(told, mine, group=group)
    return all(drained and place == mine[0] for place, drained in told)


def _place(error):
    """The lines that the error came through, which are the same where the ranks did the same."""
    import traceback

    return [(line.filename, line.lineno) for line in traceback.extract_tb(error.__traceback__)]


def _drained():
    """Return True if the GPU comes to an end of its work: a sum that a rank is missing in never does."""
    import time

    import torch

    if not torch.cuda.is_available():
        return True
    done = torch.cuda.Event()
    done.record()
    until = time.monotonic() + AGREE_SECONDS
    while not done.query():
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True


def answer_pending(original):
    """The worker's sampling, which has nothing to sample from after a step that failed."""

    @wraps(original)
    def sample_tokens(self, grammar_output):
        pending = getattr(self, "_sndr_pending", None)
        if pending is not None:
            self._sndr_pending = None
            return pending
        return original(self, grammar_output)

    return sample_tokens


def fail_requests(original):
    """The scheduler's bookkeeping; the requests of a marked step end with an error."""
    from sndr_overlay.hits import count

    @wraps(original)
    def update_from_output(self, scheduler_output, model_runner_output):
        outputs = original(self, scheduler_output, model_runner_output)
        if getattr(model_runner_output, MARK, False):
            count(PATCH)
            _end_with_error(self, list(scheduler_output.num_scheduled_tokens), outputs)
            _be_careful(self)
        else:
            _relax(self)
        return outputs

    return update_from_output


def _failed_output(worker, scheduler_output, said):
    import gc

    import torch
    from vllm.logger import init_logger
    from vllm.v1.outputs import ModelRunnerOutput

    # A half-done step must not be taken for one that waits to be sampled from.
    if getattr(worker.model_runner, "execute_model_state", None) is not None:
        worker.model_runner.execute_model_state = None
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    ids = list(scheduler_output.num_scheduled_tokens)
    init_logger("vllm.sndr").error("%d requests failed for want of memory: %s", len(ids), said.split("\n")[0])
    output = ModelRunnerOutput(req_ids=ids, req_id_to_index={name: index for index, name in enumerate(ids)})
    setattr(output, MARK, True)
    worker._sndr_pending = output
    return output


def _end_with_error(scheduler, ids, outputs):
    from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs, FinishReason
    from vllm.v1.request import RequestStatus

    alive = [scheduler.requests[name] for name in ids if name in scheduler.requests]
    scheduler.finish_requests([request.request_id for request in alive], RequestStatus.FINISHED_ERROR)
    for request in alive:
        end = EngineCoreOutput(
            request_id=request.request_id, new_token_ids=[], finish_reason=FinishReason.ERROR
        )
        batch = outputs.setdefault(request.client_index, EngineCoreOutputs())
        batch.outputs.append(end)


def _be_careful(scheduler):
    if not hasattr(scheduler, "_sndr_budget"):
        scheduler._sndr_budget = scheduler.max_num_scheduled_tokens
    scheduler._sndr_careful = CAREFUL_STEPS
    half = max(scheduler.max_num_scheduled_tokens // 2, SMALLEST_BUDGET)
    scheduler.max_num_scheduled_tokens = min(scheduler.max_num_scheduled_tokens, half)


def _relax(scheduler):
    left = getattr(scheduler, "_sndr_careful", 0)
    if left:
        scheduler._sndr_careful = left - 1
        if left == 1:
            scheduler.max_num_scheduled_tokens = scheduler._sndr_budget
