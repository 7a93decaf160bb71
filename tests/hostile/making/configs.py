"""Configs of models: those of the catalogue as they are, with quantisations in the forms of publishers."""

from typing import Any

from tests.shipped_catalog import shipped

QUANTIZATIONS: tuple[dict[str, Any], ...] = (
    {"quant_method": "fp8", "weight_block_size": [128, 128], "ignored_layers": ["lm_head", "model.layers.0"]},
    {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
    {
        "quant_method": "gptq",
        "bits": 4,
        "group_size": 128,
        "dynamic": {"-:.*attn.*": {}, "+:.*mlp.*": {"bits": 8}},
    },
    {
        "quant_method": "auto-round",
        "bits": 4,
        "group_size": 128,
        "extra_config": {"model.layers.0.mlp.gate": {"bits": 16, "data_type": "float"}},
    },
    {"quant_method": "bitsandbytes", "load_in_4bit": True, "llm_int8_skip_modules": ["lm_head"]},
    {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]},
    {"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["lm_head", "model.layers.0*"]},
    {
        "quant_method": "compressed-tensors",
        "format": "nvfp4-pack-quantized",
        "ignore": ["lm_head", "re:.*self_attn.*"],
        "config_groups": {
            "group_0": {
                "targets": ["Linear", "re:.*mlp.*"],
                "weights": {
                    "num_bits": 4,
                    "type": "float",
                    "strategy": "tensor_group",
                    "group_size": 16,
                    "symmetric": False,
                    "block_structure": [128, 128],
                },
                "input_activations": {"num_bits": 8},
            }
        },
    },
)


def sound() -> list[dict[str, Any]]:
    """Every config of the catalogue, and one of them with each quantisation."""
    models = shipped().models.values()
    shapes = [dict(one.entry.shape) for one in models if one.entry.shape]
    for shape in shapes:
        shape.setdefault("architectures", ["ModelForCausalLM"])
        shape.setdefault("torch_dtype", "bfloat16")
        shape.setdefault("max_position_embeddings", 32_768)
    return shapes + [{**shapes[0], "quantization_config": one} for one in QUANTIZATIONS]
