# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports a training step of many equal layers by tracing three of them.

1. ``find_repeats``: lists of blocks of which all are alike: classes, plain attributes, shapes and element types of
   parameters, down to the last child. An attribute that is the layer's own number in the list may differ.
2. ``shortened``: while the step is traced, such a list has its first, second and last entry.
3. ``expand``: the three must have become calls of the same functions, with arguments that stand in the same relation to
   the layer (its own state or results, those of the layer before or behind, or what all layers share). Then the
   second stands for all between: its calls are written for each of them.

Whoever asks for this takes the word of the modules that what is alike computes alike; only code that decides by a layer's
number in a way that the first two and the last do not show could break it. Where anything else does not fit, the
caller traces all layers.

Cost: linear in the layers; what is traced does not depend on their number.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from hyperparallel.enums import StepPhase
from hyperparallel.frontend.graph import Graph, Node, Value
from hyperparallel.frontend.tracing import TracedInput

_KEPT = 3
_FEWEST = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Repeat:
    """A list of layers that are alike: its path, and how many there are."""

    path: str
    count: int

    def original(self, name: str) -> str:
        """The name that a parameter of the shortened model has in the whole one."""
        last = f"{self.path}.{_KEPT - 1}."
        return f"{self.path}.{self.count - 1}.{name.removeprefix(last)}" if name.startswith(last) else name


class DoesNotRepeat(Exception):
    """The three layers that were traced do not stand for all."""


def find_repeats(module: torch.nn.Module, blocks: frozenset[str]) -> list[Repeat]:
    """The lists of blocks whose entries are alike, and share no tensor with anything else."""
    owners = Counter(
        id(tensor)
        for pairs in (module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False))
        for _, tensor in pairs
    )
    found: list[Repeat] = []
    for path, entry in module.named_modules():
        layers = list(entry.children())
        if type(entry) not in (torch.nn.ModuleList, torch.nn.Sequential) or len(layers) < _FEWEST:
            continue
        if all(f"{path}.{number}" in blocks for number in range(len(layers))) and all(
            _is_alike(layers[0], layer, 0, number) for number, layer in enumerate(layers)
        ):
            tensors = [tensor for layer in layers for tensor in (*layer.parameters(), *layer.buffers())]
            if all(owners[id(tensor)] == 1 for tensor in tensors):
                found.append(Repeat(path, len(layers)))
    return found


def _is_alike(first: Any, second: Any, first_number: int, second_number: int) -> bool:
    if type(first) is not type(second):
        return False
    left, right = vars(first), vars(second)
    if left.keys() != right.keys():
        return False
    for key, value in left.items():
        other = right[key]
        if key == "_modules":
            same = value.keys() == other.keys() and all(
                _is_alike(value[name], other[name], first_number, second_number) for name in value
            )
        elif key in ("_parameters", "_buffers"):
            same = value.keys() == other.keys() and all(_has_same_type(value[name], other[name]) for name in value)
        else:
            is_own_number = (
                type(value) is int and type(other) is int and (value, other) == (first_number, second_number)
            )
            same = value is other or is_own_number or _is_equal(value, other)
        if not same:
            return False
    return True


def _has_same_type(first: torch.Tensor | None, second: torch.Tensor | None) -> bool:
    if first is None or second is None:
        return first is second
    return (first.shape, first.dtype, first.stride(), first.requires_grad) == (
        *(second.shape, second.dtype, second.stride(), second.requires_grad),
    )


def _is_equal(first: Any, second: Any) -> bool:
    plain = (bool, int, float, str, bytes, type(None), tuple, list, dict, set, frozenset, torch.dtype, torch.Size)
    if isinstance(first, Mapping) and not first and isinstance(second, Mapping) and not second:
        return True
    return type(first) is type(second) and isinstance(first, plain) and bool(first == second)


@contextmanager
def shortened(module: torch.nn.Module, repeats: Sequence[Repeat]) -> Generator[None]:
    """While the block runs, lists of layers have their first, second and last entry."""
    places = [
        (module.get_submodule(repeat.path.rpartition(".")[0]), repeat.path.rpartition(".")[2]) for repeat in repeats
    ]
    whole = [getattr(parent, name) for parent, name in places]
    try:
        for (parent, name), layers in zip(places, whole, strict=True):
            kept = [layers[0], layers[1], layers[len(layers) - 1]]
            setattr(
                parent, name, torch.nn.ModuleList(kept) if type(layers) is torch.nn.ModuleList else type(layers)(*kept)
            )
        yield
    finally:
        for (parent, name), layers in zip(places, whole, strict=True):
            setattr(parent, name, layers)


