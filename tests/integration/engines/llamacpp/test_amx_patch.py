"""The source patch for AMX: the defect without it and its absence with it, on any x86-64 with GCC.

GCC's header (seen in 12.2) tells the optimiser that `_tile_loadconfig()` reads 8 of the 64 bytes of the tile
configuration, so it removes the stores to the rest. The function is cut by script out of the very file that
the build compiles, compiled with the flags that matter, and its one LDTILECFG is replaced in the assembler
text by code that copies the 64 bytes out: so what would have been loaded can be looked at without AMX.
"""

import ctypes
import os
import platform
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import platformdirs
import pytest

from engine_host.engines.llamacpp.build.toolchain import SDIST_NAME, processor_has_amx
from engine_host.engines.llamacpp.source.patching import PATCHES, apply_patch

CACHE = Path(os.environ.get("SNDR_CACHE") or platformdirs.user_cache_path("sndr", appauthor=False))
SDIST = CACHE / "llama.cpp" / "sdist" / SDIST_NAME
SOURCE = Path("vendor/llama.cpp/ggml/src/ggml-cpu/amx/mmq.cpp")
PATCH = PATCHES / "0001-amx-tile-config.patch"
COMPILER = shutil.which("g++")
FLAGS = ("-std=gnu++17", "-O3", "-fPIC", "-mamx-tile", "-mamx-int8")
# palette 1; per tile TMM0 to TMM7: bytes of a row, rows.
COLSB = (64, 64, 32, 32, 64, 64, 64, 64)
ROWS = (8, 8, 16, 16, 16, 16, 16, 16)
PERMISSION = """
#include <sys/syscall.h>
#include <unistd.h>
#include <stdio.h>
int main() {
    if (syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* XFEATURE_XTILEDATA */)) return 3;
    configure();
    alignas(64) unsigned char out[64];
    __asm__ volatile("sttilecfg %0" : "=m"(out));
    for (unsigned char byte : out) printf("%02x", byte);
    return 0;
}
"""

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="AMX is an extension of x86-64"),
    pytest.mark.skipif(COMPILER is None, reason="no g++ here"),
    pytest.mark.skipif(not SDIST.is_file(), reason="the build has not fetched the source package yet"),
]


