"""The edited choice, run on a passage of vLLM 0.26; the runner itself needs that version and a GPU."""

from enum import Enum
from pathlib import Path
from types import SimpleNamespace

from engine_host.overlay.patch_file import read_patch_file

# v1/worker/gpu_model_runner.py, _reshape_kv_cache_tensors.
PASSAGE = """
                    layer_cache_dtype_str = (
                        "auto"
                        if kv_cache_spec.kv_quant_mode == KVQuantMode.NONE
                        else getattr(
                            kv_cache_spec,
                            "cache_dtype_str",
                            None,
                        )
                        or self.cache_config.cache_dtype
                    )
"""


class KVQuantMode(Enum):
    NONE = 0


def chosen(passage: str, **spec: int) -> str:
    known = {
        "KVQuantMode": KVQuantMode,
        "kv_cache_spec": SimpleNamespace(kv_quant_mode=KVQuantMode.NONE, **spec),
        "self": SimpleNamespace(cache_config=SimpleNamespace(cache_dtype="turboquant_k8v4")),
    }
    exec("if True:\n" + passage, known)
    return str(known["layer_cache_dtype_str"])


def test_a_turboquant_layer_keeps_its_type_and_a_skipped_one_its_own() -> None:
    (edit,) = read_patch_file(Path(__file__).parent).text
    assert PASSAGE.count(edit.find) == edit.count
    edited = PASSAGE.replace(edit.find, edit.replace)
    assert chosen(PASSAGE, tq_slot_size=196) == "auto", "the symptom: TurboQuant has no type of that name"
    assert chosen(edited, tq_slot_size=196) == "turboquant_k8v4"
    assert chosen(edited) == "auto"