# Expansion ------------------------------------------------------------------------------------------------------------

_Key = tuple[StepPhase, int]
"""A call of a layer: its phase, and its number among the layer's calls of that phase."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Made:
    """Result ``result`` of the call ``key`` of the layer at distance ``offset``."""

    offset: int
    key: _Key
    result: int


@dataclasses.dataclass(frozen=True, slots=True)
class _Own:
    """The layer's own state of that name."""

    name: str


_Relation = _Made | _Own | int
"""What an argument is to a layer; a number is a value that has nothing to do with layers."""


def expand(
    main: Graph,
    inputs: Sequence[TracedInput],
    output_names: Sequence[str],
    repeat: Repeat,
    tensors: Mapping[str, torch.Tensor],
) -> tuple[Graph, list[TracedInput], list[str]]:
    """Write the calls of all layers of a list.

    Args:
        main: Calls of functions, with three layers of the list.
        inputs: One entry for each of its inputs.
        output_names: One name for each of its outputs: of state, that of the input whose next value it is.
        repeat: The list.
        tensors: The state of all layers, by name.

    Returns:
        The same with all layers; the state of the last one has its own name.

    Raises:
        DoesNotRepeat: The three layers do not stand for all.
    """
    return _Expansion(main, inputs, output_names, repeat, tensors).run()


