# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments for Ascend NPUs: HFusion text through Ascend's compiler, ``bishengir-compile``.

Some fragments it refuses for what their ops are together. They are cut in parts, and written anew, until it takes them; which
were refused is kept in the cache (by MD5 digests of texts), so that the next program with such a fragment is right at once.

The compiler comes with ``pip install ascendnpu-ir``; it is looked for in ``$HP_BISHENGIR`` (a folder), there, and on the
``PATH``. Its last step, ``hivmc``, is only a part of CANN: without it, a program is verified down to HIVM, scheduled for
the chip, and has no object to run.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from hyperparallel.cache import cache_directory
from hyperparallel.errors import CompilationError, MissingDependencyError

DEFAULT_SOC = "Ascend910B1"
PACKAGE = "ascendnpu-ir==1.2.0"
HIVM_FILE = "kernels.hivm.mlir"
OBJECT_FILE = "kernels.o"
LAUNCH_FILE = "kernels.launch"
_HIVM = "module.hivm.opt.mlir"

_SOC = re.compile(r"Ascend[0-9A-Za-z_]+")
_FUNCTION = re.compile(r"^func\.func @(\w+)\(.*?^}\n", re.MULTILINE | re.DOTALL)
_SCHEDULED = re.compile(r"func\.func @(\w+)\(.*?\battributes \{([^\n]*)\} \{\n")
_BLOCKS = re.compile(r"hacc\.block_dim = (\d+)")
_CORE = re.compile(r"hivm\.func_core_type = #hivm\.func_core_type<(\w+)>")
_ERROR = re.compile(r"error: (.*)")
_PLACE = re.compile(r'loc\("[^"]*":(\d+):\d+\): error')
_NO_HIVMC = "External hivmc run fails"
_TUNINGS: tuple[tuple[str, ...], ...] = (
    (),
    *((f"--hfusion-max-buffer-count-tuning={count}",) for count in (1, 2, 4, 8)),
)
"""The schedules to try: with more buffers to find room for, tiles are smaller."""
ONE_THREAD = "--mlir-disable-threading"
"""With several, ascendnpu-ir 1.2.0 crashes on a module, or refuses it, once in ten times: its passes share state."""
_NO_ROOM = "overflow"
"""In what is said where a schedule needs more memory than there is beside a core."""


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


class RefusedFragmentsError(CompilationError):
    """Ascend's compiler refused fragments.

    Attributes:
        digests: Of their texts, as ``hp-form-fragments`` knows them.
    """

    def __init__(self, message: str, diagnostics: list[str], digests: frozenset[str]) -> None:
        super().__init__(message, diagnostics=diagnostics)
        self.digests = digests


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


def write_fragments(text: Path, soc: str, write: Callable[[list[str]], None]) -> list[Fragment]:
    """Writes fragments and compiles them for a chip; those that are refused are cut, and written again.

    Args:
        text: The file that ``write`` makes.
        soc: The chip.
        write: Generates the program. It gets the digests of fragments to cut, for the module's ``hp.refused``.

    Returns:
        How each fragment was scheduled, in the order of the text.

    Raises:
        MissingDependencyError: If there is no compiler.
        CompilationError: If it refuses a fragment of one op.
    """
    kept = cache_directory() / "bishengir" / f"{PACKAGE}-{soc}.refused"
    refused = set(kept.read_text(encoding="utf-8").split()) if kept.exists() else set[str]()
    accepted: set[str] = set()
    while True:
        write(sorted(refused))
        try:
            return assemble_fragments(text, soc)
        except RefusedFragmentsError as error:
            found: RefusedFragmentsError | None = error
        # Only what nothing is known of is scheduled, until all is accepted.
        while found is not None:
            if found.digests & refused:
                raise found
            refused |= found.digests
            kept.parent.mkdir(parents=True, exist_ok=True)
            with kept.open("a", encoding="utf-8") as file:
                file.write("".join(f"{digest}\n" for digest in sorted(found.digests)))
            found = _find_refused(text, soc, refused, accepted)
            if found is None:
                write(sorted(refused))
                found = _find_refused(text, soc, set(), accepted)


def _find_refused(text: Path, soc: str, known: set[str], accepted: set[str]) -> RefusedFragmentsError | None:
    """Schedules fragments that are neither known nor accepted, and adds them to the accepted; or says which are refused."""
    functions = read_fragments(text)
    digests = {name: _digest(function, name) for name, function in functions.items()}
    unknown = {name: functions[name] for name, digest in digests.items() if digest not in known | accepted}
    if unknown:
        with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
            try:
                _schedule_all(unknown, soc, Path(temporary))
            except RefusedFragmentsError as error:
                return error
    accepted |= {digests[name] for name in unknown}
    return None


def assemble_fragments(text: Path, soc: str) -> list[Fragment]:
    """Compiles fragments for a chip; writes ``kernels.hivm.mlir``, ``kernels.launch`` and, with hivmc, ``kernels.o``.

    Args:
        text: The module of fragments. What is written goes beside it.
        soc: The chip.

    Returns:
        How each fragment was scheduled, in the order of the text.

    Raises:
        MissingDependencyError: If there is no compiler.
        RefusedFragmentsError: If it refuses some.
        CompilationError: If it fails otherwise.
    """
    find_tool("bishengir-compile")
    functions = read_fragments(text)
    fragments: list[Fragment] = []
    if functions:
        with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
            folder = Path(temporary)
            fragments = _schedule_all(functions, soc, folder)
            shutil.copyfile(folder / _HIVM, text.with_name(HIVM_FILE))
            if (folder / OBJECT_FILE).exists():
                shutil.copyfile(folder / OBJECT_FILE, text.with_name(OBJECT_FILE))
    lines = [f"{fragment.name} {fragment.blocks}\n" for fragment in fragments]
    text.with_name(LAUNCH_FILE).write_text("".join(lines), encoding="utf-8")
    return fragments


