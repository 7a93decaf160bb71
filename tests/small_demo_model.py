"""The bundled model with one layer of each kind: vLLM compiles it in a third of the time."""

import json
import shutil
from pathlib import Path

# A recurrent one, and the one with attention behind it.
LAYERS = ("2", "3")
DEMO = Path(__file__).resolve().parents[1] / "resources" / "models" / "sndr-demo"


def write_small_demo_model(folder: Path) -> Path:
    """Write the model into a new folder of the bundled model's name; what it answers is no language."""
    made = folder / DEMO.name
    made.mkdir(parents=True)
    for name in ("chat_template.jinja", "generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(DEMO / name, made)
    config = json.loads((DEMO / "config.json").read_text(encoding="utf-8"))
    config |= {
        "num_hidden_layers": len(LAYERS),
        "full_attention_interval": len(LAYERS),
        "layer_types": [config["layer_types"][int(layer)] for layer in LAYERS],
    }
    (made / "config.json").write_text(json.dumps(config), encoding="utf-8")
    whole = (DEMO / "model.safetensors").read_bytes()
    size = int.from_bytes(whole[:8], "little")
    header, data = json.loads(whole[8 : 8 + size]), whole[8 + size :]
    kept, chosen = b"", {"__metadata__": header.pop("__metadata__")}
    for name, tensor in header.items():
        words = name.split(".")
        if name.startswith("model.layers."):
            if words[2] not in LAYERS:
                continue
            words[2] = str(LAYERS.index(words[2]))
        begin, end = tensor["data_offsets"]
        chosen[".".join(words)] = {**tensor, "data_offsets": [len(kept), len(kept) + end - begin]}
        kept += data[begin:end]
    text = json.dumps(chosen).encode()
    text += b" " * (-len(text) % 8)
    (made / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + kept)
    return made
