# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plan files meet programs: the last matching rule holds, and what does not fit is refused with file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hyperparallel.compile import read_plan
from hyperparallel.errors import PlanError
from hyperparallel.plan import Plan, Program, ProgramTensor, ResolvedPlan, TensorKind, explain, explain_json


def _tensor(kind: TensorKind, name: str, *shape: int, dtype: str = "f32") -> ProgramTensor:
    return ProgramTensor(kind, name, shape, dtype)


def _gpt2(layers: int = 3) -> Program:
    """GPT-2's names and shapes: [in, out] weights, a fused qkv."""
    tensors = [
        _tensor(TensorKind.INPUT, "input_ids", 4, 64, dtype="i64"),
        _tensor(TensorKind.PARAMETER, "transformer.wte.weight", 50257, 768),
    ]
    for layer in range(layers):
        for name, shape in (
            ("attn.c_attn.weight", (768, 2304)),
            ("attn.c_attn.bias", (2304,)),
            ("attn.c_proj.weight", (768, 768)),
            ("attn.c_proj.bias", (768,)),
            ("mlp.c_fc.weight", (768, 3072)),
            ("mlp.c_fc.bias", (3072,)),
            ("mlp.c_proj.weight", (3072, 768)),
        ):
            tensors.append(_tensor(TensorKind.PARAMETER, f"transformer.h.{layer}.{name}", *shape))
    tensors.append(_tensor(TensorKind.OUTPUT, "logits", 4, 64, 50257))
    tensors += [_tensor(TensorKind.BLOCK, f"transformer.h.{layer}", 4, 64, 768) for layer in range(layers)]
    return Program("gpt2", tuple(tensors))


def _layouts(plan: ResolvedPlan) -> dict[str, tuple[str, str]]:
    return {planned.tensor.name: (str(planned.store), str(planned.use)) for planned in plan.tensors}


def test_the_last_matching_rule_holds() -> None:
    plan = Plan.parse(
        """
mesh: {dp: 2, tp: 2}
shard:
  "parameter:**": {store: {0: dp}, use: Replicate()}
  "**.c_fc.weight": Shard(1)@tp
  "transformer.h.1.mlp.c_fc.weight": [tp, null]
  "transformer.h.*": [dp, null, null]
  "output:*": {0: dp}
""",
        "x.yaml",
    ).resolve(_gpt2())
    layouts = _layouts(plan)
    assert layouts["transformer.wte.weight"] == ('[{"dp"}, {}]', "[{}, {}]")
    assert layouts["transformer.h.0.mlp.c_fc.weight"] == ('[{}, {"tp"}]', '[{}, {"tp"}]')
    assert layouts["transformer.h.1.mlp.c_fc.weight"] == ('[{"tp"}, {}]', '[{"tp"}, {}]')
    assert layouts["transformer.h.2"] == ('[{"dp"}, {}, {}]', '[{"dp"}, {}, {}]')
    assert layouts["logits"][0] == '[{"dp"}, {}, {}]'
    assert "input_ids" not in layouts
    assert [tensor.name for tensor in plan.unmatched] == ["input_ids"]
    everything, named, one, _blocks, _outputs = plan.rules
    assert len(everything.matched) == 22
    assert len(everything.overridden) == 3
    assert [tensor.name for tensor in named.overridden] == ["transformer.h.1.mlp.c_fc.weight"]
    assert not one.overridden
    assert one.rule.origin == "x.yaml:6"


def test_what_the_pass_reads() -> None:
    plan = Plan(
        mesh={"dp": 2, "tp": 2},
        shard={
            "**.wte.weight": {"store": {0: ["dp", "tp"]}, "use": {0: "tp"}},
            "transformer.h.0": {0: "dp"},
            "output:logits": {0: "dp"},
        },
    ).resolve(_gpt2())
    assert plan.to_json() == {
        "mesh": {"name": "mesh", "axes": [["dp", 2], ["tp", 2]]},
        "arguments": {"transformer.wte.weight": {"store": '[{"dp", "tp"}, {}]', "use": '[{"tp"}, {}]'}},
        "results": {"logits": '[{"dp"}, {}, {}]'},
        "blocks": {"transformer.h.0": {"0": '[{"dp"}, {}, {}]'}},
    }


