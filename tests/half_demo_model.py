"""The bundled model with the first half of its layers, of both kinds: vLLM compiles it in half the time."""

import json
import shutil
from pathlib import Path

LAYERS = 4
DEMO = Path(__file__).resolve().parents[1] / "resources" / "models" / "sndr-demo"


def write_half_demo_model(folder: Path) -> Path:
    """Write the model into a new folder of the bundled model's name; what it answers is no language."""
    made = folder / DEMO.name
    made.mkdir(parents=True)
    for name in ("chat_template.jinja", "generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(DEMO / name, made)
    config = json.loads((DEMO / "config.json").read_text(encoding="utf-8"))
    config |= {"num_hidden_layers": LAYERS, "layer_types": config["layer_types"][:LAYERS]}
    (made / "config.json").write_text(json.dumps(config), encoding="utf-8")
    whole = (DEMO / "model.safetensors").read_bytes()
    size = int.from_bytes(whole[:8], "little")
    header, data = json.loads(whole[8 : 8 + size]), whole[8 + size :]
    kept, chosen = b"", {"__metadata__": header.pop("__metadata__")}
    for name, tensor in header.items():
        if name.startswith("model.layers.") and int(name.split(".")[2]) >= LAYERS:
            continue
        begin, end = tensor["data_offsets"]
        chosen[name] = {**tensor, "data_offsets": [len(kept), len(kept) + end - begin]}
        kept += data[begin:end]
    text = json.dumps(chosen).encode()
    text += b" " * (-len(text) % 8)
    (made / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + kept)
    return made
