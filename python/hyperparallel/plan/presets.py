# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Presets: rules for whole families of models, made from names, shapes and the mesh.

A preset is nothing but rules; ``hp plan --explain`` prints them, and a plan's own rules override them.

- ``data_parallel``: the batch is split over every axis, parameters are everywhere.
- ``fsdp``: as before, and every parameter is *stored* split over the data axes and gathered where it is used.
- ``megatron``: tensor parallelism (Shoeybi et al., 2019): the first matrix of a pair by columns, the second by rows,
heads
  and vocabulary split, the batch over the data axes. With ``fsdp: true`` parameters are stored split over the data
  axes too.

An axis is a data axis if its name says so (dp, data, fsdp, batch, replica ...), or if the plan says
``preset: {name: megatron, data: [x], tensor: [y]}``; the others are tensor axes. Presets without tensor parallelism use
every axis for data.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence, Set
from typing import Any, cast

from hyperparallel.enums import StrEnum
from hyperparallel.errors import PlanError
from hyperparallel.plan.layouts import AxisRef, DimLayout
from hyperparallel.plan.mesh import Mesh
from hyperparallel.plan.program import Program, ProgramTensor, TensorKind
from hyperparallel.plan.rules import Rule
from hyperparallel.plan.specs import Dims, LayoutSpec, Placements, Replicate, Shard, SplitLargest


class PresetName(StrEnum):
    """The presets there are."""

    MEGATRON = "megatron"
    FSDP = "fsdp"
    DATA_PARALLEL = "data_parallel"


_DATA_NAMES = ("dp", "data", "fsdp", "ddp", "batch", "replica")

# Modules whose output features are split, and those whose input features are split and whose result is then a sum.
_COLUMN = (
    "q_proj", "k_proj", "v_proj", "qkv_proj", "gate_proj", "up_proj",  # Llama and its kin
    "c_attn", "c_fc",  # GPT-2
    "query", "key", "value", "intermediate.dense",  # BERT, ViT
    "fc1", "lin1", "w1", "w3", "up", "wi",  # plain MLPs, T5
)  # fmt: skip
_ROW = ("o_proj", "out_proj", "down_proj", "c_proj", "output.dense", "fc2", "lin2", "w2", "down", "wo")
_VOCABULARY = ("wte", "embed_tokens", "word_embeddings", "tok_embeddings", "lm_head")


@dataclasses.dataclass(frozen=True, slots=True)
class Preset:
    """A preset and its options.

    Attributes:
        name: Which one.
        data: The data axes; empty to tell by their names.
        tensor: The tensor axes; empty to tell by their names.
        fsdp: ``megatron`` only: parameters are stored split over the data axes.
    """

    name: PresetName
    data: tuple[str, ...] = ()
    tensor: tuple[str, ...] = ()
    fsdp: bool = False

    def rules(self, program: Program, mesh: Mesh) -> tuple[Rule, ...]:
        """The rules for this program on this mesh; none is required to match."""
        data, tensor = self._axes(mesh)
        if self.name == PresetName.MEGATRON:
            made = [
                *_batch_rules(program, data, mesh),
                *_megatron_rules(program, data, tensor, self.fsdp),
                *_cache_rules(program, data, tensor, mesh),
            ]
        elif self.name == PresetName.FSDP:
            made = [*_batch_rules(program, data, mesh), _fsdp_rule(data)]
        else:
            made = [
                *_batch_rules(program, data, mesh),
                _rule("parameter:**", Placements((Replicate(),)), "a copy on every device"),
            ]
        return tuple(dataclasses.replace(rule, origin=f"preset {self.name}", required=False) for rule in made)

    def _axes(self, mesh: Mesh) -> tuple[tuple[str, ...], tuple[str, ...]]:
        for axis in (*self.data, *self.tensor):
            if axis not in mesh.names:
                raise PlanError(f"preset {self.name}: unknown axis {axis}; the mesh {mesh} has {', '.join(mesh.names)}")
        both = sorted(set(self.data) & set(self.tensor))
        if both:
            raise PlanError(f"preset {self.name}: axis {both[0]} cannot be a data axis and a tensor axis at once")
        if self.name != PresetName.MEGATRON:
            return (self.data or mesh.names), ()
        free = [axis for axis in mesh.names if axis not in self.data and axis not in self.tensor]
        named = [axis for axis in free if axis.rstrip("0123456789_").startswith(_DATA_NAMES)]
        data = self.data or tuple(axis for axis in named)
        tensor = self.tensor or tuple(axis for axis in free if axis not in named)
        if not tensor:
            raise PlanError(
                f"preset megatron: the mesh {mesh} has no axis for tensor parallelism; name one, as in "
                f"--mesh tp={mesh.num_devices}, "
                "or in the plan: preset: {name: megatron, tensor: [axis]}; or use the preset data_parallel or fsdp"
            )
        return data, tensor


