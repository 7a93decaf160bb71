"""Once a model and its draft model are loaded, drafts are chosen by a copy of the output matrix in 8 bits."""

from functools import wraps


def with_a_copy(original):
    """The same for the proposers of one model runner and the speculators of the other."""

    @wraps(original)
    def load_model(self, *, load_dummy_weights=False):
        original(self, load_dummy_weights=load_dummy_weights)
        if load_dummy_weights:
            # The real ones come later: a copy of these would stay.
            return
        runner = self.model_runner
        drafter = getattr(runner, "drafter", None) or getattr(runner, "speculator", None)
        draft = getattr(drafter, "model", None)
        # A wrapper for graphs passes on what is asked of the model in it, not what is set.
        draft = draft.unwrap() if hasattr(draft, "unwrap") else draft
        if draft is None:
            return
        from .head import output_layer, put_in

        head = output_layer(runner.get_model())
        # A draft model with an output layer of its own keeps it.
        if head is not None and getattr(draft, "lm_head", None) is head:
            # What the weights took is what the KV cache does not get.
            runner.model_memory_usage = getattr(runner, "model_memory_usage", 0) + put_in(
                draft, self.vllm_config
            )

    return load_model
