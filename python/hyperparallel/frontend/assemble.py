# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the worker's text to the finished module, in the MLIR that the rest of the product uses.

1. Calls of kernels are replaced by the kernels' text.
2. The text is parsed and verified by the stock ``mlir`` package.
3. Names, roles, module paths and phases are attached.
4. What is done for each microbatch is put into a loop (``microbatches.py``).
5. Constants of ``float64`` that are only ever narrowed become constants of the narrow type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hyperparallel.enums import StepPhase
from hyperparallel.errors import ImportModelError
from hyperparallel.frontend.graph import Node
from hyperparallel.frontend.kernels import Kernel
from hyperparallel.frontend.microbatches import Microbatches, loop_over_microbatches

_KERNEL_CALL = re.compile(r"^\s*(%[\w#]+) = (?:func\.)?call @(hp_kernel_\d+)\(([^)]*)\) : .*$", re.MULTILINE)
_KERNEL_DECLARATION = re.compile(r"^\s*func\.func private @hp_kernel_\d+\(.*$\n?", re.MULTILINE)


def assemble(
    text: str,
    *,
    kernels: Mapping[str, Kernel],
    argument_attributes: Sequence[Mapping[str, str | Sequence[str]]],
    result_attributes: Sequence[Mapping[str, str | Sequence[str]]],
    calls: Sequence[Node],
    segments: frozenset[str] = frozenset(),
    with_phases: bool = False,
    microbatches: Microbatches | None = None,
) -> str:
    """Return the text of the finished module.

    Args:
        text: What the worker returned; ``@main`` is its entry.
        kernels: The kernels that the text calls, by function name.
        argument_attributes: For each argument of ``@main``, what to attach to it.
        result_attributes: For each result of ``@main``, what to attach to it.
        calls: The calls in ``@main``, in order.
        segments: The functions that are marked as segments.
        with_phases: Attach the phases of calls, too.
        microbatches: How many, and which inputs are split into them.

    Raises:
        ImportModelError: The text is not a valid module.
    """
    from mlir import ir as mlir_ir

    from hyperparallel.dialects import register

    ir: Any = mlir_ir
    text = _KERNEL_DECLARATION.sub("", text)
    count = 0

    def expand(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        result, callee, operands = match.groups()
        return kernels[callee].text(operands.split(", "), result, f"hpk{count}")

    text = _KERNEL_CALL.sub(expand, text)
    with ir.Context() as context, ir.Location.unknown():
        register(context)
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError as error:
            raise ImportModelError(f"the lowered model is not valid MLIR: {error}") from error
        main = _find_main(module)
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([_dictionary(ir, entry) for entry in argument_attributes])
        main.attributes["res_attrs"] = ir.ArrayAttr.get([_dictionary(ir, entry) for entry in result_attributes])
        found = [op.operation for op in main.regions[0].blocks[0] if op.operation.name == "func.call"]
        for operation, call in zip(found, calls, strict=True):
            operation.attributes["hp.path"] = ir.StringAttr.get(call.path)
            if with_phases:
                operation.attributes["hp.phase"] = ir.StringAttr.get(str(call.phase))
        for function in module.body:
            if function.attributes["sym_name"].value in segments:
                function.attributes["hp.segment"] = ir.UnitAttr.get()
            _narrow_constants(ir, function)
        if microbatches is not None:
            updates = [call.phase is StepPhase.UPDATE for call in calls]
            loop_over_microbatches(ir, main, microbatches, dict(zip(found, updates, strict=True)))
        module.operation.verify()
        return str(module)


def _find_main(module: Any) -> Any:
    for operation in module.body:
        if operation.attributes["sym_name"].value == "main":
            return operation
    raise ImportModelError("the lowered model has no function @main")


def _dictionary(ir: Any, entries: Mapping[str, str | Sequence[str]]) -> Any:
    def attribute(value: str | Sequence[str]) -> Any:
        if isinstance(value, str):
            return ir.StringAttr.get(value)
        return ir.ArrayAttr.get([ir.StringAttr.get(entry) for entry in value])

    return ir.DictAttr.get({key: attribute(value) for key, value in entries.items()})


def _narrow_constants(ir: Any, function: Any) -> None:
    """Python numbers arrive as ``f64`` constants with a ``truncf`` at every use: round them here, once and alike."""
    if not function.regions[0].blocks:
        return
    f64 = ir.F64Type.get()
    for constant in list(function.regions[0].blocks[0]):
        operation = constant.operation
        if operation.name != "arith.constant" or operation.results[0].type != f64:
            continue
        value = ir.FloatAttr(operation.attributes["value"]).value
        narrow: dict[str, Any] = {}
        users = [use.owner.operation for use in operation.results[0].uses]
        for user in users:
            if user.name != "arith.truncf":
                continue
            type_ = user.results[0].type
            if str(type_) not in narrow:
                narrow[str(type_)] = ir.Operation.create(
                    "arith.constant",
                    results=[type_],
                    attributes={"value": ir.FloatAttr.get(type_, value)},
                    ip=ir.InsertionPoint(operation),
                ).results[0]
            user.results[0].replace_all_uses_with(narrow[str(type_)])
            user.erase()
        if not list(operation.results[0].uses):
            operation.erase()
