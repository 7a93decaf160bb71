"""`patch.toml`: each key that is wrong is named together with its file."""

import os
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.overlay.patch_file import read_patch_file
from engine_host.protocol.errors import Reason
from engine_host.protocol.patches import Risk

WHOLE = {
    "id": 'id = "whole"',
    "title": 'title = "A test"',
    "family": 'family = "structured-output.json"',
    "problem": 'problem = "A symptom."',
    "issues": 'upstream_issues = ["https://example.org/1"]',
    "prs": 'upstream_prs = ["https://example.org/2"]',
    "risk": 'risk = "medium"',
    "risk_note": 'risk_note = "Little."',
    "required": "required = false",
    "default": "default = true",
    "requires": 'requires = ["other"]',
    "conflicts": 'conflicts = ["third"]',
    "after": 'after = ["fourth"]',
    "retire": 'retire_when = "Soon."',
    "applies": "[applies_to]",
    "vllm": 'vllm = ">=0.26,<0.33"',
    "platforms": 'platforms = ["cuda", "cpu"]',
    "sm": 'sm = ">=9.0"',
    "kv": 'kv_cache_dtypes = ["fp8*"]',
    "architectures": 'architectures = ["Qwen3*"]',
    "speculation": 'speculation = ["any"]',
    "[[text]]": "[[text]]",
    "text.module": 'module = "vllm.v1.core"',
    "text.vllm": 'vllm = "<0.30"',
    "text.find": "find = '''a\nb'''",
    "text.replace": "replace = ''",
    "text.count": "count = 2",
    "[[rebind]]": "[[rebind]]",
    "rebind.module": 'module = "vllm.config"',
    "rebind.target": 'target = "Config.read"',
    "rebind.replacement": 'replacement = "patch:wrap"',
    "rebind.signature": 'signature = "(self, *, path = ...)"',
    "[[hook]]": "[[hook]]",
    "hook.point": 'point = "kernels"',
    "hook.function": 'function = "patch:kernels"',
    "[upstream_merged]": "[upstream_merged]",
    "merged.module": 'module = "vllm.config"',
    "merged.text": 'text = "done"',
    "[probe]": "[probe]",
    "probe.modules": 'modules = ["vllm.config"]',
    "probe.counts": "counts = true",
    "[[evidence]]": "[[evidence]]",
    "evidence.metric": 'metric = "spaces"',
    "evidence.before": "before = 2000",
    "evidence.n": "n = 1",
}


def written(tmp_path: Path, **lines: str) -> Path:
    """A folder whose file has everything, with some lines other than in WHOLE ("" takes one out)."""
    folder = tmp_path / "whole"
    folder.mkdir()
    (folder / "patch.toml").write_text("\n".join((WHOLE | lines).values()), encoding="utf-8")
    (folder / "patch.py").write_text("")
    return folder


def refusal(folder: Path) -> HostError:
    with pytest.raises(HostError) as raised:
        read_patch_file(folder)
    assert raised.value.reason is Reason.PATCH_INVALID
    assert str(folder / "patch.toml") in raised.value.problem.message
    assert raised.value.problem.evidence["file"] == str(folder / "patch.toml")
    return raised.value


def test_a_file_with_every_key_is_read(tmp_path: Path) -> None:
    patch = read_patch_file(written(tmp_path))
    assert (patch.id, patch.risk, patch.requires) == ("whole", Risk.MEDIUM, ("other",))
    assert patch.text[0].find == "a\nb"
    assert patch.text[0].count == 2
    assert patch.rebind[0].target == "Config.read"
    assert patch.hook[0].point == "kernels"
    assert patch.upstream_merged is not None
    assert patch.probe.counts
    assert patch.evidence[0].after is None, "not measured"


