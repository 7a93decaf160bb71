"""The engine core's process, when vLLM spawns it, is the one that has imported everything already."""


def hand_over(original):
    """As the original; while it spawns one engine core, the process that waits is taken for it."""
    import gc
    from functools import wraps
    from multiprocessing import util

    from . import ahead

    @wraps(original)
    def begin(self, local_engine_count, start_index, local_start_index, vllm_config, *rest, **named):
        gc.enable()
        arguments = (self, local_engine_count, start_index, local_start_index, vllm_config, *rest)
        if local_engine_count != 1 or vllm_config.parallel_config.data_parallel_size != 1:
            return original(*arguments, **named)
        own = util.spawnv_passfds

        def spawnv_passfds(path, args, passfds):
            taken = ahead.hand_over(path, args, passfds)
            return own(path, args, passfds) if taken is None else taken

        util.spawnv_passfds = spawnv_passfds
        try:
            return original(*arguments, **named)
        finally:
            util.spawnv_passfds = own

    return begin
