# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python builders of HyperShard, on the stock mlir package."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlir import ir
from mlir.dialects import arith, func
from mlir.passmanager import PassManager

from hyperparallel import _hyperparallel
from hyperparallel.dialects import hypershard, register


@pytest.fixture(autouse=True)
def context() -> Iterator[ir.Context]:
    with ir.Context() as made, ir.Location.unknown():
        yield made


# What every attribute class of an extension has, and the stub of its base does not repeat.
INHERITED = {"isinstance", "get_static_typeid", "type_name"}


def text_of(attribute: ir.Attribute) -> str:
    assert ir.Attribute.parse(str(attribute)) == attribute
    return str(attribute)


class TestAttributes:
    def test_mesh(self) -> None:
        mesh = hypershard.mesh_attr({"dp": 2, "tp": 3})
        assert text_of(mesh) == '#hypershard.mesh<["dp"=2, "tp"=3]>'
        assert mesh.axes == [("dp", 2), ("tp", 3)]
        assert (mesh.num_devices, mesh.device_ids) == (6, [])

    def test_mesh_with_device_order(self) -> None:
        mesh = hypershard.mesh_attr({"x": 4}, device_ids=[0, 1, 3, 2])
        assert mesh.device_ids == [0, 1, 3, 2]

    def test_sharding_of_every_part(self) -> None:
        sharding = hypershard.sharding(
            "m",
            [hypershard.dim(["dp"], priority=2), [hypershard.axis("tp", pre_size=2, size=2), ...], [...], []],
            replicated=["pp"],
            partial=("max", ["cp"]),
        )
        assert text_of(sharding) == (
            '#hypershard.sharding<@m, [{"dp"}p2, {"tp":(2)2, ?}, {?}, {}], replicated={"pp"}, partial=<max {"cp"}>>'
        )
        assert sharding.mesh == "m"
        assert [part.is_open for part in sharding.dims] == [False, True, True, False]
        assert [part.priority for part in sharding.dims] == [2, 0, 0, 0]
        part = sharding.dims[1].axes[0]
        assert (part.name, part.pre_size, part.size) == ("tp", 2, 2)
        assert (sharding.partial_kind, [axis.name for axis in sharding.partial_axes]) == ("max", ["cp"])
        assert [axis.name for axis in sharding.replicated] == ["pp"]

    def test_parts_are_of_our_classes(self) -> None:
        sharding = hypershard.sharding("m", [["dp"]])
        assert isinstance(sharding.dims[0], hypershard.DimShardingAttr)
        assert isinstance(sharding.dims[0].axes[0], hypershard.AxisRefAttr)

    def test_parse(self) -> None:
        assert hypershard.parse_sharding('#hypershard.sharding<@m, [{"dp"}, {}]>') == hypershard.sharding(
            "m", [["dp"], []]
        )
        with pytest.raises(ValueError, match="hypershard"):
            hypershard.parse_sharding('#hypershard.mesh<["dp"=2]>')

    @pytest.mark.parametrize("kind", list(hypershard.Reduction))
    def test_reductions_are_those_of_the_dialect(self, kind: hypershard.Reduction) -> None:
        assert hypershard.sharding("m", [[]], partial=(kind, ["x"])).partial_kind == kind

    def test_no_reduction_is_missing(self) -> None:
        with pytest.raises(ValueError, match="expected one of") as caught:
            hypershard.sharding("m", [[]], partial=("mean", ["x"]))
        listed = str(caught.value).split("expected one of ")[1].split(" but got")[0]
        assert listed.split(", ") == list(hypershard.Reduction)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: hypershard.mesh_attr({"dp": 0}), 'expected mesh axis "dp" to have at least 1 device but got 0'),
            (lambda: hypershard.mesh_attr({"dp": 2}, device_ids=[0, 0]), "expected device_ids to hold each of 0..1"),
            (lambda: hypershard.dim([..., "dp"]), "expected ... to come last in a dimension"),
            (lambda: hypershard.dim(["dp"], priority=-1), "expected a priority of at least 0 but got -1"),
            (lambda: hypershard.sharding("m", [["dp"], ["dp"]]), 'expected each axis once but got "dp" twice'),
            (lambda: hypershard.axis("tp", pre_size=1, size=1), 'sub-axis of "tp" to be at least 2 but got 1'),
        ],
    )
    def test_what_cannot_be_is_a_value_error(self, make: object, message: str) -> None:
        assert callable(make)
        with pytest.raises(ValueError, match=message):
            make()


def a_module() -> tuple[ir.Module, func.FuncOp]:
    """A mesh of 2 x 3 and a function that takes and returns a tensor of 12 x 18."""
    module = ir.Module.create()
    kind = ir.RankedTensorType.get([12, 18], ir.F32Type.get())
    with ir.InsertionPoint(module.body):
        hypershard.mesh("m", {"dp": 2, "tp": 3})
        function = func.FuncOp("main", ([kind], [kind]))
        function.add_entry_block()
    return module, function