WRONG = [
    # (the line, what it is instead, the key that the refusal names, a word of what it says)
    ("id", 'id = "Whole"', "id", "lower-case"),
    ("id", 'id = "-whole"', "id", "lower-case"),
    ("id", 'id = "another"', "id", "the folder is called whole"),
    ("id", 'id = "all"', "id", "means every patch"),
    ("id", "", "id", "required"),
    ("title", 'title = ""', "title", "at least 1"),
    ("title", f'title = "{"a" * 91}"', "title", "at most 90"),
    ("title", "", "title", "required"),
    ("family", 'family = "structured output"', "family", "lower-case"),
    ("family", 'family = "all"', "family", "means every patch"),
    ("problem", "", "problem", "required"),
    ("issues", 'upstream_issues = ["http://example.org"]', "upstream_issues.0", "https://"),
    ("prs", 'upstream_prs = ["#12"]', "upstream_prs.0", "https://"),
    ("risk", 'risk = "none"', "risk", "'low', 'medium' or 'high'"),
    ("risk", "", "risk", "required"),
    ("required", 'required = "perhaps"', "required", "boolean"),
    ("default", "default = 3", "default", "boolean"),
    ("default", "defualt = true", "defualt", "no such key"),
    ("requires", 'requires = "other"', "requires", "tuple"),
    ("requires", 'requires = ["Other"]', "requires.0", "lower-case"),
    ("requires", 'requires = ["whole"]', "", "itself"),
    ("conflicts", 'conflicts = ["whole"]', "", "itself"),
    ("conflicts", 'conflicts = ["other"]', "", "other"),
    ("after", 'after = ["whole"]', "", "itself"),
    ("vllm", "", "applies_to.vllm", "required"),
    ("vllm", 'vllm = ""', "applies_to.vllm", "empty range"),
    ("vllm", 'vllm = "0.32"', "applies_to.vllm", "PEP 440 range such as '>=0.26,<0.33'"),
    ("platforms", 'platforms = ["gpu"]', "applies_to.platforms.0", "'cuda'"),
    ("platforms", 'platform = ["cuda"]', "applies_to.platform", "no such key"),
    ("sm", 'sm = "hopper"', "applies_to.sm", "PEP 440 range such as '>=0.26,<0.33'"),
    ("kv", 'kv_cache_dtypes = "fp8"', "applies_to.kv_cache_dtypes", "tuple"),
    ("architectures", "architectures = [1]", "applies_to.architectures.0", "string"),
    ("text.module", 'module = "torch.nn"', "text.0.module", "below vllm"),
    ("text.module", 'module = "vllm"', "text.0.module", "below vllm"),
    ("text.module", 'module = "vllm/config.py"', "text.0.module", "below vllm"),
    ("text.vllm", 'vllm = "new"', "text.0.vllm", "PEP 440 range such as '>=0.26,<0.33'"),
    ("text.find", 'find = ""', "text.0.find", "at least 1"),
    ("text.find", "", "text.0.find", "required"),
    ("text.replace", "", "text.0.replace", "required"),
    ("text.replace", "replace = '''a\nb'''", "text.0", "the same"),
    ("text.count", "count = 0", "text.0.count", "greater than or equal to 1"),
    ("text.count", "cuont = 1", "text.0.cuont", "no such key"),
    ("rebind.target", 'target = "Config:read"', "rebind.0.target", "dotted"),
    ("rebind.replacement", 'replacement = "patch.wrap"', "rebind.0.replacement", "file:function"),
    ("rebind.replacement", 'replacement = "other:wrap"', "", "other:wrap"),
    ("rebind.signature", 'signature = "self"', "rebind.0.signature", "pattern"),
    ("rebind.signature", "", "rebind.0.signature", "required"),
    ("hook.point", 'point = "plugins"', "hook.0.point", "'general_plugins'"),
    ("hook.function", 'function = "absent:kernels"', "", "absent:kernels"),
    ("merged.text", 'text = ""', "upstream_merged.text", "at least 1"),
    ("merged.text", "", "upstream_merged.text", "required"),
    ("probe.counts", 'counts = "often"', "probe.counts", "boolean"),
    ("probe.modules", 'modules = ["os"]', "probe.modules.0", "below vllm"),
    ("evidence.metric", "", "evidence.0.metric", "required"),
    ("evidence.before", 'before = "many"', "evidence.0.before", "number"),
    ("evidence.n", "n = 0", "evidence.0.n", "greater than or equal to 1"),
]


@pytest.mark.parametrize(("line", "instead", "key", "said"), WRONG)
def test_a_wrong_key_is_named(tmp_path: Path, line: str, instead: str, key: str, said: str) -> None:
    problem = refusal(written(tmp_path, **{line: instead})).problem
    assert problem.evidence["key"] == key
    assert key in problem.message
    assert said in problem.message


def test_a_patch_that_does_nothing_is_refused(tmp_path: Path) -> None:
    operations = {name: "" for name in WHOLE if name.split(".")[0].strip("[]") in {"text", "rebind", "hook"}}
    assert "does nothing" in refusal(written(tmp_path, **operations)).problem.message


def test_a_file_that_is_not_toml_says_where(tmp_path: Path) -> None:
    assert "line 1" in refusal(written(tmp_path, id="id = whole")).problem.message


def test_a_key_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    assert "TOML" in refusal(written(tmp_path, title='title = "A"\ntitle = "B"')).problem.message


def test_a_folder_without_the_file(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "nowhere").problem.message


@pytest.mark.parametrize(
    "line",
    [
        "count = " + "9" * 5000,
        "a = " + "[" * 5000,
        "a = " + "{b=" * 500,
        "evidence = [{metric = 'a', before = inf}]",
        "evidence = [{metric = 'a', after = nan}]",
        "applies_to.vllm = '" + ">=0," * 1000 + "'",
        "x" * (2 << 20),
    ],
    ids=lambda line: line[:30],
)
def test_a_file_of_nonsense_is_a_clear_error(tmp_path: Path, line: str) -> None:
    folder = tmp_path / "whole"
    folder.mkdir()
    (folder / "patch.toml").write_text(f"{line}\n")
    with pytest.raises(HostError) as caught:
        read_patch_file(folder)
    assert caught.value.reason is Reason.PATCH_INVALID


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "whole"
    folder.mkdir()
    os.mkfifo(folder / "patch.toml")
    with pytest.raises(HostError, match="no regular file"):
        read_patch_file(folder)
