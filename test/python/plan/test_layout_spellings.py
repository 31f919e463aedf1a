# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every spelling of a layout reads as what it says, equal spellings agree, and malformed ones are refused with the
reason."""

from __future__ import annotations

from typing import Any

import pytest

from hyperparallel.errors import PlanError
from hyperparallel.plan import Layout, Mesh, Replicate, Shard
from hyperparallel.plan.spelling import read_layout, read_sharding_text

MESH = Mesh.parse("dp=2,tp=3")

SPELLINGS: list[tuple[Any, tuple[int, ...], str]] = [
    ("Shard(0)@dp", (4, 6), '[{"dp"}, {}]'),
    ("Shard(-1)@tp", (4, 6), '[{}, {"tp"}]'),
    ("Replicate()", (4, 6), "[{}, {}]"),
    ("[Shard(0)@dp, Replicate()@tp]", (4, 6), '[{"dp"}, {}]'),
    (["Shard(0)@dp", "Shard(1)@tp"], (4, 6), '[{"dp"}, {"tp"}]'),
    (["Shard(1)", "Shard(0)"], (4, 6), '[{"tp"}, {"dp"}]'),
    (["Shard(0)", "Shard(0)"], (4, 6), '[{"dp", "tp"}, {}]'),
    # Placements are a set of statements about axes: their order does not matter, that of the mesh does.
    (["Shard(0)@tp", "Shard(0)@dp"], (4, 6), '[{"dp", "tp"}, {}]'),
    ("Shard(0)@(dp,tp)", (4, 6), '[{"dp", "tp"}, {}]'),
    (Shard(1) @ "tp", (4, 6), '[{}, {"tp"}]'),
    ([Shard(0), Replicate()], (4, 6), '[{"dp"}, {}]'),
    ('Layout((2,3),("dp","tp"))("dp","None")', (4, 6), '[{"dp"}, {}]'),
    ('Layout((2,3),("dp","tp"))("None",("tp","dp"))', (4, 6), '[{}, {"tp", "dp"}]'),
    ("Layout(device_matrix=(2,3), alias_name=(dp, tp))(None, tp)", (4, 6), '[{}, {"tp"}]'),
    (Layout((2, 3), ("dp", "tp"))(("tp", "dp"), None), (4, 6), '[{"tp", "dp"}, {}]'),
    (["dp", None], (4, 6), '[{"dp"}, {}]'),
    ([["tp", "dp"], []], (4, 6), '[{"tp", "dp"}, {}]'),
    (["dp?", "?"], (4, 6), '[{"dp", ?}, {?}]'),
    ([{"axes": ["dp"], "open": True, "priority": 2}, None], (4, 6), '[{"dp", ?}p2, {}]'),
    ({0: "dp"}, (4, 6, 8), '[{"dp"}, {}, {}]'),
    ({-1: ["tp", "dp"], "open": True}, (4, 6, 8), '[{?}, {?}, {"tp", "dp"}]'),
    ({1: "tp?", "priority": 1, "replicated": ["dp"]}, (4, 6), '[{}, {"tp", ?}p1], replicated={"dp"}'),
    ('[{"dp"}, {"tp", ?}p1]', (4, 6), '[{"dp"}, {"tp", ?}p1]'),
    ('[{?}, {}], replicated={"dp", "tp"}', (4, 6), '[{?}, {}], replicated={"dp", "tp"}'),
    ("Replicate()", (), "[]"),
]


@pytest.mark.parametrize(("spelled", "shape", "expected"), SPELLINGS)
def test_reads_as_written(spelled: Any, shape: tuple[int, ...], expected: str) -> None:
    layout = read_layout(spelled, "here").resolve(MESH, shape, "here")
    assert str(layout) == expected
    assert read_sharding_text(expected, "here") == layout


def test_sub_axes_are_kept() -> None:
    mesh = Mesh.parse("tp=8")
    layout = read_layout('[{"tp":(2)4}, {"tp":(1)2}]', "here").resolve(mesh, (8, 8), "here")
    assert str(layout) == '[{"tp":(2)4}, {"tp":(1)2}]'
    assert layout.local_shape((9, 8), mesh) == (3, 4)


def test_torch_placements_are_taken_as_they_are() -> None:
    tensor = pytest.importorskip("torch.distributed.tensor")
    layout = read_layout([tensor.Shard(1), tensor.Replicate()], "here").resolve(MESH, (4, 6), "here")
    assert str(layout) == '[{}, {"dp"}]'
    with pytest.raises(PlanError, match="cannot be planned"):
        read_layout([tensor.Partial(), tensor.Replicate()], "here")


REFUSED: list[tuple[Any, str]] = [
    ("Shard(2)@dp", "Shard.2.@dp needs a tensor of rank 3 or more, but its rank is 2"),
    ("Shard(-3)@dp", "needs a tensor of rank 3 or more"),
    ("Shard(0)@pp", "unknown axis pp; the mesh dp=2,tp=3 has dp, tp"),
    (["pp", None], "unknown axis pp"),
    ("Shard(0)", "1 placement.s. but the mesh dp=2,tp=3 has 2 axes"),
    (["Shard(0)@dp", "Replicate()"], "names the axis of some placements and counts positions for others"),
    (["Shard(0)@dp", "Shard(1)@dp"], "axis dp is used twice"),
    (["dp", "dp"], "axis dp is used twice"),
    (["dp", None, None], "3 entries but the tensor has 2 dimensions"),
    ({0: "dp", -2: "tp"}, "says twice how dimension 0 is split"),
    ({2: "dp"}, "dimension 2 needs a tensor of rank 3"),
    (["dp", "Shard(0)"], "mixes placements"),
    ('Layout((2,2),("dp","tp"))("dp","None")', "is for the mesh dp=2,tp=2 but the plan's mesh is dp=2,tp=3"),
    ('Layout((2,3),("dp",))("dp")', "expected one alias for each of the 2 mesh axes but got 1"),
    ('Layout((2,3),("dp","None"))("dp")', "reserved"),
    ('Layout((2,3),("dp","interleaved_parallel"))("dp")', "interleaved_parallel.* is not supported"),
    ('Layout((2,3),("dp","tp"),(0,1))("dp","None")', "expected 6 ranks"),
    ("Partial()@dp", "a plan cannot ask for Partial"),
    ("Shard(x)", "expected a whole number"),
    ("Shard(0)@dp@tp", "the axis is named twice"),
    ("__import__('os')", "expected Shard.dim. or Replicate"),
    ("dp", "expected a layout, such as"),
    ("", "expected a layout, such as"),
    ("Shard(", "expected a layout, such as"),
    (3, "expected a layout, such as"),
    ({"colour": "dp"}, "unknown key 'colour' of a layout"),
    ({0: "dp", "open": 1}, "expected true or false"),
    ([{"axes": "dp", "order": 1}, None], "unknown key order of a dimension"),
    ([{"open": True, "priority": -1}, None], "expected a priority of 0 or more"),
    ([{"priority": 1}, None], "a closed dimension without axes has no priority"),
    ([["?", "dp"], None], "the mark \\? of an open dimension comes last"),
    ([[1], None], "expected the name of an axis but got 1"),
    ('[{"dp"}, {tp}]', "expected a layout such as"),
    ('[{"dp"}, {}] x', "expected a layout such as"),
    ('[{"tp":(1)4}, {}]', "does not divide axis tp"),
    ('[{"tp":(1)1}, {}]', "size of at least 2"),
    ('[{?}, {}], replicated={"tp", "dp"}', "mesh order"),
]


@pytest.mark.parametrize(("spelled", "message"), REFUSED)
def test_refuses(spelled: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message) as caught:
        read_layout(spelled, "plan.yaml:7").resolve(MESH, (4, 6), "plan.yaml:7")
    assert "\n" not in str(caught.value)


def test_mesh_text() -> None:
    assert Mesh.parse("dp=2, tp=4").axes == (("dp", 2), ("tp", 4))
    for text, message in (
        ("", "expected axes with sizes"),
        ("dp", "expected axes with sizes"),
        ("dp=x", "expected axes with sizes"),
        ("dp=0", "size of at least 1 for axis dp"),
        ("dp=2,dp=2", "axis dp is named twice"),
        ("2=2", "expected the name of an axis"),
    ):
        with pytest.raises(PlanError, match=message):
            Mesh.parse(text)
    with pytest.raises(PlanError, match=r"2 x 3 = 6 devices but 4"):
        MESH.check_devices(4)
    with pytest.raises(PlanError, match="device ids"):
        Mesh((("dp", 2),), (0, 2))
