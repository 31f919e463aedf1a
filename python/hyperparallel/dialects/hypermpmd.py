# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""HyperMPMD: which device group runs which part of a program.

>>> from mlir import ir
>>> with ir.Context():
...     print(topology({"enc": {"tp": 1}, "dec": {"dp": 1, "tp": 3}}))
#hypermpmd.topology<"enc" = <["tp"=1]>, "dec" = <["dp"=1, "tp"=3]>>

Ops are made by the functions named as they are, at the insertion point. A fragment's body is a function of its inputs; as a
decorator, ``fragment`` puts the results in the place of that function:

>>> from mlir.dialects import arith, func
>>> with ir.Context(), ir.Location.unknown():
...     module, kind = ir.Module.create(), ir.RankedTensorType.get([4], ir.F32Type.get())
...     module.operation.attributes[TOPOLOGY] = topology({"a": {"dp": 1}, "b": {"dp": 2}})
...     with ir.InsertionPoint(module.body):
...         @func.FuncOp.from_py_func(kind)
...         def main(x):
...             @fragment("a", [x], stage=0)
...             def doubled(x):
...                 return arith.addf(x, x)
...             moved = transfer(doubled[0], "a", "b")
...             @fragment("b", [moved], stage=1)
...             def squared(x):
...                 return arith.mulf(x, x)
...             return squared
...     module.operation.verify()
True

What cannot be is a ``ValueError`` with the verifier's words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlir import ir

from hyperparallel.dialects import _hypermpmd_ops_gen as ops
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


Body = Callable[..., "ir.Value | Sequence[ir.Value]"]
"""What a fragment computes: values of its inputs."""


def fragment(
    group: str,
    inputs: Sequence[ir.Value],
    *,
    kind: FragmentKind | str = FragmentKind.FORWARD,
    stage: int | None = None,
    microbatch: int | None = None,
) -> Callable[[Body], tuple[ir.Value, ...]]:
    """A part of the program that one device group runs.

    Args:
        group: A group of the module's topology.
        inputs: What the part reads; it sees nothing else.
        kind: What it does for a training step.
        stage: The stage that it is of, if any.
        microbatch: The microbatch that it is of, if any.

    Returns:
        What takes the body, a function from the inputs' values to one or several, and gives the results.

    Raises:
        ValueError: If stage or microbatch are negative, or the body gives something else than values.
    """
    for what, number in (("stage", stage), ("microbatch", microbatch)):
        if number is not None and number < 0:
            raise ValueError(f"expected {what} to be at least 0 but got {number}")
    kind = FragmentKind(kind)

    def make(body: Body) -> tuple[ir.Value, ...]:
        # Results have the types of what the body gives, which is known when it has run.
        draft = _fragment([], group, inputs, kind, stage, microbatch)
        types = [value.type for value in inputs]
        block = ir.Block.create_at_start(draft.regions[0], types, [ir.Location.unknown()] * len(types))
        try:
            with ir.InsertionPoint(block):
                given = body(*block.arguments)
                values = [given] if isinstance(given, ir.Value) else list(given)
                for value in values:
                    if not isinstance(value, ir.Value):  # pyright: ignore[reportUnnecessaryIsInstance]
                        raise ValueError(f"expected the body of a fragment to give values but got {value!r}")
                ops.YieldOp(values)
            made = _fragment([value.type for value in values], group, inputs, kind, stage, microbatch)
            block.append_to(made.regions[0])
        finally:
            draft.erase()
        return tuple(made.results)

    return make


def _fragment(
    types: Sequence[ir.Type],
    group: str,
    inputs: Sequence[ir.Value],
    kind: FragmentKind,
    stage: int | None,
    microbatch: int | None,
) -> ir.Operation:
    return ops.FragmentOp(
        types,
        group,
        ir.Attribute.parse(f"#hypermpmd<fragment_kind {kind}>"),
        inputs,
        stage=stage,
        microbatch=microbatch,
    ).operation


def transfer(value: ir.Value, source: str, target: str) -> ir.Value:
    """The value on another group.

    Args:
        value: A tensor that the group ``source`` has.
        source: Where it is.
        target: Where it goes.

    Raises:
        ValueError: If both are one group.
    """
    if source == target:
        raise ValueError(f"expected a transfer to another group but got one from {source} to {target}")
    return ops.TransferOp(value, source, target).result


def send(value: ir.Value, peer: str, tag: int) -> None:
    """Send a value to the program of another group, which meets its ``recv`` of the same tag.

    Args:
        value: A tensor.
        peer: The other group.
        tag: Numbers the messages between the two groups.
    """
    ops.SendOp(value, peer, tag)


def recv(kind: ir.Type, peer: str, tag: int) -> ir.Value:
    """What the program of another group sends with the same tag.

    Args:
        kind: The tensor's type.
        peer: The other group.
        tag: Numbers the messages between the two groups.
    """
    return ops.RecvOp(kind, peer, tag).result


__all__ = [
    "GROUP",
    "GROUPS",
    "TOPOLOGY",
    "Body",
    "FragmentKind",
    "fragment",
    "ops",
    "recv",
    "send",
    "topology",
    "transfer",
]
