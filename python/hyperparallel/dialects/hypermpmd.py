# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""HyperMPMD: which device group runs which part of a program.

>>> from mlir import ir
>>> with ir.Context():
...     print(topology({"enc": {"tp": 1}, "dec": {"dp": 1, "tp": 3}}))
#hypermpmd.topology<"enc" = <["tp"=1]>, "dec" = <["dp"=1, "tp"=3]>>

What cannot be is a ``ValueError`` with the verifier's words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir import ir

from hyperparallel.enums import StrEnum

TOPOLOGY = "hypermpmd.topology"
"""The name under which a topology hangs on a module."""

GROUP = "hypermpmd.group"
"""The name under which the group hangs on a module, or a result."""

GROUPS = "hypermpmd.groups"
"""The name under which the groups that are handed an argument hang on it."""


class FragmentKind(StrEnum):
    """What a fragment does for a training step."""

    FORWARD = "forward"
    BACKWARD = "backward"
    BACKWARD_INPUT = "backward_input"
    BACKWARD_WEIGHT = "backward_weight"
    UPDATE = "update"


def topology(groups: Mapping[str, Mapping[str, int]], context: ir.Context | None = None) -> ir.Attribute:
    """A ``#hypermpmd.topology``.

    Args:
        groups: The axes of each group's mesh, in the order of the groups' devices.
        context: Where it is made; the current one if None.

    Raises:
        ValueError: If the groups do not make a topology.
    """
    parts = [
        f'"{name}" = <[' + ", ".join(f'"{axis}"={size}' for axis, size in mesh.items()) + "]>"
        for name, mesh in groups.items()
    ]
    error: Any = getattr(ir, "MLIRError")  # noqa: B009
    try:
        return ir.Attribute.parse(f"#hypermpmd.topology<{', '.join(parts)}>", context)
    except error as refused:
        raise ValueError(str(refused)) from None


__all__ = ["GROUP", "GROUPS", "TOPOLOGY", "FragmentKind", "topology"]
