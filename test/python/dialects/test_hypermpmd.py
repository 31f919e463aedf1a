# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python builders of HyperMPMD: what they make is what is printed, and a program of them goes through the passes."""

from __future__ import annotations

import doctest
from collections.abc import Iterator

import pytest
from mlir import ir
from mlir.dialects import arith, func
from mlir.passmanager import PassManager

from hyperparallel.dialects import hypermpmd
from hyperparallel.dialects.hypermpmd import FragmentKind, fragment, recv, send, topology, transfer
from hyperparallel.pipeline import MLIRError


@pytest.fixture(autouse=True)
def context() -> Iterator[ir.Context]:
    with ir.Context() as made, ir.Location.unknown():
        yield made


def module_of(**groups: dict[str, int]) -> ir.Module:
    module = ir.Module.create()
    module.operation.attributes[hypermpmd.TOPOLOGY] = topology(groups)
    return module


def tensor() -> ir.Type:
    return ir.RankedTensorType.get([4], ir.F32Type.get())


def test_fragments_and_a_transfer_become_programs() -> None:
    """Two groups, with a skip connection of two results."""
    module = module_of(a={"dp": 1}, b={"dp": 2})
    with ir.InsertionPoint(module.body):

        @func.FuncOp.from_py_func(tensor())
        def main(x: ir.Value) -> ir.Value:  # pyright: ignore[reportUnusedFunction]
            @fragment("a", [x], stage=0, microbatch=1)
            def both(x: ir.Value) -> list[ir.Value]:
                return [arith.addf(x, x), arith.mulf(x, x)]

            moved = [transfer(value, "a", "b") for value in both]

            @fragment("b", moved, kind="backward", stage=1)
            def last(x: ir.Value, y: ir.Value) -> ir.Value:
                return arith.subf(x, y)

            return last[0]

    assert module.operation.verify()
    text = str(module)
    assert 'hypermpmd.fragment on "a" stage 0 microbatch 1 forward(%arg0)' in text.replace("  forward", " forward")
    assert text.count("hypermpmd.yield") == 2
    assert 'hypermpmd.transfer %0#1 from "a" to "b"' in text
    assert ir.Module.parse(text).operation.verify()
    steps = "builtin.module(hypermpmd-infer-transfers,hypermpmd-split-programs,hypermpmd-verify-programs)"
    PassManager.parse(steps).run(module.operation)
    assert str(module).count("hypermpmd.send") == str(module).count("hypermpmd.recv") == 2


def test_messages() -> None:
    module = module_of(a={"dp": 1}, b={"dp": 2})
    module.operation.attributes[hypermpmd.GROUP] = ir.StringAttr.get("a")
    with ir.InsertionPoint(module.body):

        @func.FuncOp.from_py_func(tensor())
        def main(x: ir.Value) -> ir.Value:  # pyright: ignore[reportUnusedFunction]
            send(x, "b", 0)
            return recv(tensor(), "b", 1)

    assert module.operation.verify()
    assert 'hypermpmd.send %arg0 to "b" tag 0' in str(module)
    assert 'hypermpmd.recv from "b" tag 1 : tensor<4xf32>' in str(module)


def test_what_cannot_be() -> None:
    module = module_of(a={"dp": 1}, b={"dp": 2})
    with ir.InsertionPoint(module.body):
        made = func.FuncOp("main", ir.FunctionType.get([tensor()], []))
        block = made.add_entry_block()
    with ir.InsertionPoint(block):
        (x,) = block.arguments
        with pytest.raises(ValueError, match="stage to be at least 0 but got -1"):
            fragment("a", [x], stage=-1)
        with pytest.raises(ValueError, match="sideways"):
            fragment("a", [x], kind="sideways")
        with pytest.raises(ValueError, match="give values but got 3"):
            fragment("a", [x])(lambda _: [3])  # pyright: ignore[reportArgumentType]
        with pytest.raises(ValueError, match="another group but got one from a to a"):
            transfer(x, "a", "a")
        assert not list(block.operations), "nothing is left of what was refused"
        fragment("c", [x], kind=FragmentKind.UPDATE)(lambda x: x)
        func.ReturnOp([])
    with pytest.raises(MLIRError, match='but got "c"'):
        module.operation.verify()


def test_the_example_of_the_documentation() -> None:
    assert doctest.testmod(hypermpmd).failed == 0
