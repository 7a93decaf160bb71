"""The demonstration model in plain PyTorch: Qwen3.5's text architecture, written for fast training.

Six of eight layers are gated delta networks, every fourth is full attention with an output gate, and one
multi-token-prediction (MTP) layer drafts the token after the next.  Parameter names are those of the
published checkpoints, so a state dict is a checkpoint.  Sources: transformers' ``modeling_qwen3_5.py`` for
the layers, llama.cpp's ``src/models/qwen35.cpp`` and vLLM's ``qwen3_5_mtp.py`` for the MTP layer, "Gated
Delta Networks" (arXiv 2412.06464) for the chunked form.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name that PyTorch code uses
from torch import Tensor, nn


@dataclass(frozen=True)
class DemoConfig:
    """Sizes of the model; the defaults are the shipped ones (11.5 M parameters with the MTP layer)."""

    vocab_size: int = 8192
    hidden_size: int = 256
    intermediate_size: int = 768
    num_hidden_layers: int = 8
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    linear_key_head_dim: int = 64
    linear_value_head_dim: int = 64
    linear_num_key_heads: int = 4
    linear_num_value_heads: int = 8
    linear_conv_kernel_dim: int = 4
    full_attention_interval: int = 4
    rms_norm_eps: float = 1e-6
    rope_theta: float = 100_000.0
    partial_rotary_factor: float = 0.25
    max_position_embeddings: int = 8192

    def is_full_attention(self, layer: int) -> bool:
        """Say whether layer number `layer` (from 0) is a full-attention one."""
        return (layer + 1) % self.full_attention_interval == 0

    def to_hf(self, eos_token_id: int, pad_token_id: int) -> dict[str, Any]:
        """Return the contents of ``config.json`` for transformers and vLLM."""
        own = asdict(self)
        theta, partial = own.pop("rope_theta"), own.pop("partial_rotary_factor")
        return own | {
            "architectures": ["Qwen3_5ForCausalLM"],
            "model_type": "qwen3_5_text",
            "layer_types": [
                "full_attention" if self.is_full_attention(i) else "linear_attention"
                for i in range(self.num_hidden_layers)
            ],
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": theta,
                "partial_rotary_factor": partial,
            },
            "partial_rotary_factor": partial,
            "attention_bias": False,
            "attention_dropout": 0.0,
            "attn_output_gate": True,
            "hidden_act": "silu",
            "initializer_range": 0.02,
            "mamba_ssm_dtype": "float32",
            "mtp_num_hidden_layers": 1,
            "mtp_use_dedicated_embeddings": False,
            "tie_word_embeddings": True,
            "use_cache": True,
            "dtype": "bfloat16",
            "bos_token_id": None,
            "eos_token_id": eos_token_id,
            "pad_token_id": pad_token_id,
        }


class RMSNorm(nn.Module):
    """Root-mean-square norm whose stored weight is the distance from one, over the last dimension."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        """Return x / rms(x) * (1 + weight), same shape and dtype as `x`."""
        f = x.float()
        f = f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + self.eps)
        return (f * (1.0 + self.weight.float())).type_as(x)


class GatedRMSNorm(nn.Module):
    """Root-mean-square norm with a plain weight, then a SiLU gate; per value head."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        """Return norm(x) * weight * silu(gate); both (..., dim)."""
        f = x.float()
        f = f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + self.eps)
        return (self.weight * f * F.silu(gate.float())).type_as(gate)


def unit_lower_inverse(a: Tensor) -> Tensor:
    """Return (I + a)^-1 for strictly lower triangular `a` of shape (..., n, n), n = 16 * 2^k.

    Blocks of 16 by the finite Neumann product (higher powers would cancel badly in 32 bits), then joined
    pairwise: inv([[A, 0], [C, B]]) = [[A^-1, 0], [-B^-1 C A^-1, B^-1]].
    """
    n = a.shape[-1]
    blocks = n // 16
    lead = a.shape[:-2]
    grid = a.reshape(*lead, blocks, 16, blocks, 16)
    power = -torch.stack([grid[..., i, :, i, :] for i in range(blocks)], dim=-3)
    eye = torch.eye(16, dtype=a.dtype, device=a.device)
    inverse = eye + power
    for _ in range(3):
        power = power @ power
        inverse = inverse + inverse @ power
    size = 16
    while size < n:
        pairs = n // (2 * size)
        upper, lower = inverse[..., 0::2, :, :], inverse[..., 1::2, :, :]
        view = a.reshape(*lead, pairs, 2, size, pairs, 2, size)
        corner = torch.stack([view[..., i, 1, :, i, 0, :] for i in range(pairs)], dim=-3)
        below = -(lower @ corner @ upper)
        top = torch.cat([upper, torch.zeros_like(upper)], dim=-1)
        inverse = torch.cat([top, torch.cat([below, lower], dim=-1)], dim=-2)
        size *= 2
    return inverse.squeeze(-3)


def chunked_delta_rule(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, chunk: int = 64) -> Tensor:
    """Run the gated delta rule over whole sequences, in parallel over chunks of `chunk` tokens.

    `q`, `k`: (batch, heads, time, key dim), unit length, `q` scaled; `v`: (batch, heads, time, value dim);
    `g` (log of the decay, <= 0) and `beta`: (batch, heads, time); time a multiple of `chunk`; all float32.
    Returns (batch, heads, time, value dim).  A decay of about -40 starts a new document.  The state before
    every chunk comes from a parallel prefix scan over the affine maps S -> M S + N of the chunks.
    """
    b, h, t, dk = q.shape
    dv, n = v.shape[-1], t // chunk
    q, k = q.reshape(b, h, n, chunk, dk), k.reshape(b, h, n, chunk, dk)
    v, beta = v.reshape(b, h, n, chunk, dv), beta.reshape(b, h, n, chunk)
    cum = g.reshape(b, h, n, chunk).cumsum(-1)
    lower = torch.ones(chunk, chunk, dtype=torch.bool, device=q.device).tril()
    # Positive differences (the future) are masked before exp, where they could overflow.
    pair = (cum.unsqueeze(-1) - cum.unsqueeze(-2)).masked_fill(~lower, float("-inf")).exp()
    kt = k.transpose(-1, -2)
    k_beta = k * beta.unsqueeze(-1)
    inverse = unit_lower_inverse(((k_beta @ kt) * pair).tril(-1))
    new_values = inverse @ (v * beta.unsqueeze(-1))
    k_read = inverse @ (k_beta * cum.exp().unsqueeze(-1))
    attention = (q @ kt) * pair
    k_write = (k * (cum[..., -1:] - cum).exp().unsqueeze(-1)).transpose(-1, -2)
    eye = torch.eye(dk, dtype=q.dtype, device=q.device)
    m = cum[..., -1].exp()[..., None, None] * eye - k_write @ k_read
    s = k_write @ new_values
    step = 1
    while step < n:  # Hillis-Steele: after it, s[i] is the state after chunk i
        s = torch.cat([s[:, :, :step], s[:, :, step:] + m[:, :, step:] @ s[:, :, :-step]], dim=2)
        if 2 * step < n:
            m = torch.cat([m[:, :, :step], m[:, :, step:] @ m[:, :, :-step]], dim=2)
        step *= 2
    before = F.pad(s[:, :, :-1], (0, 0, 0, 0, 1, 0))
    out = (q * cum.exp().unsqueeze(-1)) @ before + attention @ (new_values - k_read @ before)
    return out.reshape(b, h, t, dv)


class GatedDeltaNet(nn.Module):
    """Linear attention by the gated delta rule with a short causal convolution in front."""

    def __init__(self, c: DemoConfig) -> None:
        super().__init__()
        self.c = c
        self.key_dim = c.linear_num_key_heads * c.linear_key_head_dim
        self.value_dim = c.linear_num_value_heads * c.linear_value_head_dim
        conv_dim = 2 * self.key_dim + self.value_dim
        self.in_proj_qkv = nn.Linear(c.hidden_size, conv_dim, bias=False)
        self.in_proj_z = nn.Linear(c.hidden_size, self.value_dim, bias=False)
        self.in_proj_b = nn.Linear(c.hidden_size, c.linear_num_value_heads, bias=False)
        self.in_proj_a = nn.Linear(c.hidden_size, c.linear_num_value_heads, bias=False)
        # Only the weight of the module is used: the convolution below must not cross documents.
        self.conv1d = nn.Conv1d(conv_dim, conv_dim, c.linear_conv_kernel_dim, groups=conv_dim, bias=False)
        self.dt_bias = nn.Parameter(torch.zeros(c.linear_num_value_heads))
        self.A_log = nn.Parameter(torch.zeros(c.linear_num_value_heads))
        self.norm = GatedRMSNorm(c.linear_value_head_dim, c.rms_norm_eps)
        self.out_proj = nn.Linear(self.value_dim, c.hidden_size, bias=False)

    def forward(self, x: Tensor, age: Tensor) -> Tensor:
        """Mix tokens of `x` (batch, time, hidden); `age` (batch, time) counts tokens since document start."""
        c, (b, t, _) = self.c, x.shape
        mixed = self.in_proj_qkv(x)
        kernel = self.conv1d.weight.squeeze(1).float()
        width = c.linear_conv_kernel_dim
        total = mixed.float() * kernel[:, -1]
        for back in range(1, width):
            shifted = F.pad(mixed, (0, 0, back, 0))[:, :t].float()
            total = total + torch.where((age >= back).unsqueeze(-1), shifted * kernel[:, -1 - back], 0.0)
        mixed = F.silu(total)
        q, k, v = mixed.split([self.key_dim, self.key_dim, self.value_dim], dim=-1)
        heads = c.linear_num_value_heads
        repeat = heads // c.linear_num_key_heads
        q = q.reshape(b, t, -1, c.linear_key_head_dim).transpose(1, 2)
        k = k.reshape(b, t, -1, c.linear_key_head_dim).transpose(1, 2)
        v = v.reshape(b, t, -1, c.linear_value_head_dim).transpose(1, 2)
        q = q * torch.rsqrt(q.pow(2).sum(-1, keepdim=True) + 1e-6) * c.linear_key_head_dim**-0.5
        k = k * torch.rsqrt(k.pow(2).sum(-1, keepdim=True) + 1e-6)
        q, k = q.repeat_interleave(repeat, dim=1), k.repeat_interleave(repeat, dim=1)
        beta = self.in_proj_b(x).float().sigmoid().transpose(1, 2)
        g = -self.A_log.float().exp() * F.softplus(self.in_proj_a(x).float() + self.dt_bias)
        # A new document forgets the state: exp(-40) of it is below float32's resolution.
        g = torch.where((age == 0).unsqueeze(-1), torch.full_like(g, -40.0), g).transpose(1, 2)
        with torch.autocast(x.device.type, enabled=False):
            out = chunked_delta_rule(q, k, v, g, beta)
        z = self.in_proj_z(x).reshape(b, t, heads, c.linear_value_head_dim)
        out = self.norm(out.transpose(1, 2), z)
        return self.out_proj(out.reshape(b, t, self.value_dim))  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Grouped-query attention with normed queries and keys, partial rotary positions and an output gate."""

    def __init__(self, c: DemoConfig) -> None:
        super().__init__()
        self.c = c
        q, kv = c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
        self.q_proj = nn.Linear(c.hidden_size, 2 * q, bias=False)
        self.k_proj = nn.Linear(c.hidden_size, kv, bias=False)
        self.v_proj = nn.Linear(c.hidden_size, kv, bias=False)
        self.o_proj = nn.Linear(q, c.hidden_size, bias=False)
        self.q_norm = RMSNorm(c.head_dim, c.rms_norm_eps)
        self.k_norm = RMSNorm(c.head_dim, c.rms_norm_eps)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        """Attend over `x` (batch, time, hidden); `mask` (batch, 1, time, time) is true where allowed."""
        c, (b, t, _) = self.c, x.shape
        q, gate = self.q_proj(x).view(b, t, -1, 2 * c.head_dim).chunk(2, dim=-1)
        q = rotate(self.q_norm(q).transpose(1, 2), rotary)
        k = rotate(self.k_norm(self.k_proj(x).view(b, t, -1, c.head_dim)).transpose(1, 2), rotary)
        v = self.v_proj(x).view(b, t, -1, c.head_dim).transpose(1, 2)
        repeat = c.num_attention_heads // c.num_key_value_heads
        k, v = k.repeat_interleave(repeat, dim=1), v.repeat_interleave(repeat, dim=1)
        out = F.scaled_dot_product_attention(q, k, v.to(q.dtype), attn_mask=mask)
        out = out.transpose(1, 2).reshape(b, t, -1) * gate.reshape(b, t, -1).sigmoid()
        return self.o_proj(out)  # type: ignore[no-any-return]