def test_globs_stay_within_a_component() -> None:
    def names(pattern: str) -> list[str]:
        plan = Plan(mesh="dp=2", shard={pattern: "Replicate()"}).resolve(_gpt2(1))
        return [planned.tensor.name for planned in plan.tensors]

    assert names("*") == ["input_ids", "logits"]
    assert names("transformer.h.*") == ["transformer.h.0"]
    assert names("transformer.h.[0-9]") == ["transformer.h.0"]
    assert names("**.c_proj.weight") == ["transformer.h.0.attn.c_proj.weight", "transformer.h.0.mlp.c_proj.weight"]
    assert names("transformer.**.c_f?.weight") == ["transformer.h.0.mlp.c_fc.weight"]
    assert names("**.transformer.wte.weight") == ["transformer.wte.weight"]
    assert len(names("transformer.h.0.**")) == 8
    assert len(names("**")) == 11
    assert names("input:**") == ["input_ids"]


def test_the_mesh_of_a_layout_will_do() -> None:
    shard = {"**.wte.weight": 'Layout((2,2),("dp","tp"),[3,2,1,0])("dp","None")'}
    plan = Plan(shard=shard).resolve(_gpt2())
    assert str(plan.mesh) == "dp=2,tp=2"
    assert plan.to_json()["mesh"]["device_ids"] == [3, 2, 1, 0]
    other = {**shard, "output:logits": 'Layout((4,),("dp",))("dp","None","None")'}
    with pytest.raises(PlanError, match=r"its Layout is for the mesh dp=4 but that of .* is for dp=2,tp=2"):
        Plan(shard=other).resolve(_gpt2())


