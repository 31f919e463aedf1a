# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Offsets of drawn buffers: what is assigned passes the check, and the check finds every overlap and nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

from mlir import ir
from mlir.passmanager import PassManager

from hyperparallel import dialects
from hyperparallel.pipeline import MLIRError

#: A buffer: the steps in which it is made and used last, and its units of 64 bytes.
Buffers = list[tuple[int, int, int]]
STEPS = 8


@st.composite
def buffers(draw: st.DrawFn) -> Buffers:
    """Some, each with a life of at least a step."""
    one = st.tuples(st.integers(0, STEPS - 1), st.integers(0, STEPS - 1), st.integers(1, 4))
    return [(min(a, b), max(a, b), size) for a, b, size in draw(st.lists(one, min_size=1, max_size=9))]


def run(text: str, steps: str) -> str:
    context = ir.Context()
    dialects.register(context)
    with context:
        module = ir.Module.parse(text)
        PassManager.parse(f"builtin.module({steps})").run(module.operation)
        return str(module)


def program(drawn: Buffers, offsets: list[int] | None) -> str:
    """A use at the end of each step of what lives in it; every second step is a branch. Views, if there are offsets."""
    lines: list[str] = []
    for step in range(STEPS):
        for number, (begin, _, size) in enumerate(drawn):
            kind = f"memref<{64 * size}xi8>"
            if begin != step:
                continue
            if offsets is None:
                lines.append(f"%b{number} = memref.alloc() : {kind}")
            else:
                lines.append(f"%o{number} = arith.constant {64 * offsets[number]} : index")
                lines.append(f"%b{number} = memref.view %arena[%o{number}][] : memref<4096xi8> to {kind}")
        uses = [
            f"memref.store %byte, %b{number}[%zero] : memref<{64 * size}xi8>"
            for number, (begin, end, size) in enumerate(drawn)
            if begin <= step <= end
        ]
        lines += ["scf.if %flag {", *uses, "}"] if step % 2 else uses
        if offsets is None:
            lines += [
                f"memref.dealloc %b{number} : memref<{64 * size}xi8>"
                for number, (_, end, size) in enumerate(drawn)
                if end == step
            ]
    given_arena = "" if offsets is None else ", %arena: memref<4096xi8> {hp.arena}"
    return (
        f"func.func private @main(%flag: i1, %byte: i8{given_arena}) {{ %zero = arith.constant 0 : index\n"
        + "\n".join(lines)
        + "\nreturn }"
    )


@given(buffers())
@settings(max_examples=40, deadline=None)
def test_what_is_assigned_passes_and_is_no_higher_than_need_be(drawn: Buffers) -> None:
    text = run(program(drawn, None), "offload-assign-memory,offload-verify-memory")
    height = re.search(r"memref<(\d+)xi8> {hp.arena}", text)
    assert height is not None
    live = [sum(size for begin, end, size in drawn if begin <= step <= end) for step in range(STEPS)]
    # One that is made in the same step as another is freed is there together with it, or not.
    assert max(live) <= int(height[1]) // 64 <= sum(size for _, _, size in drawn)


@given(buffers(), st.data())
@settings(max_examples=80, deadline=None)
def test_the_check_finds_every_overlap_and_nothing_else(drawn: Buffers, data: st.DataObject) -> None:
    offsets = [data.draw(st.integers(0, 10)) for _ in drawn]
    overlap = any(
        offsets[a] < offsets[b] + drawn[b][2]
        and offsets[b] < offsets[a] + drawn[a][2]
        and drawn[a][0] <= drawn[b][1]
        and drawn[b][0] <= drawn[a][1]
        for a in range(len(drawn))
        for b in range(a)
    )
    if not overlap:
        run(program(drawn, offsets), "offload-verify-memory")
        return
    with pytest.raises(MLIRError) as info:
        run(program(drawn, offsets), "offload-verify-memory")
    assert "to share no byte" in str(info.value)
