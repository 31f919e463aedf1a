# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layers point one way: what a file may include or import follows from where it is."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from source_tree import ROOT, files, name

# A file under the key may include what is under the values, and what is under the key itself. The longest key counts.
MAY_INCLUDE = {
    "dialects/Interfaces": [],
    "dialects/Supernode": ["dialects/Interfaces"],
    "dialects/Offload": ["dialects/Interfaces"],
    "dialects/Fused": [],
    "dialects/Indexing": [],
    "dialects/Stream": [],
    "dialects/HyperShard": ["dialects/Interfaces", "dialects/Supernode"],
    "dialects/HyperMPMD": ["dialects/Interfaces", "dialects/Supernode", "dialects/HyperShard"],
    "lib/Analysis": ["dialects"],
    "lib/ExternalModels": ["dialects", "lib/Analysis"],
    "lib/Transforms/HyperShard": ["dialects", "lib/Analysis", "lib/ExternalModels"],
    "lib/Transforms/HyperMPMD": ["dialects", "lib/Analysis", "lib/Scheduler"],
    "lib/Transforms/Offload": ["dialects", "lib/Analysis", "lib/Planner"],
    "lib/Transforms/Indexing": ["dialects"],
    "lib/Transforms/Stream": ["dialects", "lib/Analysis"],
    "lib/Transforms/TestAnalysis": ["dialects", "lib/Analysis"],
    "lib/Conversion": ["dialects", "lib/Analysis", "lib/Runtime/hp_runtime.h"],
    "lib/CodeGen": ["dialects", "lib/Pipelines", "lib/Runtime/hp_runtime.h"],
    "lib/Planner": [],
    "lib/Scheduler": [],
    "lib/Simulator": ["dialects", "lib/Analysis"],
    "lib/Pipelines": [
        "dialects",
        "lib/Analysis",
        "lib/ExternalModels",
        "lib/Transforms",
        "lib/Conversion",
    ],
    "lib/Runtime": [],
    "lib/CAPI": [
        "dialects",
        "lib/Analysis",
        "lib/Planner",
        "lib/Scheduler",
        "lib/Simulator",
        "lib/Pipelines",
        "lib/CodeGen",
    ],
    "lib/Tools": ["lib/Pipelines"],
    "python/bindings": ["lib/CAPI"],
    "test/CAPI": ["lib/CAPI"],
    "test/Runtime": ["lib/Runtime"],
}
INCLUDE = re.compile(r'^(?:#\s*)?include\s+["<]([^">]+)[">]', re.M)
OURS = ("dialects/", "lib/", "python/", "test/")
CXX = [path for path in files(".h", ".cpp", ".c", ".td") if name(path).startswith(OURS)]

# What a Python module may import, of the package's own parts and of heavy packages. `None` is the package's root.
PARTS_MAY_IMPORT = {
    "enums": set[str](),
    "errors": set[str](),
    "executables": set[str](),
    "hp_opt": {"executables"},
    "progress": {"errors"},
    "machines": {"enums", "errors"},
    "dialects": {"enums", "errors", "machines"},
    "cache": set[str](),
    "frontend": {"cache", "dialects", "enums", "errors", "progress", "hp_opt"},
    "plan": {"enums", "errors", "progress", "machines"},
    "runtime": {"enums", "errors", "progress"},
    "report": {"enums", "errors", "simulator", "compiled", "runtime"},
    "offload": {"enums", "errors", "simulator"},
    "schedules": {"enums", "errors"},
}
HEAVY = {"torch", "torch_mlir", "transformers", "mlir", "numpy"}
HEAVY_ALLOWED = {
    "frontend": {"torch", "torch_mlir", "transformers", "mlir", "numpy"},
    "dialects": {"mlir"},
    "machines": set[str](),
    "runtime": {"numpy"},
    "plan": set[str](),
    "simulator": {"mlir"},
    "report": set[str](),
    "offload": set[str](),
    "schedules": set[str](),
    "enums": set[str](),
    "errors": set[str](),
    "hp_opt": set[str](),
    "": set[str](),
}
PACKAGE = ROOT / "python" / "hyperparallel"
PYTHON = [path for path in files(".py", under=("python/hyperparallel",))]


def layer_of(path: str) -> str | None:
    """The longest key that the path is under."""
    return max((key for key in MAY_INCLUDE if path == key or path.startswith(key + "/")), key=len, default=None)


