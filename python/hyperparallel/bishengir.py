# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments for Ascend NPUs: HFusion text through Ascend's compiler, ``bishengir-compile``.

Each fragment is compiled in a module and a process of its own: the compiler's passes confuse functions of one module, by where
they lie in memory, and refuse good ones. A refusal is believed when it was repeated. Some fragments are refused for what their
ops are together. They are cut in parts, and written anew, until it takes them; which were refused is kept in the cache (by MD5
digests of texts), so that the next program with such a fragment is right at once.

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
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from hyperparallel.cache import cache_directory
from hyperparallel.errors import CompilationError, MissingDependencyError

DEFAULT_SOC = "Ascend910B1"
PACKAGE = "ascendnpu-ir==1.2.0"
HIVM_FILE = "kernels.hivm.mlir"
LAUNCH_FILE = "kernels.launch"
_HIVM = "module.hivm.opt.mlir"
_OBJECT = "fragment.o"

_SOC = re.compile(r"Ascend[0-9A-Za-z_-]+")
_KNOWN_SOC = re.compile(r"^ +=(Ascend[^\s]+) ", re.MULTILINE)
_FUNCTION = re.compile(r"^func\.func @(\w+)\(.*?^}\n", re.MULTILINE | re.DOTALL)
_SCHEDULED = re.compile(r"func\.func @(\w+)\(.*?\battributes \{([^\n]*)\} \{\n")
_BLOCKS = re.compile(r"hacc\.block_dim = (\d+)")
_CORE = re.compile(r"hivm\.func_core_type = #hivm\.func_core_type<(\w+)>")
_OPERATION = re.compile(
    r"^ *%\w+ = (?:linalg|hfusion|arith|math)\.(?!constant)(\w+)"
    r"(?: \{\w+ = #\w+\.\w+<(\w+)>\}| \{arith\.(\w+)\})?",
    re.MULTILINE,
)
_ERROR = re.compile(r"error: (.*)")
_NO_HIVMC = "External hivmc run fails"
_TUNINGS: tuple[tuple[str, ...], ...] = (
    (),
    *((f"--hfusion-max-buffer-count-tuning={count}",) for count in (1, 2, 4, 8)),
)
"""The schedules to try: with more buffers to find room for, tiles are smaller."""
ONE_THREAD = "--mlir-disable-threading"
"""With several, ascendnpu-ir 1.2.0 crashes on a module, or refuses it, once in ten times: its passes share state."""
_TRIES = 3
"""How often a fragment must be refused, each time by a fresh process, before that is believed."""
_PATIENCE = 120.0
"""Seconds for one fragment, which takes less than one: passes of ascendnpu-ir 1.2.0 rewrite some fragments without end."""
_ENDLESS = "error: it did not come to an end"
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


@dataclasses.dataclass(frozen=True, slots=True)
class Scheduled:
    """A fragment that the compiler took.

    Attributes:
        fragment: How it was scheduled.
        hivm: Its module, scheduled.
        code: Its object, where hivmc is at hand.
    """

    fragment: Fragment
    hivm: str
    code: bytes | None


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


def object_file(name: str) -> str:
    """The file of a fragment's object, beside the program."""
    return f"kernels.{name}.o"


def write_fragments(
    text: Path,
    soc: str,
    write: Callable[[list[str]], None],
    clock: Callable[[], AbstractContextManager[None]] = nullcontext,
    threads: int = 0,
) -> list[Fragment]:
    """Writes fragments and compiles them for a chip; those that are refused are cut, and written again.

    Args:
        text: The file that ``write`` makes.
        soc: The chip.
        write: Generates the program. It gets the digests of fragments to cut, for the module's ``hp.refused``.
        clock: Compiling is done in a context that it makes.
        threads: How many compile at a time; 0 for all cores.

    Returns:
        How each fragment was scheduled, in the order of the text.

    Raises:
        MissingDependencyError: If there is no compiler.
        CompilationError: If it refuses a fragment of one op.
    """
    kept = cache_directory() / "bishengir" / f"{PACKAGE}-{soc}-alone.refused"
    refused = set(kept.read_text(encoding="utf-8").split()) if kept.exists() else set[str]()
    accepted: dict[str, Scheduled] = {}
    while True:
        write(sorted(refused))
        try:
            with clock():
                return assemble_fragments(text, soc, threads, accepted)
        except RefusedFragmentsError as error:
            if error.digests & refused:
                raise
            refused |= error.digests
            kept.parent.mkdir(parents=True, exist_ok=True)
            with kept.open("a", encoding="utf-8") as file:
                file.write("".join(f"{digest}\n" for digest in sorted(error.digests)))


def assemble_fragments(
    text: Path, soc: str, threads: int = 0, accepted: dict[str, Scheduled] | None = None
) -> list[Fragment]:
    """Compiles fragments for a chip.

    Writes ``kernels.hivm.mlir`` (a module for each), ``kernels.launch`` and, with hivmc, an object for each.

    Args:
        text: The module of fragments. What is written goes beside it.
        soc: The chip.
        threads: How many compile at a time; 0 for all cores.
        accepted: Fragments that the compiler took before, by digest; gets those that it takes now.

    Returns:
        How each fragment was scheduled, in the order of the text.

    Raises:
        MissingDependencyError: If there is no compiler.
        CompilationError: If it does not know the chip.
        RefusedFragmentsError: If it refuses some.
    """
    tool = find_tool("bishengir-compile")
    _check_soc(tool, soc)
    functions = read_fragments(text)
    known = {} if accepted is None else accepted
    found: dict[str, Scheduled] = {}
    refused: dict[str, str] = {}
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:

        def schedule(names: list[str]) -> None:
            made = pool.map(lambda name: _schedule(tool, name, functions[name], soc), names)
            for name, one in zip(names, made, strict=True):
                if isinstance(one, Scheduled):
                    found[name] = known[_digest(functions[name], name)] = one
                else:
                    refused[name] = one

        schedule([name for name, function in functions.items() if _digest(function, name) not in known])
        if refused:
            raise _refusal(refused, functions, soc)
        # The name is a part of the schedule, so one that was taken under another is compiled again.
        kept = {name: known[_digest(function, name)] for name, function in functions.items() if name not in found}
        found |= {name: one for name, one in kept.items() if one.fragment.name == name}
        schedule([name for name in kept if name not in found])
    if refused:
        raise _refusal(refused, functions, soc)
    _write_scheduled(text, [found[name] for name in functions])
    return [found[name].fragment for name in functions]


