# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs on buffers: what is put on streams is in order, and every wait that was written is needed.

The checker knows nothing of how waits are chosen. So a program that it accepts, and that it refuses as soon as any one
wait is taken out, has all that it needs and nothing more; and a planted missing wait is found, whichever it is.
"""

from __future__ import annotations

import random
import re

import pytest
from mlir import ir
from mlir.passmanager import PassManager

from hyperparallel.pipeline import MLIRError, make_context

_HEAD = """
func.func private @all_reduce(memref<64xf32> {stream.access = "read"}, memref<64xf32> {stream.access = "write"})
  attributes {stream.of = #stream.id<comm>}
func.func private @gather(memref<64xf32> {stream.access = "read"}, memref<64xf32> {stream.access = "write"})
  attributes {stream.of = #stream.id<comm, 1>}
func.func private @send(memref<64xf32> {stream.access = "read"}) attributes {stream.of = #stream.id<send>}
func.func private @recv(memref<64xf32> {stream.access = "write"}) attributes {stream.of = #stream.id<recv>}
func.func private @work(memref<64xf32> {stream.access = "read"}, memref<64xf32> {stream.access = "write"})
"""
_WAIT = re.compile(r"^ *stream\.wait .*\n", re.M)


def program(seed: int, length: int = 24) -> str:
    """A function of calls on arguments and on buffers that are made and freed, one block or with a loop in it."""
    draw = random.Random(seed)
    live = ["%a", "%b"]
    lines: list[str] = []
    made = 0
    for _ in range(length):
        what = draw.choice(["all_reduce", "gather", "send", "recv", "work", "work", "alloc", "free"])
        if what == "alloc":
            name = f"%m{made}"
            made += 1
            lines.append(f"{name} = memref.alloc() : memref<64xf32>")
            live.append(name)
        elif what == "free":
            own = [name for name in live if name.startswith("%m")]
            if own:
                name = draw.choice(own)
                live.remove(name)
                lines.append(f"memref.dealloc {name} : memref<64xf32>")
        elif what in ("send", "recv"):
            lines.append(f"func.call @{what}({draw.choice(live)}) : (memref<64xf32>) -> ()")
        else:
            source, target = draw.sample(live, 2)
            lines.append(f"func.call @{what}({source}, {target}) : (memref<64xf32>, memref<64xf32>) -> ()")
    lines += [f"memref.dealloc {name} : memref<64xf32>" for name in live if name.startswith("%m")]
    body = "\n    ".join(lines)
    if seed % 3 == 0:
        body = f"scf.for %i = %c0 to %n step %c1 {{\n    {body}\n    }}"
    return f"""{_HEAD}
func.func @main(%a: memref<64xf32>, %b: memref<64xf32>, %n: index) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    {body}
    return
}}
"""


def run(text: str, steps: str) -> str:
    """The program after some passes.

    Raises:
        MLIRError: One of them refuses it.
    """
    context = make_context()
    with context:
        module = ir.Module.parse(text, context)
        PassManager.parse(f"builtin.module({steps})", context).run(module.operation)
        return str(module)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_assigned_is_in_order_and_every_wait_is_needed(seed: int) -> None:
    assigned = run(program(seed), "stream-assign-streams,stream-verify-streams")
    # Where bytes are used again, too.
    run(assigned, "offload-assign-memory,offload-verify-memory,stream-verify-streams")
    for wait in _WAIT.finditer(assigned):
        with pytest.raises(MLIRError):
            run(assigned[: wait.start()] + assigned[wait.end() :], "stream-verify-streams")


def test_the_programs_are_of_all_kinds() -> None:
    waits = [len(_WAIT.findall(run(program(seed), "stream-assign-streams"))) for seed in range(40)]
    assert sum(waits) > 200
    assert max(waits) >= 8