def read_preset(value: Any, where: str) -> Preset:
    """A preset by name, or as a mapping with options.

    Raises:
        PlanError: If there is no such preset or option.
    """
    if isinstance(value, Preset):
        return value
    options: dict[str, Any] = {}
    if isinstance(value, Mapping):
        options = {str(key): item for key, item in cast("Mapping[Any, Any]", value).items()}
        value = options.pop("name", None)
    names = [str(name) for name in PresetName]
    if not isinstance(value, str) or value not in names:
        raise PlanError(f"{where}: unknown preset {value!r}; there are {', '.join(names)}")
    unknown = sorted(set(options) - {"data", "tensor", "fsdp"})
    if unknown:
        raise PlanError(f"{where}: unknown option {unknown[0]!r} of a preset; there are data, tensor, fsdp")
    fsdp = options.get("fsdp", False)
    if not isinstance(fsdp, bool):
        raise PlanError(f"{where}: expected true or false for fsdp but got {fsdp!r}")
    name = PresetName(value)
    if name != PresetName.MEGATRON and (fsdp or "tensor" in options):
        raise PlanError(f"{where}: the options tensor and fsdp belong to the preset megatron, not to {name}")
    return Preset(name, _names(options.get("data"), where), _names(options.get("tensor"), where), fsdp)


def _names(value: Any, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence):
        items = list(cast("Sequence[Any]", value))
        if all(isinstance(item, str) for item in items):
            return tuple(cast("list[str]", items))
    raise PlanError(f"{where}: expected axis names but got {value!r}")


def _rule(
    pattern: str, store: LayoutSpec, note: str, *, use: LayoutSpec | None = None, rank: int | None = None
) -> Rule:
    return Rule(pattern, store, use=use, rank=rank, note=note)


def _split(dim: int, axes: Sequence[str]) -> LayoutSpec:
    return Placements((Shard(dim, tuple(axes)),)) if axes else Placements((Replicate(),))


# The batch ------------------------------------------------------------------------------------------------------------


def _batch_rules(program: Program, data: tuple[str, ...], mesh: Mesh) -> list[Rule]:
    """Inputs whose first dimension is that of the first input are split along it.

    Over as many of the data axes as divide it: models flatten batch and sequence into one dimension, and blocks of an
    uneven batch are no blocks of that. If not even the first axis divides it, it is split over that one.
    """
    inputs = [tensor for tensor in program.of_kind(TensorKind.INPUT) if tensor.shape]
    if not inputs or not data:
        return []
    batch = inputs[0].shape[0]
    axes = data[:1]
    for count in range(1, len(data) + 1):
        if batch % math.prod(mesh.size(axis) for axis in data[:count]) == 0:
            axes = data[:count]
    left = ",".join(data[len(axes) :])
    note = "the batch" + (f"; {batch} does not split evenly over {left} too" if left else "")
    alike = [tensor for tensor in inputs if tensor.shape[0] == batch]
    spec = Dims(((0, DimLayout(tuple(AxisRef(axis) for axis in axes))),), text=f"Shard(0)@{','.join(axes)}")
    if len(alike) == len(inputs) == len(program.of_kind(TensorKind.INPUT)):
        return [_rule("input:**", spec, note)]
    return [_rule(f"input:{tensor.name}", spec, note) for tensor in alike]


def _cache_rules(program: Program, data: tuple[str, ...], tensor: tuple[str, ...], mesh: Mesh) -> list[Rule]:
    """Key-value caches [batch, heads, length, width] are split as what is computed of them: batch and heads, where even."""
    rules: list[Rule] = []
    by_shape: dict[tuple[int, ...], list[str]] = {}
    for cache in program.of_kind(TensorKind.CACHE):
        if len(cache.shape) == 4:
            by_shape.setdefault(cache.shape, []).append(cache.name)
    count = len(program.of_kind(TensorKind.CACHE))
    for shape, names in by_shape.items():
        dims = [
            (dim, DimLayout(tuple(AxisRef(axis) for axis in axes)))
            for dim, axes in ((0, data), (1, tensor))
            if axes and shape[dim] % math.prod(mesh.size(axis) for axis in axes) == 0
        ]
        if not dims:
            continue
        text = ", ".join(
            f"Shard({dim})@{','.join(axes)}" for dim, axes in ((0, data), (1, tensor)) if dim in dict(dims)
        )
        for pattern in ["**"] if len(names) == count else names:
            rules.append(_rule(f"cache:{pattern}", Dims(tuple(dims), text=text), "batch and heads"))
    return rules


