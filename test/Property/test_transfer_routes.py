# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Routes between any two layouts, meshes and sizes: every device gets each element of its part once, from a device that
has it, and devices that hold the same share the work.
"""

from __future__ import annotations

import itertools
import math
import random
import re
import subprocess
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hyperparallel import hp_opt
from hyperparallel.local_parts import split_array
from hyperparallel.plan import AxisRef, DimLayout, Mesh, TensorLayout

MESHES = [("x=1", "y=3"), ("x=2", "y=2"), ("x=2,z=2", "y=3"), ("x=3,z=2", "y=2,w=2"), ("x=4", "y=2,w=3")]
SHAPES = [(), (5,), (7, 3), (8, 1), (4, 6, 2)]
Block = tuple[int, int, tuple[int, ...], tuple[int, ...]]


def layouts(mesh: Mesh, rank: int) -> list[TensorLayout]:
    """Every way to give each axis to a dimension, or to none."""
    found: list[TensorLayout] = []
    for places in itertools.product(range(rank + 1), repeat=len(mesh.names)):
        dims = tuple(
            DimLayout(tuple(AxisRef(name) for name, place in zip(mesh.names, places, strict=True) if place == dim))
            for dim in range(rank)
        )
        found.append(TensorLayout(dims))
    return found


def program(cases: list[tuple[tuple[int, ...], TensorLayout, TensorLayout]], meshes: tuple[Mesh, Mesh]) -> str:
    """A send and a receive for each case."""
    names = [", ".join(f'"{axis}"={size}' for axis, size in mesh.axes) for mesh in meshes]
    types = ["tensor<" + "".join(f"{size}x" for size in shape) + "f32>" for shape, _, _ in cases]

    def sharding(layout: TensorLayout) -> str:
        return f"hypershard.sharding = #hypershard.sharding<@mesh, {layout}>"

    arguments = ", ".join(
        f"%a{tag}: {type_} {{{sharding(source)}}}"
        for tag, ((_, source, _), type_) in enumerate(zip(cases, types, strict=True))
    )
    sends = "\n".join(f'hypermpmd.send %a{tag} to "b" tag {tag} : {type_}' for tag, type_ in enumerate(types))
    receives = "\n".join(
        f'%r{tag} = hypermpmd.recv from "a" tag {tag} {{{sharding(target)}}} : {type_}'
        for tag, ((_, _, target), type_) in enumerate(zip(cases, types, strict=True))
    )
    return f"""
module attributes {{hypermpmd.topology = #hypermpmd.topology<"a" = <[{names[0]}]>, "b" = <[{names[1]}]>>}} {{
  module @a attributes {{hypermpmd.group = "a"}} {{
    hypershard.mesh @mesh = <[{names[0]}]>
    func.func @main({arguments}) {{
      {sends}
      return
    }}
  }}
  module @b attributes {{hypermpmd.group = "b"}} {{
    hypershard.mesh @mesh = <[{names[1]}]>
    func.func @main() {{
      {receives}
      return
    }}
  }}
}}
"""


def read_routes(text: str, op: str, rank_of: list[int]) -> dict[int, list[Block]]:
    """The blocks of each tag, as one side sees them."""
    routes: dict[int, list[Block]] = {}
    for tag, words in re.findall(rf"hypermpmd\.{op} .*?tag (\d+) route \[([^\]]*)\]", text):
        numbers = [int(word) for word in words.split(",") if word.strip()]
        rank = rank_of[int(tag)]
        step = 2 + 2 * rank
        routes[int(tag)] = [
            (one[0], one[1], tuple(one[2 : 2 + rank]), tuple(one[2 + rank :]))
            for one in (numbers[at : at + step] for at in range(0, len(numbers), step))
        ]
    return routes


def place(block: Block) -> Any:
    return (*(slice(begin, begin + size) for begin, size in zip(block[2], block[3], strict=True)), ...)


@pytest.mark.parametrize("spelled", MESHES, ids=["-".join(pair) for pair in MESHES])
def test_every_element_arrives_once(spelled: tuple[str, str]) -> None:
    meshes = (Mesh.parse(spelled[0]), Mesh.parse(spelled[1]))
    cases = [
        (shape, source, target)
        for shape in SHAPES
        for source, target in itertools.product(layouts(meshes[0], len(shape)), layouts(meshes[1], len(shape)))
    ]
    random.Random(1).shuffle(cases)
    cases = cases[:120]
    command = [str(hp_opt.path()), "--hypermpmd-resolve-transfers"]
    ran = subprocess.run(command, input=program(cases, meshes), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    ranks = [len(shape) for shape, _, _ in cases]
    sends, receives = read_routes(ran.stdout, "send", ranks), read_routes(ran.stdout, "recv", ranks)
    for tag, (shape, source, target) in enumerate(cases):
        whole: NDArray[np.float32] = np.arange(1, math.prod(shape) + 1, dtype=np.float32).reshape(shape)
        held, wanted = split_array(whole, source, meshes[0]), split_array(whole, target, meshes[1])
        got = [np.zeros_like(part) for part in wanted]
        messages: dict[tuple[int, int], list[NDArray[np.float32]]] = {}
        for block in sends[tag]:
            messages.setdefault((block[0], block[1]), []).append(held[block[0]][place(block)])
        for block in receives[tag]:
            got[block[0]][place(block)] += messages[block[1], block[0]].pop(0)
        assert not any(messages.values()), "everything that is sent is received"
        for mine, right in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(mine, right)
