"""Train the demonstration model on one GPU: Muon for the matrices, AdamW for the rest.

The learning rate rises, stays, and falls linearly to zero over the last part of the run
("warmup-stable-decay").  A run can be cut into several: it stops after `--minutes`, keeps its whole state in
`--state`, and goes on from there.  Sources: Muon, Keller Jordan 2024 (the
fifth-order Newton-Schulz coefficients are his).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name that PyTorch code uses
from dense import DenseConfig, DenseModel
from model import DemoConfig, DemoModel
from torch import Tensor

ROW = 2048
CLASS_WEIGHTS = (0.0, 0.1, 1.0, 0.5)
"""Loss weight of a token by its class in the data (see ``conversation.Piece``)."""


@dataclass(frozen=True)
class Recipe:
    """Training conditions; rates are for the stable phase."""

    rows: int = 48
    steps: int = 12_000
    warmup: int = 200
    decay: float = 0.4
    muon_rate: float = 0.01
    adam_rate: float = 0.003
    weight_decay: float = 0.02
    drafts: int = 3
    draft_rows: int = 16
    draft_weight: float = 0.3
    seed: int = 7


class Rows:
    """Packed rows on the GPU: ids, loss weights and the age of every token in its document."""

    def __init__(self, file: Path, device: torch.device) -> None:
        data = np.load(file)
        ids = data["ids"].astype(np.int32)
        bits = np.unpackbits(data["weights"]).reshape(*ids.shape, 2)
        starts = np.unpackbits(data["starts"], axis=-1).astype(bool)
        place = np.arange(ROW, dtype=np.int32)[None]
        age = (place - np.maximum.accumulate(np.where(starts, place, 0), axis=1)).astype(np.int16)
        self.ids = torch.from_numpy(ids).to(device)
        self.classes = torch.from_numpy(bits[..., 0] * 2 + bits[..., 1]).to(device)
        self.age = torch.from_numpy(age).to(device)

    def __len__(self) -> int:
        return len(self.ids)

    def batch(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return (ids, age, weights), each (rows, 2048), as int64, int64 and float32."""
        table = torch.tensor(CLASS_WEIGHTS, device=self.ids.device)
        return self.ids[index].long(), self.age[index].long(), table[self.classes[index].long()]


def newton_schulz(g: Tensor) -> Tensor:
    """Return the nearest half-orthogonal matrices to `g` (count, rows, columns), in bf16, by five steps."""
    x = g.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        b = -4.7750 * a + 2.0315 * a @ a
        x = 3.4445 * x + b @ x
    return x.mT if tall else x


class Muon:
    """Momentum with orthogonalised updates; matrices of one shape are stepped together."""

    def __init__(self, parameters: list[torch.nn.Parameter], rate: float, weight_decay: float) -> None:
        self.rate, self.decay, self.momentum = rate, weight_decay, 0.95
        self.groups: dict[tuple[int, ...], list[torch.nn.Parameter]] = {}
        for p in parameters:
            self.groups.setdefault(tuple(p.shape), []).append(p)
        self.buffers = {s: torch.zeros(len(g), *s, device=g[0].device) for s, g in self.groups.items()}

    @torch.no_grad()
    def step(self, scale: float) -> None:
        """Move every matrix at `scale` times the rate."""
        for shape, group in self.groups.items():
            grad = torch.stack([p.grad for p in group if p.grad is not None])
            buffer = self.buffers[shape]
            buffer.lerp_(grad, 1 - self.momentum)
            update = orthogonal(grad.lerp(buffer, self.momentum)).float()
            rate = self.rate * scale * math.sqrt(max(1.0, shape[0] / shape[1]))
            for p, u in zip(group, update.unbind(0), strict=True):
                p.mul_(1 - self.rate * scale * self.decay).add_(u, alpha=-rate)


orthogonal = newton_schulz


def losses(
    model: DemoModel | DenseModel, ids: Tensor, age: Tensor, weights: Tensor, drafts: int, rows: int
) -> Tensor:
    """Return the weighted mean loss in nats for the next token and for every draft depth, (1 + drafts,)."""
    states = model(ids, age, drafts, rows)
    out = []
    for depth, state in enumerate(states):
        ahead = depth + 1
        n = len(state)
        target, weight = ids[:n, ahead:], weights[:n, ahead:]
        # A target counts only if it lies in the same document as the token that predicts it.
        weight = weight * (age[:n, ahead:] >= ahead)
        logits = model.logits(state[:, :-ahead])
        loss = F.cross_entropy(logits.float().flatten(0, 1), target.flatten(), reduction="none")
        out.append((loss * weight.flatten()).sum() / weight.sum().clamp(min=1.0))
    return torch.stack(out)


def schedule(step: int, recipe: Recipe) -> float:
    """Return the share of the rate at `step`: linear warm-up, one, linear decay to zero."""
    start = recipe.steps * (1 - recipe.decay)
    return min(1.0, (step + 1) / recipe.warmup, max(0.0, (recipe.steps - step) / (recipe.steps - start)))


def order(count: int, recipe: Recipe) -> Iterator[Tensor]:
    """Yield the row numbers of every batch for ever; each epoch is shuffled anew from the seed."""
    generator = torch.Generator().manual_seed(recipe.seed)
    while True:
        rows = torch.randperm(count, generator=generator)
        for at in range(0, count - recipe.rows + 1, recipe.rows):
            yield rows[at : at + recipe.rows]