def layering_faults(path: str, text: str) -> list[str]:
    """Includes that the table does not allow."""
    layer = layer_of(path)
    faults: list[str] = []
    for included in INCLUDE.findall(text):
        if not included.startswith(OURS) or layer is None:
            continue
        # A generated header lies where its source does.
        if not any(included == one or included.startswith(one + "/") for one in [layer, *MAY_INCLUDE[layer]]):
            faults.append(f"{path} includes {included}: {layer} may not")
    return faults


def test_every_folder_of_the_compiler_is_in_the_table() -> None:
    unknown = {name(path.parent) for path in CXX if layer_of(name(path)) is None and path.suffix != ".td"}
    assert {folder for folder in unknown if not folder.startswith("test/")} == set()


def test_includes_point_one_way() -> None:
    assert [fault for path in CXX for fault in layering_faults(name(path), path.read_text())] == []


def test_the_check_finds_a_fault() -> None:
    assert layering_faults("lib/Analysis/X.h", '#include "lib/Transforms/HyperShard/Passes.h"\n') != []
    assert layering_faults("dialects/HyperShard/X.td", 'include "lib/Analysis/X.td"\n') != []
    assert layering_faults("lib/CAPI/X.cpp", '#include "lib/Pipelines/X.h"\n#include "mlir/IR/Y.h"\n') == []


def test_the_runtime_knows_no_mlir() -> None:
    foreign = [
        f"{name(path)} includes {included}"
        for path in CXX
        if name(path).startswith("lib/Runtime/")
        for included in INCLUDE.findall(path.read_text())
        if included.startswith(("mlir", "llvm"))
    ]
    assert foreign == []


def test_an_include_line_is_the_path_from_the_root() -> None:
    relative = [
        f"{name(path)} includes {included}"
        for path in CXX
        for included in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M)
        if (path.parent / included).exists() and not (ROOT / included).exists()
    ]
    assert relative == []


def imports(path: Path) -> set[str]:
    """Every module that a file imports anywhere, in full."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names if node.module == "hyperparallel")
        elif isinstance(node, ast.ImportFrom):
            found.add(f"<relative import of {node.module}>")
    return found


def part_of(path: Path) -> str:
    """The first name below the package, '' for its __init__."""
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


@pytest.mark.parametrize("path", PYTHON, ids=name)
def test_python_layers(path: Path) -> None:
    part = part_of(path)
    imported = imports(path)
    assert not [entry for entry in imported if entry.startswith("<")], "imports are absolute"
    if part in HEAVY_ALLOWED:
        heavy = {entry.split(".")[0] for entry in imported} & HEAVY
        assert heavy <= HEAVY_ALLOWED[part]
    if part in PARTS_MAY_IMPORT:
        parts = {entry.split(".")[1] for entry in imported if entry.startswith("hyperparallel.")}
        assert parts - {part, "_hyperparallel"} <= PARTS_MAY_IMPORT[part]


def test_planner_and_scheduler_know_no_mlir() -> None:
    foreign = [
        f"{name(path)} includes {included}"
        for path in CXX
        if name(path).startswith(("lib/Planner/", "lib/Scheduler/"))
        for included in INCLUDE.findall(path.read_text())
        if included.startswith(("mlir", "llvm"))
    ]
    assert foreign == []


def test_torch_mlir_is_met_in_the_frontend_only() -> None:
    users = {part_of(path) for path in PYTHON if any(entry.split(".")[0] == "torch_mlir" for entry in imports(path))}
    assert users <= {"frontend"}


def loaded_by(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has after a statement."""
    program = f"{statement}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_the_package_is_light() -> None:
    assert loaded_by("import hyperparallel") & (HEAVY | {"rich", "yaml"}) == set()
    assert loaded_by("import hyperparallel.cli.main") & (HEAVY - {"numpy"}) == set()


def test_planning_needs_no_torch() -> None:
    assert loaded_by("import hyperparallel.plan") & {"torch", "torch_mlir", "transformers"} == set()


def test_torch_mlir_and_our_mlir_do_not_share_a_process() -> None:
    program = (
        "import sys, types\n"
        "sys.modules['torch_mlir'] = types.ModuleType('torch_mlir')\n"
        "try:\n"
        "    import hyperparallel.dialects\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "must not share" in run.stdout
