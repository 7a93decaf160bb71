"""Train the demonstration model's byte-level BPE tokenizer and write its three files.

The pre-tokenizer is Qwen3.5's, which llama.cpp knows as ``qwen35``, without a Unicode normaliser, so that
llama.cpp and the ``tokenizers`` library cut every text alike.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

PRE_TOKENIZER = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Qwen3.5's word pattern (llama.cpp, ``LLAMA_VOCAB_PRE_TYPE_QWEN35``)."""

VOCAB_SIZE = 8192
CONTROL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
)
"""Tokens that the engine hides from the text."""
MARKUP_TOKENS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
"""Tokens that stay visible, because parsers look for them."""

CHAT_TEMPLATE = Path(__file__).with_name("chat_template.jinja")


def train(texts: Iterable[str], vocab_size: int = VOCAB_SIZE) -> Tokenizer:
    """Return a tokenizer of exactly `vocab_size` tokens, the special ones last.

    Raises ValueError when `texts` hold too little to learn that many tokens.
    """
    special = CONTROL_TOKENS + MARKUP_TOKENS
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRE_TOKENIZER), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(special),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in CONTROL_TOKENS])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in MARKUP_TOKENS])
    if tokenizer.get_vocab_size() != vocab_size:
        raise ValueError(f"learned {tokenizer.get_vocab_size()} tokens, wanted {vocab_size}: too little text")
    return tokenizer


def save(tokenizer: Tokenizer, folder: Path) -> None:
    """Write ``tokenizer.json``, ``tokenizer_config.json`` and ``chat_template.jinja`` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": False,
        "add_prefix_space": False,
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": None,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 8192,
        "chat_template": CHAT_TEMPLATE.read_text(encoding="utf-8"),
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    (folder / "chat_template.jinja").write_text(settings["chat_template"], encoding="utf-8")


def read_texts(files: Iterable[Path]) -> Iterator[str]:
    """Yield the text of each file, skipping what is not UTF-8."""
    for file in files:
        try:
            yield file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def main() -> None:
    """Train on the text files under the given folders (``*.py``, ``*.rst.txt``, ``*.txt``)."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("folders", type=Path, nargs="+")
    options = parser.parse_args()
    files = [f for d in options.folders for g in ("*.py", "*.txt") for f in sorted(d.rglob(g))]
    save(train(read_texts(files)), options.out)


if __name__ == "__main__":
    main()