# Parameters -----------------------------------------------------------------------------------------------------------


def _fsdp_rule(data: tuple[str, ...]) -> Rule:
    whole = Placements((Replicate(),))
    return _rule("parameter:**", SplitLargest(data), "stored in parts, gathered where it is used", use=whole)


def _megatron_rules(program: Program, data: tuple[str, ...], tensor: tuple[str, ...], fsdp: bool) -> list[Rule]:
    parameters = {item.name: item for item in program.of_kind(TensorKind.PARAMETER)}
    rules: list[Rule] = []
    covered: set[str] = set()

    def add(pattern: str, spec: LayoutSpec, note: str, rank: int | None) -> None:
        rule = _rule(f"parameter:{pattern}", spec, note, rank=rank)
        matched = {name for name, item in parameters.items() if rule.matches(item)}
        if matched:
            covered.update(matched)
            rules.append(rule)

    for module in _VOCABULARY:
        add(f"**.{module}.weight", _split(0, tensor), "rows of the vocabulary", 2)
        add(f"**.{module}.bias", _split(0, tensor), "rows of the vocabulary", 1)
    for modules, is_column in ((_COLUMN, True), (_ROW, False)):
        for module in modules:
            out = 1 if _is_input_major(parameters, module) else 0
            dim = out if is_column else 1 - out
            add(f"**.{module}.weight", _split(dim, tensor), "by columns" if is_column else "by rows", 2)
            if is_column:
                add(f"**.{module}.bias", _split(0, tensor), "by columns", 1)
    for name, spec, note in _chain_rules(parameters, covered, tensor):
        add(name, spec, note, None)
    if not fsdp or not data:
        return rules
    whole = Placements((Replicate(),))
    stored = [dataclasses.replace(rule, store=SplitLargest(data, rule.store), use=rule.store) for rule in rules]
    return [_rule("parameter:**", SplitLargest(data), "stored in parts, gathered where it is used", use=whole), *stored]


def _is_input_major(parameters: Mapping[str, ProgramTensor], module: str) -> bool:
    """Whether the weights of these modules are [in, out] (GPT-2's Conv1D), told by the bias of one that is not square.

    A square weight says nothing; its sisters under the same parents (c_attn for c_proj) are asked then.
    """
    names = (module, "c_attn", "c_fc") if module.startswith("c_") else (module,)
    for candidate in names:
        pattern = Rule(f"parameter:**.{candidate}.weight", Placements(()), rank=2)
        for name, weight in parameters.items():
            bias = parameters.get(name.removesuffix("weight") + "bias")
            if pattern.matches(weight) and bias is not None and weight.shape[0] != weight.shape[1]:
                return bias.shape == (weight.shape[1],)
    return False


def _chain_rules(
    parameters: Mapping[str, ProgramTensor], covered: Set[str], tensor: tuple[str, ...]
) -> list[tuple[str, LayoutSpec, str]]:
    """Pairs of weights that no name rule knows: where one's outputs are the next one's inputs, columns and then rows.

    Weights are [out, in, ...] (Linear, convolutions). Only neighbours of one parent module are paired: what stands
    between two layers of a residual network would have to be split as well.
    """
    weights = [item for item in parameters.values() if len(item.shape) >= 2 and item.name.endswith("weight")]
    made: list[tuple[str, LayoutSpec, str]] = []
    index = 0
    while index + 1 < len(weights):
        first, second = weights[index], weights[index + 1]
        fits = first.shape[0] == second.shape[1] > 1 and _parent(first.name) == _parent(second.name)
        if not fits or first.name in covered or second.name in covered:
            index += 1
            continue
        made.append((first.name, _split(0, tensor), f"by columns: its outputs feed {second.name}"))
        bias = parameters.get(first.name.removesuffix("weight") + "bias")
        if bias is not None and bias.shape == (first.shape[0],):
            made.append((bias.name, _split(0, tensor), "by columns"))
        made.append((second.name, _split(1, tensor), f"by rows: it takes the outputs of {first.name}"))
        index += 2
    return made


def _parent(name: str) -> str:
    """The module that holds a parameter's module: ``net.0.weight`` and ``net.2.weight`` share ``net``."""
    return ".".join(name.split(".")[:-2])
