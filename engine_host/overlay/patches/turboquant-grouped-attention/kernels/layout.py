"""The layout of a quantised token in the cache, to the byte.

A *page* is what one cache block holds for one KV head. Its parts lie one after the other, each for all the
block's tokens, so that every part starts at a multiple of 16 bytes and loads are as wide as the hardware has:

    k8v4      keys   [block, head] fp8 e4m3     values [block, head/2] nibbles     scales [block] of 4 bytes
    4bit_nc   keys   [block, head/2] nibbles    values and scales as above         norms  [block] fp16

A token's scale entry is two fp16 numbers: step and centre of its value row, value = (nibble - 8) * step +
centre. Byte j of a row of nibbles, values and rotated keys alike, holds channel j in its low and channel j +
head/2 in its high nibble. The bytes a token takes are those of vLLM's own slot (196 for k8v4 at head size
128), only their order differs.
"""

from dataclasses import dataclass

PRESETS = ("k8v4", "4bit_nc")
HEAD_SIZES = (64, 128, 256)
BLOCK_SIZES = (16, 32, 64, 128)
SCALE_BYTES = 4
NORM_BYTES = 2


@dataclass(frozen=True)
class CacheLayout:
    """Byte arithmetic of one preset, head size and block size; ValueError for what the kernels lack."""

    preset: str
    head_size: int
    block_size: int

    def __post_init__(self) -> None:
        for given, known, name in (
            (self.preset, PRESETS, "preset"),
            (self.head_size, HEAD_SIZES, "head size"),
            (self.block_size, BLOCK_SIZES, "block size"),
        ):
            if given not in known:
                raise ValueError(f"{name} {given} is none of {', '.join(map(str, known))}")

    @property
    def fp8_keys(self) -> bool:
        """True if keys are fp8; otherwise they are rotated and of 4 bits."""
        return self.preset == "k8v4"

    @property
    def key_bytes(self) -> int:
        """Bytes of one token's key row."""
        return self.head_size if self.fp8_keys else self.head_size // 2

    @property
    def value_bytes(self) -> int:
        """Bytes of one token's value row."""
        return self.head_size // 2

    @property
    def norm_bytes(self) -> int:
        """Bytes of one token's key norm."""
        return 0 if self.fp8_keys else NORM_BYTES

    @property
    def token_bytes(self) -> int:
        """Bytes of one token and KV head, everything included."""
        return self.key_bytes + self.value_bytes + SCALE_BYTES + self.norm_bytes

    @property
    def page_bytes(self) -> int:
        """Bytes of one block and KV head."""
        return self.block_size * self.token_bytes

    @property
    def value_offset(self) -> int:
        """The byte offset of the values in a page."""
        return self.block_size * self.key_bytes

    @property
    def scale_offset(self) -> int:
        """The byte offset of the steps and centres in a page."""
        return self.value_offset + self.block_size * self.value_bytes

    @property
    def norm_offset(self) -> int:
        """The byte offset of the key norms in a page; the page's end where there are none."""
        return self.scale_offset + self.block_size * SCALE_BYTES

    def cache_shape(self, blocks: int, kv_heads: int) -> tuple[int, int, int]:
        """The shape of the uint8 tensor that holds so many blocks."""
        return blocks, kv_heads, self.page_bytes