class TestOps:
    def test_mix_with_upstream_builders(self) -> None:
        module, function = a_module()
        block = function.entry_block
        with ir.InsertionPoint(block):
            asked = hypershard.constraint(block.arguments[0], hypershard.sharding("m", [["dp"], ["tp"]]))
            kept = hypershard.barrier(arith.addf(asked, asked), "forward")
            func.return_([hypershard.reshard(kept, hypershard.sharding("m", [[], ["tp"]]))])
        assert module.operation.verify()
        assert ir.Module.parse(str(module)).operation.verify()
        assert "hypershard.barrier %1 allow" in str(module)

    def test_collectives_know_their_local_types(self) -> None:
        module, function = a_module()
        block = function.entry_block
        with ir.InsertionPoint(block):
            value = block.arguments[0]
            shapes = [
                ir.RankedTensorType(made.type).shape
                for made in (
                    hypershard.all_gather(value, "m", ["tp"], dim=1),
                    hypershard.all_reduce(value, "m", ["dp"], "max"),
                    hypershard.reduce_scatter(value, "m", ["dp", "tp"], dim=0),
                    hypershard.all_to_all(value, "m", ["tp"], split=0, concat=1),
                    hypershard.permute(value, "m", ["dp", "tp"], to=["tp", "dp"]),
                    hypershard.slice_local(value, "m", ["dp", "tp"], dim=0),
                )
            ]
            hypershard.axis_index("m", ["dp", "tp"])
            func.return_([value])
        assert module.operation.verify()
        assert shapes == [[12, 54], [12, 18], [2, 18], [4, 54], [12, 18], [2, 18]]

    def test_unknown_mesh_and_axis(self) -> None:
        _, function = a_module()
        value = function.entry_block.arguments[0]
        with ir.InsertionPoint(function.entry_block):
            with pytest.raises(ValueError, match="expected a mesh of the module but got @q"):
                hypershard.all_gather(value, "q", ["tp"], dim=1)
            with pytest.raises(ValueError, match='expected an axis of @m but got "pp"'):
                hypershard.all_gather(value, "m", ["pp"], dim=1)
            with pytest.raises(ValueError, match=r"expected a dimension in \[0, 2\) but got 2"):
                hypershard.all_gather(value, "m", ["tp"], dim=2)

    def test_shardings_hang_on_arguments_results_and_ops(self) -> None:
        module, function = a_module()
        block = function.entry_block
        split = hypershard.sharding("m", [["dp"], []])
        function.arg_attrs = [ir.DictAttr.get({"hp.name": ir.StringAttr.get("x")})]
        hypershard.shard_argument(function, 0, split)
        hypershard.shard_result(function, 0, hypershard.sharding("m", [[], ["tp"]]))
        with ir.InsertionPoint(block):
            doubled = arith.addf(block.arguments[0], block.arguments[0])
            hypershard.shard(doubled, split)
            func.return_([doubled])
        assert module.operation.verify()
        assert str(module).count('hypershard.sharding = #hypershard.sharding<@m, [{"dp"}, {}]>') == 2
        assert 'hp.name = "x"' in str(module)
        with pytest.raises(ValueError, match=r"expected an index in \[0, 1\) but got 1"):
            hypershard.shard_argument(function, 1, split)

    def test_the_verifier_refuses_a_wrong_sharding(self) -> None:
        module, function = a_module()
        hypershard.shard_argument(function, 0, hypershard.sharding("m", [["dp"]]))
        with ir.InsertionPoint(function.entry_block):
            func.return_([function.entry_block.arguments[0]])
        with pytest.raises(ir.MLIRError, match="dimension"):
            module.operation.verify()


class TestRegistration:
    def test_an_older_context_gets_the_dialects(self) -> None:
        program = (
            "from mlir import ir\n"
            "context = ir.Context()\n"
            "from hyperparallel.dialects import hypershard, register\n"
            "try:\n"
            "    with context: hypershard.sharding('m', [[]])\n"
            "    raise SystemExit('an older context knew the dialect')\n"
            "except ValueError: pass\n"
            "register(context)\n"
            "with context: print(hypershard.sharding('m', [['x']]))\n"
        )
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert ran.stdout == '#hypershard.sharding<@m, [{"x"}]>\n', ran.stderr

    def test_registering_twice_does_no_harm(self, context: ir.Context) -> None:
        register(context)
        register(context)
        assert str(hypershard.sharding("m", [["x"]])) == '#hypershard.sharding<@m, [{"x"}]>'

    def test_passes_run_through_the_stock_pass_manager(self) -> None:
        module, function = a_module()
        with ir.InsertionPoint(function.entry_block):
            once = hypershard.reshard(function.entry_block.arguments[0], hypershard.sharding("m", [["dp"], []]))
            func.return_([hypershard.reshard(once, hypershard.sharding("m", [[], ["tp"]]))])
        PassManager.parse("builtin.module(canonicalize)").run(module.operation)
        assert str(module).count("hypershard.reshard") == 1


def test_the_stub_names_what_the_extension_has() -> None:
    """_hyperparallel.pyi, against the extension."""
    stub = inspect.getsourcefile(hypershard)
    assert stub is not None
    text = (Path(stub).parents[1] / "_hyperparallel.pyi").read_text()
    for name, value in vars(_hyperparallel).items():
        if name.startswith("_"):
            continue
        assert f"class {name}" in text or f"def {name}(" in text
        if isinstance(value, type):
            members = [member for member in vars(value) if not member.startswith("_") and member not in INHERITED]
            section = text.split(f"class {name}")[1].split("\nclass ")[0]
            assert [member for member in members if f"def {member}(" not in section] == []