def _run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _reads_eight_bytes() -> bool:
    """Whether this compiler's header has the defect: the operand is one pointer wide."""
    text = subprocess.run(
        [str(COMPILER), "-E", "-x", "c++", *FLAGS, "-"],
        input="#include <immintrin.h>\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    found = re.search(r"_tile_loadconfig \(const void \*\w+\)\s*\{(.*?)\}", text, re.DOTALL)
    return bool(found and re.search(r"\(const void \*\*\)", found[1]))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The file as it is in the source package, and as the build compiles it."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("original", "patched")}
    with tarfile.open(SDIST) as archive:
        member = archive.extractfile(f"{SDIST_NAME.removesuffix('.tar.gz')}/{SOURCE}")
        assert member is not None
        content = member.read()
    for folder in folders.values():
        (folder / SOURCE).parent.mkdir(parents=True)
        (folder / SOURCE).write_bytes(content)
    assert apply_patch(PATCH, folders["patched"]) == (folders["patched"] / SOURCE,)
    return {name: folder / SOURCE for name, folder in folders.items()}


def _unit(source: Path, main: str = "") -> Path:
    """Cuts the tile configuration out of the file, nothing in it changed but the name of its caller."""
    text = source.read_text(encoding="utf-8")
    structure = re.search(r"^struct tile_config_t\{.*?^\};$", text, re.DOTALL | re.MULTILINE)
    function = re.search(
        r"^inline void ggml_tile_config_init\(void\) \{.*?^\}$", text, re.DOTALL | re.MULTILINE
    )
    assert structure, "the source changed: tile_config_t is not there"
    assert function, "the source changed: ggml_tile_config_init is not there"
    unit = source.with_name("tile_config.cpp")
    unit.write_text(
        "#include <immintrin.h>\n#include <cstdint>\n"
        'extern "C" { unsigned char captured[64]; unsigned long saved[2]; }\n'
        f"namespace {{\n{structure[0]}\n{function[0]}\n}}\n"
        f'extern "C" void configure() {{ ggml_tile_config_init(); }}\n{main}',
        encoding="utf-8",
    )
    return unit


def _captured(source: Path) -> bytes:
    """What the compiled function would load into the tile configuration."""
    unit = _unit(source)
    assembly = unit.with_suffix(".s")
    _run(str(COMPILER), *FLAGS, "-S", "-o", str(assembly), str(unit))
    text = assembly.read_text(encoding="utf-8")
    loads = re.findall(r"^\s*ldtilecfg\s+(.+)$", text, re.MULTILINE)
    assert len(loads) == 1, loads
    assembly.write_text(re.sub(r"^\s*ldtilecfg\s+(.+)$", _copy, text, flags=re.MULTILINE), encoding="utf-8")
    library = unit.with_suffix(".so")
    _run(str(COMPILER), "-shared", "-o", str(library), str(assembly))
    loaded = ctypes.CDLL(str(library))
    # On the stack of a fresh thread the bytes that nobody stored would be zero by luck: dirty them first.
    captured = (ctypes.c_ubyte * 64).in_dll(loaded, "captured")
    ctypes.memset(captured, 0xEE, 64)
    loaded.configure()
    return bytes(captured)


def _copy(load: re.Match[str]) -> str:
    """LDTILECFG as a copy to `captured`; moves change no flags, and nothing is pushed into the red zone."""
    lines = ["movq saved@GOTPCREL(%rip), %r11", "movq %rax, (%r11)", "movq %rcx, 8(%r11)"]
    lines += [f"leaq {load[1].strip()}, %rax", "movq captured@GOTPCREL(%rip), %r11"]
    for at in range(0, 64, 8):
        lines += [f"movq {at}(%rax), %rcx", f"movq %rcx, {at}(%r11)"]
    lines += ["movq saved@GOTPCREL(%rip), %r11", "movq (%r11), %rax", "movq 8(%r11), %rcx"]
    return "".join(f"\t{line}\n" for line in lines)


def _config(content: bytes) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    colsb = tuple(int.from_bytes(content[16 + 2 * n : 18 + 2 * n], "little") for n in range(16))
    return content[0], colsb, tuple(content[48:64])


def test_patched_configuration_is_whole(sources: dict[str, Path]) -> None:
    palette, colsb, rows = _config(_captured(sources["patched"]))
    assert palette == 1
    assert colsb == (*COLSB, *(0,) * 8)
    assert rows == (*ROWS, *(0,) * 8)


def test_without_the_patch_the_stores_are_removed(sources: dict[str, Path]) -> None:
    """The defect itself. When this fails because the configuration is whole, the patch can go."""
    palette, colsb, rows = _config(_captured(sources["original"]))
    assert palette == 1
    whole = (colsb[:8], rows[:8]) == (COLSB, ROWS)
    assert whole != _reads_eight_bytes(), (
        "whether the header has the defect decides whether the bytes are lost"
    )


def test_the_machine_code_stores_the_shapes_only_with_the_patch(sources: dict[str, Path]) -> None:
    """The same seen statically: without the patch the constants of rows and colsb appear nowhere."""
    if not _reads_eight_bytes():
        pytest.skip("this compiler declares all 64 bytes")
    found = {}
    for name, source in sources.items():
        unit = _unit(source)
        text = _run(str(COMPILER), *FLAGS, "-S", "-o", "-", str(unit))
        body = text[text.index("configure:") : text.index("ldtilecfg")]
        found[name] = len(
            re.findall(r"^\s*v?mov[a-z]*\s+.*\(%rsp\)|^\s*mov[a-z]*\s+.*-?\d+\(%r[bs]p\)", body, re.M)
        )
    assert found["patched"] > found["original"]


@pytest.mark.skipif(not processor_has_amx(), reason="this processor has no AMX")
def test_on_amx_the_processor_takes_the_configuration(sources: dict[str, Path]) -> None:
    unit = _unit(sources["patched"], PERMISSION)
    program = unit.with_suffix(".bin")
    _run(str(COMPILER), *FLAGS, "-o", str(program), str(unit))
    palette, colsb, rows = _config(bytes.fromhex(_run(str(program))))
    assert (palette, colsb[:8], rows[:8]) == (1, COLSB, ROWS)


@pytest.mark.skipif(not processor_has_amx(), reason="this processor has no AMX")
def test_on_amx_the_original_does_not(sources: dict[str, Path]) -> None:
    if not _reads_eight_bytes():
        pytest.skip("this compiler declares all 64 bytes")
    unit = _unit(sources["original"], PERMISSION)
    program = unit.with_suffix(".bin")
    _run(str(COMPILER), *FLAGS, "-o", str(program), str(unit))
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=30, check=False)
    if done.returncode == 0:
        palette, colsb, rows = _config(bytes.fromhex(done.stdout))
        assert (palette, colsb[:8], rows[:8]) != (1, COLSB, ROWS)
    else:
        assert done.returncode < 0, "a configuration of garbage is refused by a fault"
