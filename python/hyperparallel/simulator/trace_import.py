# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A recorded step as a module of opaque tasks, which passes plan and ``hp simulate`` executes like any program.

Each op is a ``supernode.task``, each tensor a ``tensor<Nxi8>`` of its bytes:

- a persistent tensor is an argument of ``@main`` (``hp.name`` is ``t17`` for tensor 17) and, if it is written, a result
  that updates it (``hp.updates``);
- the first op that writes another tensor has a ``tensor.empty`` in its ``outs``, or the first that reads it, if nothing
  wrote it before (it is brought in then);
- an op that writes a tensor again has the value of before in its ``outs``.

So a value lives exactly from the first to the last op of its tensor.

An argument's memory is its caller's: what leaves the device during the step has to be in a tier between steps, too. With
``resident`` a persistent tensor is no argument, but made by a first task and read by a last one, of no seconds: then it is
on the device at both ends of the step, as the trace says, and may leave in between like any other.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from hyperparallel.simulator.traces import Operation, Trace

if TYPE_CHECKING:
    from mlir import ir


def _with_ends(trace: Trace) -> Trace:
    """The same step between a task that makes what persists and one that reads it."""
    kept = tuple(number for number, keep in enumerate(trace.persistent) if keep)
    ends = (Operation("begin", 0.0, (), kept), Operation("end", 0.0, kept, ()))
    operations = (ends[0], *trace.operations, ends[1]) if kept else trace.operations
    return dataclasses.replace(trace, persistent=(False,) * len(trace.tensors), operations=operations)


def import_trace(trace: Trace, context: ir.Context | None = None, *, resident: bool = False) -> ir.Module:
    """The module that does what a trace recorded.

    Args:
        trace: The step.
        context: Where the module is made; one of its own if None.
        resident: Persistent tensors are on the device at both ends of the step instead of being arguments.

    Example:
        >>> from hyperparallel.simulator.traces import Operation, Trace
        >>> trace = Trace("tiny", (8, 4), (True, False), (Operation("relu", 0.5, (0,), (1,)),))
        >>> print(import_trace(trace))
        module @tiny {
          func.func @main(%arg0: tensor<8xi8> {hp.name = "t0", hp.role = "parameter"}) {
            %0 = tensor.empty() : tensor<4xi8>
            %1 = supernode.task "relu" ins(%arg0 : tensor<8xi8>) outs(%0 : tensor<4xi8>) {seconds = 5.000000e-01 : f64}
            return
          }
        }
        <BLANKLINE>
    """
    from mlir import ir
    from mlir.dialects import func, tensor

    from hyperparallel import dialects
    from hyperparallel.dialects import supernode

    if context is None:
        context = ir.Context()
        dialects.register(context)
    if resident:
        trace = _with_ends(trace)
    persistent = [number for number, keep in enumerate(trace.persistent) if keep]
    written = {tensor for operation in trace.operations for tensor in operation.writes}
    returned = [number for number in persistent if number in written]
    with context, ir.Location.unknown():
        byte = ir.IntegerType.get_signless(8)
        types = {size: ir.RankedTensorType.get([size], byte) for size in {*trace.tensors}}
        name = {number: ir.StringAttr.get(f"t{number}") for number in persistent}
        module = ir.Module.create()
        if trace.name:
            module.operation.attributes["sym_name"] = ir.StringAttr.get(trace.name)
        kinds: Any = (
            [types[trace.tensors[number]] for number in persistent],
            [types[trace.tensors[number]] for number in returned],
        )
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", kinds)
        role = ir.StringAttr.get("parameter")
        main.arg_attrs = ir.ArrayAttr.get(
            [ir.DictAttr.get({"hp.name": name[number], "hp.role": role}) for number in persistent]
        )
        if returned:
            main.attributes["res_attrs"] = ir.ArrayAttr.get(
                [ir.DictAttr.get({"hp.name": name[number], "hp.updates": name[number]}) for number in returned]
            )
        block = main.add_entry_block()
        values: dict[int, ir.Value] = dict(zip(persistent, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for operation in trace.operations:
                outs = [number for number in dict.fromkeys((*operation.writes, *operation.reads))]
                outs = [number for number in outs if number in {*operation.writes} or number not in values]
                ins = [number for number in dict.fromkeys(operation.reads) if number not in {*outs}]
                for number in outs:
                    if number not in values:
                        values[number] = tensor.EmptyOp([trace.tensors[number]], byte).result
                task = supernode.task(
                    operation.name,
                    operation.seconds,
                    [values[number] for number in ins],
                    [values[number] for number in outs],
                )
                values.update(zip(outs, task.results, strict=True))
            func.ReturnOp([values[number] for number in returned])
        module.operation.verify()
        return module


__all__ = ["import_trace"]
