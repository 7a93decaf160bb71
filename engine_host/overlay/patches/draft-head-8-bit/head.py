"""The output matrix that drafts are chosen by: the model's own, copied in 8 bits."""

import torch
from torch import nn

from .product import MOST_ROWS, STEP, product, quantised


class DraftHead(nn.Module):
    """Stands where a draft model holds the output layer of the model that it drafts for."""

    def __init__(self, head):
        super().__init__()
        # In a tuple, so that the model's own layer does not become a part of this one.
        self._shared = (head,)
        self.quant_method = EightBits(head)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._shared[0], name)


class EightBits:
    """The multiplication of a `DraftHead`; vLLM calls it an embedding's quant_method."""

    def __init__(self, head):
        self._head = head
        self._numbers, self._steps = quantised(head.weight)

    @property
    def size(self):
        """Bytes that the copy takes."""
        return self._numbers.nbytes + self._steps.nbytes

    def apply(self, layer, x, bias=None):
        """x (…, hidden) to logits (…, vocabulary); many rows at once take the model's own matrix."""
        rows = x.reshape(-1, x.shape[-1])
        if not 0 < rows.shape[0] <= MOST_ROWS:
            return self._head.quant_method.apply(self._head, x, bias=bias)
        from sndr_overlay.hits import count

        count("draft-head-8-bit")
        logits = product(rows, self._numbers, self._steps)
        if bias is not None:
            logits += bias
        return logits.reshape(*x.shape[:-1], -1)

    def worst_error(self):
        """The largest relative error against float64, of as many rows as each compiled kernel takes."""
        weight = self._head.weight
        some = torch.arange(0, weight.shape[0], max(1, weight.shape[0] // 512), device=weight.device)
        known = self._numbers[some].cpu().double() * self._steps[some].cpu().double()[:, None]
        # Of its own: what the engine draws must not depend on whether this ran.
        draw = torch.Generator(device=weight.device).manual_seed(0)
        worst = 0.0
        for count in (1, 8, 16, 32, MOST_ROWS):
            rows = torch.randn(count, weight.shape[1], generator=draw, device=weight.device).to(weight.dtype)
            found = product(rows, self._numbers, self._steps)[:, some].cpu().double()
            wanted = rows.cpu().double() @ known.T
            error = float((found - wanted).norm() / wanted.norm())
            # Not a number compares as false with everything.
            worst = error if not error <= worst else worst
        return worst


def output_layer(model):
    """The output layer of a model, also of one whose language model is a part of it."""
    inner = model.get_language_model() if hasattr(model, "get_language_model") else model
    return getattr(inner, "lm_head", None) or getattr(model, "lm_head", None)


def put_in(draft, vllm_config):
    """Replace the output layer that a draft model shares with its model; the bytes that this takes.

    The layer stays, and the log says why, where that cannot be.
    """
    from vllm.logger import init_logger

    logger = init_logger("vllm.sndr")
    head = getattr(draft, "lm_head", None)
    why = _unsuited(head, vllm_config)
    made = None
    if not why:
        made = DraftHead(head)
        why = _wrong(made)
    if why:
        logger.warning("Drafts are chosen by the model's output matrix as it is: %s.", why)
        return 0
    draft.lm_head = made
    for layer in _layers(draft):
        shared = getattr(layer, "shared_head", None)
        if shared is not None and getattr(shared, "head", None) is head:
            shared.head = made
    logger.info(
        "Drafts are chosen by a copy of the output matrix in 8 bits: %d x %d, %.2f GiB.",
        *head.weight.shape,
        made.quant_method.size / 2**30,
    )
    return made.quant_method.size


def _unsuited(head, vllm_config):
    """Return the reason against a copy; empty if there is none."""
    from vllm.model_executor.layers.linear import UnquantizedLinearMethod
    from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod

    # The second where a quantised checkpoint leaves its output layer out.
    plain = UnquantizedEmbeddingMethod, UnquantizedLinearMethod
    weight = getattr(head, "weight", None)
    model = vllm_config.model_config
    if weight is None or not isinstance(getattr(head, "quant_method", None), plain):
        return "it is quantised, or wrapped"
    if not weight.is_floating_point() or model.head_dtype != weight.dtype:
        return f"its numbers are {weight.dtype}, its products {model.head_dtype}"
    if weight.shape[1] % STEP:
        return f"{weight.shape[1]} columns are no multiple of {STEP}"
    return ""


def _wrong(made):
    """Run the self-test and return its fault; it also compiles every kernel before the first request."""
    try:
        error = made.quant_method.worst_error()
    except Exception as failed:  # noqa: BLE001 - whatever a compiler raises on a GPU that nobody tried
        return f"the self-test failed with {type(failed).__name__}: {str(failed)[:200]}"
    return "" if error < 1e-2 else f"the self-test is off by {error:.1e}"


def _layers(draft):
    layers = getattr(getattr(draft, "model", None), "layers", None)
    if layers is None:
        return ()
    return layers.values() if isinstance(layers, nn.ModuleDict) else layers