class _Expansion:
    def __init__(
        self,
        main: Graph,
        inputs: Sequence[TracedInput],
        output_names: Sequence[str],
        repeat: Repeat,
        tensors: Mapping[str, torch.Tensor],
    ) -> None:
        self.main, self.inputs, self.output_names = main, inputs, output_names
        self.repeat, self.tensors = repeat, tensors
        self.calls: list[dict[_Key, Node]] = [{} for _ in range(_KEPT)]
        self.made: dict[int, tuple[int, _Key, int]] = {}
        self.state: dict[int, tuple[int, str]] = {}
        self.values: dict[tuple[int, _Key, int], int] = {}
        self.own: dict[tuple[int, str], int] = {}
        self.following = max(main.types) + 1

    def run(self) -> tuple[Graph, list[TracedInput], list[str]]:
        self._collect()
        relations = [
            {key: self._relations(layer, node) for key, node in self.calls[layer].items()} for layer in range(3)
        ]
        self._check(relations)
        types = dict(self.main.types)
        inputs = self._all_inputs(types)
        self._name_results(types)
        nodes = self._all_nodes(relations)
        outputs, names = self._all_outputs()
        graph = Graph(self.main.name, types, [entry.value for entry in inputs], nodes, outputs)
        return graph, inputs, names

    def _layer_of(self, path: str) -> int:
        """The number of the traced layer that has exactly this path, or -1."""
        prefix, _, number = path.rpartition(".")
        return int(number) if prefix == self.repeat.path and number.isdigit() else -1

    def _collect(self) -> None:
        for node in self.main.nodes:
            layer = self._layer_of(node.path)
            if layer < 0:
                continue
            phase = node.phase
            key = (phase, sum(known == phase for known, _ in self.calls[layer]))
            self.calls[layer][key] = node
            for index, result in enumerate(node.results):
                if result is not None:
                    self.made[result] = (layer, key, index)
        for entry in self.inputs:
            for layer in range(_KEPT):
                prefix = f"{self.repeat.path}.{layer}."
                if entry.name.startswith(prefix):
                    self.state[entry.value] = (layer, entry.name.removeprefix(prefix))

    def _relations(self, layer: int, node: Node) -> list[_Relation]:
        relations: list[_Relation] = []
        for value in node.args:
            if value.id in self.made:
                other, key, index = self.made[value.id]
                relations.append(_Made(other - layer, key, index))
            elif value.id in self.state:
                other, name = self.state[value.id]
                if other != layer:
                    raise DoesNotRepeat(f"layer {layer} takes state of layer {other}")
                relations.append(_Own(name))
            else:
                relations.append(value.id)
        return relations

    def _check(self, relations: list[dict[_Key, list[_Relation]]]) -> None:
        first, second, last = self.calls
        if not first.keys() == second.keys() == last.keys():
            raise DoesNotRepeat("the layers are called differently")
        for key, node in second.items():
            if not first[key].kwargs == node.kwargs == last[key].kwargs:
                raise DoesNotRepeat(f"the layers differ in their {key[0]} functions")
            for before, mine, behind in zip(*(relations[layer][key] for layer in range(_KEPT)), strict=True):
                offset = mine.offset if isinstance(mine, _Made) else 0
                if abs(offset) > 1 or (offset <= 0 and mine != behind) or (offset >= 0 and mine != before):
                    raise DoesNotRepeat(f"the layers' {key[0]} functions take different things")
        kept = {
            value for value, name in zip(self.main.outputs, self.output_names, strict=True) if self._is_state(name, 1)
        }
        for node in self.main.nodes:
            if self._layer_of(node.path) < 0 and any(self.made.get(value.id, (0,))[0] == 1 for value in node.values()):
                raise DoesNotRepeat(f"{node.path or 'the model'} takes what every layer makes")
        for value in self.main.outputs:
            if self.made.get(value, (0,))[0] == 1 and value not in kept:
                raise DoesNotRepeat("the model returns what every layer makes")

    def _is_state(self, name: str, layer: int) -> bool:
        return name.startswith(f"{self.repeat.path}.{layer}.")

    def _fresh(self) -> int:
        self.following += 1
        return self.following - 1

    def _all_inputs(self, types: dict[int, Any]) -> list[TracedInput]:
        inputs: list[TracedInput] = []
        for entry in self.inputs:
            layer, name = self.state.get(entry.value, (-1, ""))
            number = self.repeat.count - 1 if layer == _KEPT - 1 else layer
            inputs.append(dataclasses.replace(entry, name=self.repeat.original(entry.name)))
            self.own[(number, name)] = entry.value
            if layer != 1:
                continue
            for other in range(2, self.repeat.count - 1):
                value = self.own[(other, name)] = self._fresh()
                types[value] = types[entry.value]
                full = f"{self.repeat.path}.{other}.{name}"
                inputs.append(dataclasses.replace(entry, name=full, value=value, tensor=self.tensors[full]))
        return inputs

    def _name_results(self, types: dict[int, Any]) -> None:
        last = self.repeat.count - 1
        for value, (layer, key, index) in self.made.items():
            self.values[(last if layer == _KEPT - 1 else layer, key, index)] = value
            if layer == 1:
                for other in range(2, last):
                    made = self.values[(other, key, index)] = self._fresh()
                    types[made] = types[value]

    def _call(self, layer: int, template: Node, key: _Key, relations: list[_Relation]) -> Node:
        def argument(relation: _Relation) -> Value:
            if isinstance(relation, _Made):
                return Value(self.values[(layer + relation.offset, relation.key, relation.result)])
            return Value(self.own[(layer, relation.name)] if isinstance(relation, _Own) else relation)

        results = tuple(
            None if result is None else self.values[(layer, key, index)]
            for index, result in enumerate(template.results)
        )
        arguments = tuple(argument(relation) for relation in relations)
        return dataclasses.replace(template, args=arguments, results=results, path=f"{self.repeat.path}.{layer}")

    def _all_nodes(self, relations: list[dict[_Key, list[_Relation]]]) -> list[Node]:
        keys = {id(node): (layer, key) for layer, calls in enumerate(self.calls) for key, node in calls.items()}
        nodes: list[Node] = []
        for node in self.main.nodes:
            layer, key = keys.get(id(node), (-1, (StepPhase.FORWARD, 0)))
            if layer < 0:
                nodes.append(node)
                continue
            numbers = [self.repeat.count - 1 if layer == _KEPT - 1 else layer]
            if layer == 1:
                numbers = list(range(1, self.repeat.count - 1))
                if key[0] is StepPhase.BACKWARD:
                    numbers.reverse()
            nodes.extend(self._call(number, node, key, relations[layer][key]) for number in numbers)
        return nodes

    def _all_outputs(self) -> tuple[list[int], list[str]]:
        outputs: list[int] = []
        names: list[str] = []
        for value, name in zip(self.main.outputs, self.output_names, strict=True):
            outputs.append(value)
            names.append(self.repeat.original(name))
            if self._is_state(name, 1):
                _, key, index = self.made[value]
                suffix = name.removeprefix(f"{self.repeat.path}.1.")
                for other in range(2, self.repeat.count - 1):
                    outputs.append(self.values[(other, key, index)])
                    names.append(f"{self.repeat.path}.{other}.{suffix}")
        return outputs, names
