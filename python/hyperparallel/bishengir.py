# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments for Ascend NPUs: HFusion text through Ascend's compiler, ``bishengir-compile``.

The compiler comes with ``pip install ascendnpu-ir``; it is looked for in ``$HP_BISHENGIR`` (a folder), there, and on the
``PATH``. Its last step, ``hivmc``, is only a part of CANN: without it, a program is verified down to HIVM, scheduled for
the chip, and has no object to run.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from hyperparallel.errors import CompilationError, MissingDependencyError

DEFAULT_SOC = "Ascend910B1"
PACKAGE = "ascendnpu-ir==1.2.0"
HIVM_FILE = "kernels.hivm.mlir"
OBJECT_FILE = "kernels.o"
LAUNCH_FILE = "kernels.launch"

_SOC = re.compile(r"Ascend[0-9A-Za-z_]+")
_FUNCTION = re.compile(r"^func\.func @(\w+)\(.*?^}\n", re.MULTILINE | re.DOTALL)
_SCHEDULED = re.compile(r"func\.func @(\w+)\(.*?\battributes \{([^\n]*)\} \{\n")
_BLOCKS = re.compile(r"hacc\.block_dim = (\d+)")
_CORE = re.compile(r"hivm\.func_core_type = #hivm\.func_core_type<(\w+)>")
_ERROR = re.compile(r"error: (.*)")
_NO_HIVMC = "External hivmc run fails"
_TUNINGS: tuple[tuple[str, ...], ...] = (
    (),
    *((f"--hfusion-max-buffer-count-tuning={count}",) for count in (1, 2, 4, 8)),
)
"""The schedules to try: with more buffers to find room for, tiles are smaller."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fragment:
    """How the compiler scheduled a fragment.

    Attributes:
        name: The fragment.
        blocks: Blocks that it is launched with.
        core: The kind of core that runs it, such as ``AIV`` (vectors).
    """

    name: str
    blocks: int
    core: str


def read_soc(text: str) -> str:
    """The name of a chip, as Ascend's compiler spells it.

    Raises:
        CompilationError: If it is none.
    """
    if not _SOC.fullmatch(text):
        raise CompilationError(f"expected an Ascend chip, such as {DEFAULT_SOC}, but got {text!r}")
    return text


def find_tool(name: str) -> Path:
    """Where ``bishengir-compile`` or ``bishengir-opt`` is.

    Raises:
        MissingDependencyError: If it is nowhere.
    """
    folder = os.environ.get("HP_BISHENGIR")
    spec = importlib.util.find_spec("ascendnpuir")
    folders = (
        [folder] if folder else [f"{where}/bin" for where in (spec.submodule_search_locations or [])] if spec else []
    )
    for place in folders:
        if (Path(place) / name).is_file():
            return Path(place) / name
    found = None if folder else shutil.which(name)
    if found is None:
        raise MissingDependencyError(
            "ascendnpu-ir",
            needed_for="compiling for the target ascend",
            install=f"pip install {PACKAGE}, or set HP_BISHENGIR to the folder of {name}",
        )
    return Path(found)


def assemble_fragments(text: Path, soc: str) -> list[Fragment]:
    """Compiles fragments for a chip; writes ``kernels.hivm.mlir``, ``kernels.launch`` and, with hivmc, ``kernels.o``.

    Args:
        text: The module of fragments. What is written goes beside it.
        soc: The chip.

    Returns:
        How each fragment was scheduled, in the order of the text.

    Raises:
        MissingDependencyError: If there is no compiler.
        CompilationError: If it refuses a fragment.
    """
    tool = find_tool("bishengir-compile")
    source = text.read_text(encoding="utf-8")
    fragments: list[Fragment] = []
    if _FUNCTION.search(source) is not None:
        with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
            folder = Path(temporary)
            hivm, said = folder / "module.hivm.opt.mlir", ""
            for tuning in _TUNINGS:
                said = _compile(tool, text, soc, folder, tuning)
                if hivm.exists():
                    break
            else:
                raise _refusal(tool, source, soc, said)
            shutil.copyfile(hivm, text.with_name(HIVM_FILE))
            fragments = _read_schedules(hivm.read_text(encoding="utf-8"), source)
            if (folder / OBJECT_FILE).exists():
                shutil.copyfile(folder / OBJECT_FILE, text.with_name(OBJECT_FILE))
            elif _NO_HIVMC not in said:
                raise CompilationError("Ascend's compiler made no object", diagnostics=said.splitlines()[:20])
    lines = [f"{fragment.name} {fragment.blocks}\n" for fragment in fragments]
    text.with_name(LAUNCH_FILE).write_text("".join(lines), encoding="utf-8")
    return fragments


def _compile(tool: Path, text: Path, soc: str, folder: Path, tuning: tuple[str, ...] = ()) -> str:
    """Runs the compiler; what it said."""
    options = ["-enable-hfusion-compile=true", "-enable-hivm-compile=true", f"--target={soc}", *tuning]
    ran = subprocess.run(
        [tool, text, *options, "-o", folder / OBJECT_FILE, f"--save-temps={folder}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stderr + ran.stdout


def _refusal(tool: Path, source: str, soc: str, said: str) -> CompilationError:
    """The error of a module that was refused: with the fragment that is at fault, if one is by itself."""
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
        folder = Path(temporary)
        for match in _FUNCTION.finditer(source):
            alone = folder / f"{match.group(1)}.mlir"
            alone.write_text(match.group(0), encoding="utf-8")
            about = _compile(tool, alone, soc, folder, _TUNINGS[-1])
            hivm = folder / "module.hivm.opt.mlir"
            if not hivm.exists():
                reasons = [error for error in _ERROR.findall(about) if "Failed to run" not in error]
                return CompilationError(
                    f"Ascend's compiler refused the fragment {match.group(1)} for {soc}",
                    diagnostics=[*(reasons or about.splitlines())[:5], *match.group(0).splitlines()[:60]],
                )
            hivm.unlink()
    return CompilationError(f"Ascend's compiler refused the fragments for {soc}", diagnostics=_ERROR.findall(said)[:20])


def _read_schedules(hivm: str, source: str) -> list[Fragment]:
    found: dict[str, str] = dict(_SCHEDULED.findall(hivm))
    fragments: list[Fragment] = []
    for match in _FUNCTION.finditer(source):
        name = match.group(1)
        blocks, core = _BLOCKS.search(found.get(name, "")), _CORE.search(found.get(name, ""))
        if blocks is None or core is None:
            raise CompilationError(f"Ascend's compiler scheduled no blocks for the fragment {name}")
        fragments.append(Fragment(name, int(blocks.group(1)), core.group(1)))
    return fragments


__all__ = [
    "DEFAULT_SOC",
    "HIVM_FILE",
    "LAUNCH_FILE",
    "OBJECT_FILE",
    "PACKAGE",
    "Fragment",
    "assemble_fragments",
    "find_tool",
    "read_soc",
]