class Training:
    """The model, its optimisers and how far they are."""

    def __init__(self, recipe: Recipe, device: torch.device, dense: bool = False) -> None:
        torch.manual_seed(recipe.seed)
        self.recipe, self.device, self.step_number = recipe, device, 0
        model = DenseModel(DenseConfig()) if dense else DemoModel(DemoConfig())
        self.model: DemoModel | DenseModel = model.to(device)
        named = list(self.model.named_parameters())
        matrices = [p for n, p in named if p.dim() == 2 and "embed" not in n]
        others = [p for n, p in named if p.dim() != 2 or "embed" in n]
        self.muon = Muon(matrices, recipe.muon_rate, recipe.weight_decay)
        self.adam = torch.optim.AdamW(
            others, lr=recipe.adam_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=device.type == "cuda"
        )

    def state(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        return {
            "model": self.model.state_dict(),
            "adam": self.adam.state_dict(),
            "muon": self.muon.buffers,
            "step": self.step_number,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a `state`."""
        self.model.load_state_dict(state["model"])
        self.adam.load_state_dict(state["adam"])
        self.muon.buffers = {k: v.to(self.device) for k, v in state["muon"].items()}
        self.step_number = state["step"]

    def update(self, loss: Tensor) -> None:
        """Take one step down the gradient of `loss`."""
        loss.backward()
        scale = schedule(self.step_number, self.recipe)
        torch.nn.utils.clip_grad_norm_([p for g in self.adam.param_groups for p in g["params"]], 1.0)
        self.adam.param_groups[0]["lr"] = self.recipe.adam_rate * scale
        self.adam.step()
        self.muon.step(scale)
        self.model.zero_grad(set_to_none=True)
        self.step_number += 1


@torch.no_grad()
def validate(model: DemoModel | DenseModel, rows: Rows, recipe: Recipe) -> list[float]:
    """Return the mean losses over the held-out rows for the next token and the draft depths."""
    total = torch.zeros(1 + recipe.drafts, device=rows.ids.device)
    count = max(1, len(rows) // recipe.draft_rows)
    for i in range(count):
        index = torch.arange(i * recipe.draft_rows, min(len(rows), (i + 1) * recipe.draft_rows))
        ids, age, weights = rows.batch(index.to(rows.ids.device))
        with torch.autocast(rows.ids.device.type, torch.bfloat16):
            total += losses(model, ids, age, weights, recipe.drafts, len(ids))
    return [round(float(x), 4) for x in total / count]


def main() -> None:
    """Train for some minutes, then write the state and the weights."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--state", type=Path, required=True, help="training state, read if there and written")
    parser.add_argument("--weights", type=Path, required=True, help="where the weights alone go, bf16")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--steps", type=int, default=Recipe.steps)
    parser.add_argument("--rows", type=int, default=Recipe.rows)
    parser.add_argument("--draft-rows", type=int, default=Recipe.draft_rows)
    parser.add_argument("--decay", type=float, default=Recipe.decay)
    parser.add_argument("--dense", action="store_true", help="the dense model, which drafts nothing")
    parser.add_argument("--no-compile", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    recipe = Recipe(
        steps=options.steps, rows=options.rows, draft_rows=options.draft_rows, decay=options.decay,
        drafts=0 if options.dense else Recipe.drafts,
    )  # fmt: skip
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("high")
    training = Training(recipe, device, options.dense)
    if options.state.exists():
        training.load(torch.load(options.state, map_location=device, weights_only=True))
    rows, held = Rows(options.data / "train.npz", device), Rows(options.data / "valid.npz", device)
    loss_function = losses
    if not options.no_compile:
        loss_function = torch.compile(losses, dynamic=False)
        globals()["orthogonal"] = torch.compile(newton_schulz, dynamic=False)
    drafts = [recipe.draft_weight * w for w in (0.5, 0.3, 0.2)][: recipe.drafts]
    parts = torch.tensor([1.0, *drafts], device=device)
    batches = order(len(rows), recipe)
    for _ in range(training.step_number):
        next(batches)
    shown, seen_at = time.monotonic(), training.step_number
    while training.step_number < recipe.steps and time.monotonic() - began < options.minutes * 60:
        ids, age, weights = rows.batch(next(batches).to(device))
        with torch.autocast(device.type, torch.bfloat16):
            each = loss_function(training.model, ids, age, weights, recipe.drafts, recipe.draft_rows)
        training.update((each * parts).sum())
        if training.step_number % 100 == 0 or training.step_number in (1, 5, 20, 50):
            values = [round(x, 3) for x in each.detach().tolist()]
            now = time.monotonic()
            rate = (training.step_number - seen_at) * recipe.rows * ROW / (now - shown)
            shown, seen_at = now, training.step_number
            print(
                f"{now - began:6.0f} s  step {training.step_number}  losses {values}  "
                f"{rate / 1e6:.3f} M tokens/s",
                flush=True,
            )
    figures = {
        "step": training.step_number,
        "tokens": training.step_number * recipe.rows * ROW,
        "epochs": training.step_number * recipe.rows / len(rows),
        "validation": validate(training.model, held, recipe),
    }
    print(json.dumps(figures), flush=True)
    torch.save(training.state(), options.state)
    torch.save({k: v.bfloat16().cpu() for k, v in training.model.state_dict().items()}, options.weights)
    options.weights.with_suffix(".json").write_text(json.dumps(figures) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