def _check_soc(tool: Path, soc: str) -> None:
    """Raises a CompilationError if the compiler lists chips, and not this one."""
    said = subprocess.run([tool, "--help"], capture_output=True, text=True, check=False).stdout
    known: list[str] = _KNOWN_SOC.findall(said)
    if known and soc not in known:
        raise CompilationError(f"expected a chip that {PACKAGE} compiles for ({', '.join(known)}) but got {soc!r}")


def _write_scheduled(text: Path, scheduled: list[Scheduled]) -> None:
    """Writes what is beside the module of fragments."""
    fragments = [one.fragment for one in scheduled]
    text.with_name(HIVM_FILE).write_text("// -----\n".join(one.hivm for one in scheduled), encoding="utf-8")
    lines = [f"{fragment.name} {fragment.blocks}\n" for fragment in fragments]
    text.with_name(LAUNCH_FILE).write_text("".join(lines), encoding="utf-8")
    for one in scheduled:
        if one.code is not None:
            text.with_name(object_file(one.fragment.name)).write_bytes(one.code)


def read_fragments(text: Path) -> dict[str, str]:
    """The functions of a module of fragments, by name."""
    return {match.group(1): match.group(0) for match in _FUNCTION.finditer(text.read_text(encoding="utf-8"))}


def count_operations(text: Path) -> dict[str, int]:
    """How often each operation is in the fragments of a module, the most frequent first.

    Elementwise ones are named by what they compute, such as ``mul``, and reductions by what they combine with.
    """
    found = Counter(fun or combined or name for name, fun, combined in _OPERATION.findall(text.read_text("utf-8")))
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


def _schedule(tool: Path, name: str, function: str, soc: str) -> Scheduled | str:
    """Compiles a fragment, again where it is refused; how it was scheduled, or what was said the last time."""
    one: Scheduled | str = ""
    for _ in range(_TRIES):
        with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
            one = _schedule_once(tool, name, function, soc, Path(temporary))
        if isinstance(one, Scheduled) or one.startswith(_ENDLESS):
            break
    return one


def _schedule_once(tool: Path, name: str, function: str, soc: str, folder: Path) -> Scheduled | str:
    """Runs the compiler, with smaller tiles where there is no room for larger.

    A fragment that became several kernels, which a host would have to launch, is refused.
    """
    module, said = folder / "module.mlir", ""
    module.write_text(f"module {{\n{function}}}\n", encoding="utf-8")
    for tuning in _TUNINGS:
        options = ["-enable-hfusion-compile=true", "-enable-hivm-compile=true", f"--target={soc}", ONE_THREAD, *tuning]
        try:
            ran = subprocess.run(
                [tool, module, *options, "-o", folder / _OBJECT, f"--save-temps={folder}"],
                capture_output=True,
                text=True,
                check=False,
                timeout=_PATIENCE,
            )
        except subprocess.TimeoutExpired:
            return f"{_ENDLESS} within {_PATIENCE:g} s"
        said = ran.stderr + ran.stdout
        if (folder / _HIVM).exists() or _NO_ROOM not in said:
            break
    if not (folder / _HIVM).exists():
        return said or "error: it ended without a word"
    code = (folder / _OBJECT).read_bytes() if (folder / _OBJECT).exists() else None
    if code is None and _NO_HIVMC not in said:
        return said
    hivm = (folder / _HIVM).read_text(encoding="utf-8")
    attributes = dict[str, str](_SCHEDULED.findall(hivm)).get(name, "")
    blocks, core = _BLOCKS.search(attributes), _CORE.search(attributes)
    if blocks is None or core is None:
        return "error: it scheduled no blocks, but several kernels"
    return Scheduled(Fragment(name, int(blocks.group(1)), core.group(1)), hivm, code)


def _refusal(refused: dict[str, str], functions: dict[str, str], soc: str) -> RefusedFragmentsError:
    """The error of fragments that were refused: which, and what was said about the first."""
    first, about = next(iter(refused.items()))
    reasons = [error for error in _ERROR.findall(about) if "Failed to run" not in error]
    return RefusedFragmentsError(
        f"Ascend's compiler refused the fragment {first} for {soc}",
        [*(reasons or about.splitlines())[:5], *functions[first].splitlines()[:60]],
        frozenset(_digest(functions[name], name) for name in refused),
    )


def _digest(text: str, name: str) -> str:
    """Of a fragment's text, in which it has no name of its own yet."""
    anonymous = text.replace(f"@{name}(", "@fragment(", 1)
    return hashlib.md5(anonymous.encode(), usedforsecurity=False).hexdigest()


__all__ = [
    "DEFAULT_SOC",
    "HIVM_FILE",
    "LAUNCH_FILE",
    "ONE_THREAD",
    "PACKAGE",
    "Fragment",
    "RefusedFragmentsError",
    "Scheduled",
    "assemble_fragments",
    "count_operations",
    "find_tool",
    "object_file",
    "read_fragments",
    "read_soc",
    "write_fragments",
]