def read_fragments(text: Path) -> dict[str, str]:
    """The functions of a module of fragments, by name."""
    return {match.group(1): match.group(0) for match in _FUNCTION.finditer(text.read_text(encoding="utf-8"))}


def _schedule_all(functions: Mapping[str, str], soc: str, folder: Path) -> list[Fragment]:
    """Compiles fragments; the folder then has ``_HIVM`` and, with hivmc, the object."""
    tool = find_tool("bishengir-compile")
    said = _schedule(tool, functions, soc, folder)
    if not (folder / _HIVM).exists():
        raise _refusal(tool, functions, soc, said)
    if not (folder / OBJECT_FILE).exists() and _NO_HIVMC not in said:
        raise CompilationError("Ascend's compiler made no object", diagnostics=said.splitlines()[:20])
    return _read_schedules((folder / _HIVM).read_text(encoding="utf-8"), functions, soc)


def _schedule(tool: Path, functions: Mapping[str, str], soc: str, folder: Path) -> str:
    """Runs the compiler, with smaller tiles where there is no room for larger; what it said.

    Where it succeeds, ``_HIVM`` is in the folder.
    """
    module, said = folder / "module.mlir", ""
    module.write_text("module {\n" + "".join(functions.values()) + "}\n", encoding="utf-8")
    for tuning in _TUNINGS:
        options = ["-enable-hfusion-compile=true", "-enable-hivm-compile=true", f"--target={soc}", ONE_THREAD, *tuning]
        ran = subprocess.run(
            [tool, module, *options, "-o", folder / OBJECT_FILE, f"--save-temps={folder}"],
            capture_output=True,
            text=True,
            check=False,
        )
        said = ran.stderr + ran.stdout
        if (folder / _HIVM).exists() or _NO_ROOM not in said:
            break
    return said


def _refusal(tool: Path, functions: Mapping[str, str], soc: str, said: str) -> CompilationError:
    """The error of a module that was refused: which fragments are at fault, and what is wrong with the first."""
    refused = {name: said for name in functions if name in _blamed(functions, said)}
    if not refused:
        with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
            refused = _refused_alone(tool, functions, soc, Path(temporary))
    if not refused:
        return CompilationError(
            f"Ascend's compiler refused the fragments for {soc}", diagnostics=_ERROR.findall(said)[:20]
        )
    first, about = next(iter(refused.items()))
    reasons = [error for error in _ERROR.findall(about) if "Failed to run" not in error]
    return RefusedFragmentsError(
        f"Ascend's compiler refused the fragment {first} for {soc}",
        [*(reasons or about.splitlines())[:5], *functions[first].splitlines()[:60]],
        frozenset(_digest(functions[name], name) for name in refused),
    )


def _blamed(functions: Mapping[str, str], said: str) -> set[str]:
    """The functions at whose lines errors are."""
    owners = [""]
    for name, text in functions.items():
        owners += [name] * text.count("\n")
    lines = [int(line) for line in _PLACE.findall(said)]
    return {owners[line - 1] for line in lines if 1 < line <= len(owners)}


def _refused_alone(tool: Path, functions: Mapping[str, str], soc: str, folder: Path) -> dict[str, str]:
    """The functions that are refused by themselves, and what is said about them."""
    refused: dict[str, str] = {}
    for name, text in functions.items():
        said = _schedule(tool, {name: text}, soc, folder)
        if not (folder / _HIVM).exists():
            refused[name] = said
        (folder / _HIVM).unlink(missing_ok=True)
    return refused


def _digest(text: str, name: str) -> str:
    """Of a fragment's text, in which it has no name of its own yet."""
    anonymous = text.replace(f"@{name}(", "@fragment(", 1)
    return hashlib.md5(anonymous.encode(), usedforsecurity=False).hexdigest()


def _read_schedules(hivm: str, functions: Mapping[str, str], soc: str) -> list[Fragment]:
    """How fragments were scheduled. One that became several kernels, which a host would have to launch, is refused."""
    found: dict[str, str] = dict(_SCHEDULED.findall(hivm))
    fragments: list[Fragment] = []
    several: list[str] = []
    for name in functions:
        blocks, core = _BLOCKS.search(found.get(name, "")), _CORE.search(found.get(name, ""))
        if blocks is None or core is None:
            several.append(name)
        else:
            fragments.append(Fragment(name, int(blocks.group(1)), core.group(1)))
    if several:
        raise RefusedFragmentsError(
            f"Ascend's compiler scheduled no blocks for the fragment {several[0]} for {soc}",
            functions[several[0]].splitlines()[:60],
            frozenset(_digest(functions[name], name) for name in several),
        )
    return fragments


__all__ = [
    "DEFAULT_SOC",
    "HIVM_FILE",
    "LAUNCH_FILE",
    "OBJECT_FILE",
    "ONE_THREAD",
    "PACKAGE",
    "Fragment",
    "RefusedFragmentsError",
    "assemble_fragments",
    "find_tool",
    "read_fragments",
    "read_soc",
    "write_fragments",
]