REFUSED = [
    ("", "x.yaml: expected a plan: mesh, groups, preset, shard, offload, but the file is empty"),
    ("# nothing\n", "the file is empty"),
    ("mesh: {dp: 2}\n", "x.yaml: the plan says nothing"),
    ("- 1\n", "x.yaml:1: expected a plan: mesh, groups, preset, shard, offload, but got a list"),
    ("preset\n", "x.yaml:1: expected a plan: mesh, groups, preset, shard, offload, but got 'preset'"),
    ("mesh: {dp: 2}\nshard: [1\n", "x.yaml:3: malformed YAML"),
    ("mesh: {dp: 2}\n\tshard: 1\n", "x.yaml:2: malformed YAML"),
    ("\x00", "malformed YAML"),
    ("shards: {}\n", "x.yaml:1: unknown key 'shards' of a plan; expected mesh, device_ids, groups, stages, schedule"),
    ("mesh: 7\npreset: fsdp\n", "x.yaml:1: mesh: expected axes with sizes"),
    ("mesh: {dp: two}\npreset: fsdp\n", "x.yaml:1: mesh: expected a size of at least 1 for axis dp"),
    ("device_ids: [1, 0]\npreset: fsdp\n", "x.yaml:1: device_ids needs a mesh beside it"),
    ("mesh: {dp: 2}\ndevice_ids: 3\npreset: fsdp\n", "x.yaml:2: expected a list of device numbers"),
    ("preset: big\n", "x.yaml:1: unknown preset 'big'; there are megatron, fsdp, data_parallel"),
    ("preset: {name: fsdp, axes: dp}\n", "x.yaml:1: unknown option 'axes' of a preset"),
    ("preset: {name: fsdp, tensor: dp}\n", "belong to the preset megatron"),
    ("mesh: {dp: 2}\npreset: {name: fsdp, data: [q]}\n", "preset fsdp: unknown axis q; the mesh dp=2 has dp"),
    ("mesh: {dp: 2}\npreset: megatron\n", "has no axis for tensor parallelism; name one"),
    ("mesh: {x: 2}\npreset: {name: megatron, data: x, tensor: x}\n", "cannot be a data axis and a tensor axis at once"),
    ("shard:\n  a: Shard(0)@dp\n  a: Shard(0)@tp\n", "x.yaml:3: 'a' is written twice .first on line 2."),
    ("shard:\n  '': Shard(0)@dp\n", "x.yaml:2: expected a pattern"),
    ("shard: {logits: Shard(0)@dp}\n", "the plan names no mesh; give one, such as --mesh dp=2,tp=2"),
    (
        "mesh: {dp: 2}\nshard:\n  '*.c_fc.weight': {0: dp}\n",
        r"x.yaml:3: rule '\*.c_fc.weight' matches nothing in gpt2; .*'\*\*.c_fc.weight' would match "
        "transformer.h.0.mlp.c_fc.weight",
    ),
    (
        "mesh: {dp: 2}\nshard:\n  transformer.wte.wieght: {0: dp}\n",
        "matches nothing in gpt2; the nearest name is transformer.wte.weight",
    ),
    ("mesh: {dp: 2}\nshard:\n  input_ids: {use: {0: dp}}\n", "a use layout needs a store layout"),
    ("mesh: {dp: 2}\nshard:\n  input_ids: {store: {0: dp}, 0: dp}\n", "'0' stands beside store or use"),
    (
        "mesh: {dp: 2}\nshard:\n  logits: {store: {0: dp}, use: Replicate()}\n",
        "store and use are for arguments of the program; this is an output",
    ),
    (
        "mesh: {dp: 2}\nshard:\n  '**.bias': Shard(1)@dp\n",
        "x.yaml:3: rule '..bias' for transformer.h.0.attn.c_attn.bias: Shard.1.@dp needs a tensor of rank 2",
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refuses(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message.replace("..bias", r"\*\*.bias")) as caught:
        Plan.parse(text, "x.yaml").resolve(_gpt2())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("plan", ["dp", None])
def test_refuses_what_is_neither_a_file_nor_a_preset(plan: Any) -> None:
    with pytest.raises(PlanError, match=rf"one of the presets megatron, fsdp, .*, but got {plan}"):
        read_plan(plan)


def test_refuses_files_that_are_no_plans(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="there is no such plan file"):
        Plan.load(tmp_path / "absent.yaml")
    with pytest.raises(PlanError, match="this is a directory"):
        Plan.load(tmp_path)
    binary = tmp_path / "x.yaml"
    binary.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(PlanError, match="this is not text"):
        Plan.load(binary)


def test_devices() -> None:
    with pytest.raises(PlanError, match=r"mesh dp=2,tp=2 is 2 x 2 = 4 devices but 8 were asked for"):
        Plan(mesh="dp=2,tp=2", preset="fsdp").resolve(_gpt2(), devices=8)
    assert Plan(mesh="dp=2", preset="fsdp").resolve(_gpt2(), "dp=4,tp=2", 8).mesh.num_devices == 8


def test_megatron_knows_gpt2() -> None:
    layouts = _layouts(Plan(mesh="dp=2,tp=3", preset="megatron").resolve(_gpt2()))
    assert {name.rpartition("h.0.")[2]: store for name, (store, _) in layouts.items() if "h.0." in name} == {
        "attn.c_attn.weight": '[{}, {"tp"}]',
        "attn.c_attn.bias": '[{"tp"}]',
        "attn.c_proj.weight": '[{"tp"}, {}]',
        "mlp.c_fc.weight": '[{}, {"tp"}]',
        "mlp.c_fc.bias": '[{"tp"}]',
        "mlp.c_proj.weight": '[{"tp"}, {}]',
    }
    assert layouts["input_ids"][0] == '[{"dp"}, {}]'
    assert layouts["transformer.wte.weight"][0] == '[{"tp"}, {}]'


def test_megatron_pairs_layers_by_shape() -> None:
    def parameter(name: str, *shape: int) -> ProgramTensor:
        return _tensor(TensorKind.PARAMETER, name, *shape)

    program = Program(
        "net",
        (
            parameter("conv.0.weight", 16, 3, 3, 3),
            parameter("conv.0.bias", 16),
            parameter("conv.2.weight", 8, 16, 3, 3),
            parameter("conv.2.bias", 8),
            parameter("head.weight", 10, 8),
            _tensor(TensorKind.INPUT, "x", 4, 3, 8, 8),
            _tensor(TensorKind.INPUT, "scale", 3),
        ),
    )
    layouts = _layouts(Plan(mesh="tp=4", preset="megatron").resolve(program))
    assert {name: store for name, (store, _) in layouts.items()} == {
        "conv.0.weight": '[{"tp"}, {}, {}, {}]',
        "conv.0.bias": '[{"tp"}]',
        "conv.2.weight": '[{}, {"tp"}, {}, {}]',
    }
    batched = _layouts(Plan(mesh="dp=2,tp=2", preset="megatron").resolve(program))
    assert batched["x"][0] == '[{"dp"}, {}, {}, {}]'
    assert "scale" not in batched


def test_megatron_with_fsdp_stores_over_the_data_axes() -> None:
    plan = Plan(mesh="dp=2,tp=2", preset={"name": "megatron", "fsdp": True}).resolve(_gpt2(1))
    layouts = _layouts(plan)
    assert layouts["transformer.h.0.mlp.c_fc.weight"] == ('[{"dp"}p1, {"tp"}]', '[{}, {"tp"}]')
    assert layouts["transformer.h.0.mlp.c_proj.weight"] == ('[{"tp", "dp"}p1, {}]', '[{"tp"}, {}]')
    assert layouts["transformer.h.0.attn.c_proj.bias"] == ('[{"dp"}p1]', "[{}]")
    # 50257 rows do not split evenly; 768 columns do.
    assert layouts["transformer.wte.weight"] == ('[{"tp"}, {"dp"}p1]', '[{"tp"}, {}]')


def test_fsdp_and_data_parallel_use_every_axis() -> None:
    layouts = _layouts(Plan(mesh="dp=2,tp=2", preset="fsdp").resolve(_gpt2(1)))
    assert layouts["input_ids"][0] == '[{"dp", "tp"}, {}]'
    assert layouts["transformer.h.0.mlp.c_fc.bias"] == ('[{"dp", "tp"}p1]', "[{}]")
    assert layouts["transformer.wte.weight"] == ('[{}, {"dp", "tp"}p1]', "[{}, {}]")
    chosen = _layouts(Plan(mesh="dp=2,tp=2", preset={"name": "fsdp", "data": ["dp"]}).resolve(_gpt2(1)))
    assert chosen["input_ids"][0] == '[{"dp"}, {}]'
    copies = _layouts(Plan(mesh="dp=4", preset="data_parallel").resolve(_gpt2(1)))
    assert copies["input_ids"][0] == '[{"dp"}, {}]'
    assert copies["transformer.wte.weight"] == ("[{}, {}]", "[{}, {}]")


def test_the_batch_is_split_evenly_where_it_can_be() -> None:
    def batch(mesh: str) -> str:
        return _layouts(Plan(mesh=mesh, preset="fsdp").resolve(_gpt2(1)))["input_ids"][0]

    assert batch("dp=2,tp=2") == '[{"dp", "tp"}, {}]'
    assert batch("dp=2,tp=3") == '[{"dp"}, {}]'
    assert batch("dp=3,tp=2") == '[{"dp"}, {}]'
    assert "4 does not split evenly over tp too" in explain(Plan(mesh="dp=2,tp=3", preset="fsdp").resolve(_gpt2(1)))


def test_own_rules_override_a_preset() -> None:
    plan = Plan.parse('mesh: {tp: 4}\npreset: megatron\nshard:\n  "**.wte.weight": Replicate()\n', "x.yaml").resolve(
        _gpt2(1)
    )
    assert _layouts(plan)["transformer.wte.weight"][0] == "[{}, {}]"


def test_explanation() -> None:
    plan = Plan.parse('mesh: {tp: 4}\npreset: megatron\nshard:\n  "**.wte.weight": Shard(1)@tp\n', "x.yaml").resolve(
        _gpt2()
    )
    text = explain(plan)
    assert "x.yaml:4: **.wte.weight -> Shard(1)@tp" in text
    assert 'transformer.wte.weight: 50257x768 f32 [{}, {"tp"}], 36.8 MiB per device' in text
    assert 'transformer.h.0.mlp.c_fc.weight and 2 more: 768x3072 f32 [{}, {"tp"}], 2.2 MiB per device each' in text
    assert "overridden by a later rule for transformer.wte.weight" in text
    assert "parameter transformer.h.1.attn.c_proj.bias 768 3.0 KiB" in text
    assert "transformer.h.2.mlp.c_fc.weight" in explain(plan, every=True)
    described = explain_json(plan)
    weight = next(entry for entry in described["tensors"] if entry["name"] == "transformer.wte.weight")
    assert weight["bytes_per_device"] == 50257 * 768 // 4 * 4
    assert described["bytes_per_device"]["parameter"] == sum(
        entry["bytes_per_device"] for entry in described["tensors"] if entry["kind"] == "parameter"
    )
