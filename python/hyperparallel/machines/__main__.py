# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints ``dialects/Supernode/SupernodePresets.inc``: the presets for the compiler, made from the YAML files."""

from __future__ import annotations

from hyperparallel.machines import attribute_text, load, preset_names


def preset_source() -> str:
    """The presets as initialisers of C++ pairs of name and attribute text."""
    head = "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
    head += "// Made by `python -m hyperparallel.machines` from python/hyperparallel/machines/*.yaml: do not edit.\n"
    return head + "".join(f'{{"{name}", R"mlir({attribute_text(load(name))})mlir"}},\n' for name in preset_names())


if __name__ == "__main__":
    print(preset_source(), end="")
