# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lit's configuration: the tools come from this interpreter's wheels and from the package of this tree."""

import importlib.util
import os
import sys

import lit.formats
from lit.llvm import config as llvm
from lit.llvm.subst import ToolSubst

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def bin_of(package: str) -> str:
    """The bin folder of an installed wheel."""
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or []) if spec else []
    if not places:
        lit_config.fatal(f"the Python package {package} is missing: run `make build`")
    return os.path.join(places[0], "bin")


config.name = "HyperParallel"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".c"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.join(root, "test")
config.test_exec_root = os.path.join(root, "build", "test")

package_bin = os.path.join(root, "python", "hyperparallel", "bin")
config.llvm_tools_dir = bin_of("llvm")
llvm_config = llvm.LLVMConfig(lit_config, config)
llvm_config.with_environment("FILECHECK_OPTS", "-enable-var-scope --allow-unused-prefixes=false")
llvm_config.with_environment("PYTHONPATH", os.path.join(root, "python"), append_path=True)
config.substitutions.append(("%python", sys.executable))
llvm_config.add_tool_substitutions(
    [
        "hp-opt",
        "hp-capi-hypershard",
        "hp-capi-supernode",
        "mlir-opt",
        "FileCheck",
        ToolSubst("not"),
        ToolSubst("count"),
        "split-file",
    ],
    [
        package_bin,
        os.path.dirname(os.path.realpath(os.path.join(package_bin, "hp-opt"))),
        bin_of("mlir"),
        config.llvm_tools_dir,
    ],
)
