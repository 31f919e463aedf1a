# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machines and ``#supernode.machine`` are the same thing, spelled twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

from mlir import ir

from hyperparallel import machines
from hyperparallel.dialects import supernode


@pytest.fixture(autouse=True)
def context() -> Iterator[ir.Context]:
    with ir.Context() as context, ir.Location.unknown():
        yield context


@pytest.mark.parametrize("name", machines.preset_names())
def test_preset_is_the_same_in_yaml_text_and_compiler(name: str) -> None:
    machine = machines.load(name)
    attribute = supernode.machine_attr(machine)
    assert attribute == supernode.MachineAttr.preset(name)
    assert attribute == ir.Attribute.parse(machines.attribute_text(machine))
    assert str(attribute) == f'#supernode.machine<preset = "{name}">'
    assert supernode.machine(attribute) == machine


def test_changed_preset_is_spelled_in_full() -> None:
    machine = machines.load("h200-node")
    slow = replace(machine, links=machine.links[:1])
    attribute = supernode.machine_attr(slow)
    assert "preset" not in str(attribute)
    assert supernode.machine(ir.Attribute.parse(str(attribute))) == slow


def test_machine_of_a_module() -> None:
    module = ir.Module.create()
    assert supernode.machine_of(module) is None
    supernode.set_machine(module, "a3-node")
    assert supernode.machine_of(module) == machines.load("a3-node")
    with pytest.raises(machines.MachineError, match="expected the name of a preset"):
        supernode.set_machine(module, "a4-node")
    assert supernode.machine_of(module) == machines.load("a3-node")


def test_errors_have_the_verifiers_words() -> None:
    with pytest.raises(ValueError, match='expected the capacity of tier "hbm" to be positive but got -1'):
        supernode.TierAttr.get("hbm", "device", -1.0, 1.0)
    with pytest.raises(ValueError, match="expected an algorithm"):
        supernode.LevelAttr.get("node", 2, 0.0, 1.0, ["star"])
    with pytest.raises(ValueError, match=r"expected a preset \(a3-node"):
        supernode.MachineAttr.preset("a4-node")
    with pytest.raises(ValueError, match="expected only DeviceGroup attributes"):
        supernode.MachineAttr.get("m", [supernode.TierAttr.get("hbm", "device", 1.0, 1.0)])
    with pytest.raises(ValueError, match="to be positive but got nan"):
        supernode.TierAttr.get("hbm", "device", float("nan"), 1.0)
    machine = machines.load("a3-node")
    with pytest.raises(ValueError, match='expected link "ssd" -> "hbm" to join tiers'):
        supernode.machine_attr(replace(machine, links=(machines.Link("ssd", "hbm", 0.0, 1.0),)))