def rotate(x: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    """Apply rotary positions to the first dimensions of `x` (batch, heads, time, head dim)."""
    cos, sin = rotary
    size = cos.shape[-1]
    part, rest = x[..., :size], x[..., size:]
    a, b = part.chunk(2, dim=-1)
    return torch.cat([part * cos + torch.cat([-b, a], dim=-1) * sin, rest], dim=-1).type_as(x)


class MLP(nn.Module):
    """SwiGLU feed-forward layer."""

    def __init__(self, c: DemoConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(c.hidden_size, c.intermediate_size, bias=False)
        self.up_proj = nn.Linear(c.hidden_size, c.intermediate_size, bias=False)
        self.down_proj = nn.Linear(c.intermediate_size, c.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return down(silu(gate(x)) * up(x)), (..., hidden)."""
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))  # type: ignore[no-any-return]


class Layer(nn.Module):
    """One pre-norm decoder layer of either kind."""

    def __init__(self, c: DemoConfig, full: bool) -> None:
        super().__init__()
        self.full = full
        if full:
            self.self_attn = Attention(c)
        else:
            self.linear_attn = GatedDeltaNet(c)
        self.mlp = MLP(c)
        self.input_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)

    def forward(self, x: Tensor, age: Tensor, rotary: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        """Return the layer's output for `x` (batch, time, hidden)."""
        h = self.input_layernorm(x)
        x = x + (self.self_attn(h, rotary, mask) if self.full else self.linear_attn(h, age))
        return x + self.mlp(self.post_attention_layernorm(x))  # type: ignore[no-any-return]


class Trunk(nn.Module):
    """Embedding, decoder layers and last norm (the checkpoint's ``model.``)."""

    def __init__(self, c: DemoConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        self.layers = nn.ModuleList(Layer(c, c.is_full_attention(i)) for i in range(c.num_hidden_layers))
        self.norm = RMSNorm(c.hidden_size, c.rms_norm_eps)


class MTP(nn.Module):
    """The drafting layer (the checkpoint's ``mtp.``): token t+1 and the state at t give token t+2."""

    def __init__(self, c: DemoConfig) -> None:
        super().__init__()
        self.pre_fc_norm_embedding = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.pre_fc_norm_hidden = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.fc = nn.Linear(2 * c.hidden_size, c.hidden_size, bias=False)
        self.layers = nn.ModuleList([Layer(c, full=True)])
        self.norm = RMSNorm(c.hidden_size, c.rms_norm_eps)

    def forward(
        self, embedding: Tensor, hidden: Tensor, age: Tensor, rotary: tuple[Tensor, Tensor], mask: Tensor
    ) -> Tensor:
        """Return the normed state (batch, time, hidden) that the shared head reads.

        `embedding` is that of the token one later than `hidden`'s; `hidden` is a normed state, the trunk's
        or this layer's own from the draft before.
        """
        joined = torch.cat([self.pre_fc_norm_embedding(embedding), self.pre_fc_norm_hidden(hidden)], dim=-1)
        return self.norm(self.layers[0](self.fc(joined), age, rotary, mask))  # type: ignore[no-any-return]


def draw_weights(model: nn.Module, c: DemoConfig) -> None:
    """Draw the starting weights from the current random state."""
    depth = 2 * c.num_hidden_layers
    for name, p in model.named_parameters():
        if name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight")):
            nn.init.normal_(p, std=0.02 / math.sqrt(depth) * 2)
        elif "conv1d" in name:
            nn.init.uniform_(p, -0.5, 0.5)
        elif name.endswith("A_log"):
            # Time constants from one token to many hundreds, so that some heads remember.
            p.data.copy_(torch.linspace(math.log(0.5), math.log(8.0), p.numel()))
        elif name.endswith("dt_bias"):
            dt = torch.exp(torch.linspace(math.log(1e-3), math.log(1e-1), p.numel()))
            p.data.copy_(dt + torch.log(-torch.expm1(-dt)))
        elif p.dim() == 2:
            nn.init.normal_(p, std=0.02 if "embed" in name else p.shape[1] ** -0.5)


def tables(c: DemoConfig, age: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Return the rotary tables (time, rotary dim) and the attention mask for `age` (batch, time)."""
    t = age.shape[1]
    size = int(c.head_dim * c.partial_rotary_factor)
    steps = torch.arange(0, size, 2, dtype=torch.float32, device=age.device) / size
    index = torch.arange(t, device=age.device)
    angle = index[:, None].float() * (c.rope_theta**-steps)[None]
    angle = torch.cat([angle, angle], dim=-1)
    start = index[None] - age  # where the token's document begins in its row
    mask = (start[:, :, None] <= index[None, None, :]) & (index[None, :, None] >= index[None, None, :])
    return (angle.cos(), angle.sin()), mask[:, None]


class DemoModel(nn.Module):
    """The whole model; the head is the embedding, transposed."""

    def __init__(self, c: DemoConfig) -> None:
        super().__init__()
        self.c = c
        self.model = Trunk(c)
        self.mtp = MTP(c)
        draw_weights(self, c)

    def forward(self, ids: Tensor, age: Tensor, drafts: int = 0, rows: int | None = None) -> list[Tensor]:
        """Return normed states (batch, time, hidden): the trunk's, then one for every draft depth.

        State 0 at place t predicts token t+1; state d predicts token t+1+d from the tokens up to t+d, as
        chained drafting does.  `rows` limits drafting to the first rows of the batch.
        """
        rotary, mask = tables(self.c, age)
        embedding = self.model.embed_tokens(ids)
        x = embedding
        for layer in self.model.layers:
            x = layer(x, age, rotary, mask)
        states = [self.model.norm(x)]
        embedding, age, mask, hidden = embedding[:rows], age[:rows], mask[:rows], states[0][:rows]
        for depth in range(1, drafts + 1):
            later = F.pad(embedding[:, depth:], (0, 0, 0, depth))
            hidden = self.mtp(later, hidden, age, rotary, mask)
            states.append(hidden)
        return states

    def logits(self, state: Tensor) -> Tensor:
        """Return the scores over the vocabulary, (..., vocab)."""
        return F.linear(state, self.model.embed_tokens.weight)
