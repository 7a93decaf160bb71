"""Keys and a person's variables are in no record; what the record is about stays."""

import json
from typing import Any

from engine_host.core.diagnosis.secrets import without_secrets
from tests.unit.core.diagnosis.samples import problem, record

KEY = "sk-abcdefghijklmnop"


def written(plan: dict[str, Any], **engine: Any) -> str:
    made = record(plan=plan, engine=engine)
    return json.dumps(without_secrets(made.model_dump(mode="json"), made.engine.plan))


def test_what_a_person_gave_the_start_is_taken_out_everywhere() -> None:
    variables = {"MY_ACCOUNT": "meier:geheim", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    said = written(
        {
            "settings": [
                {
                    "name": "variables",
                    "value": [f"{name}={value}" for name, value in variables.items()],
                    "layer": "override",
                }
            ],
            "environment": {**variables, "HF_TOKEN": "plain-words-only"},
            "argv": ["server", "--api-key", "tell-nobody", "--max-num-batched-tokens", "204800"],
            "command": "sndr run m --env MY_ACCOUNT=meier:geheim",
        },
        last_lines=["login of meier:geheim", f"with {KEY}", "Authorization: Bearer abcdefghijklmnop12345"],
        problem=problem(line="token tell-nobody was refused"),
    )
    for secret in ("meier:geheim", "plain-words-only", "tell-nobody", KEY, "abcdefghijklmnop12345"):
        assert secret not in said
    assert "expandable_segments:True" in said
    assert "204800" in said
    assert "MY_ACCOUNT" in said, "that there was one may explain the end"
