# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine files: presets, units, round trips, and an error with its line for everything that can be wrong."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperparallel import machines
from hyperparallel.machines import units
from hyperparallel.machines.__main__ import preset_source

ROOT = Path(__file__).resolve().parents[3]

GOOD = """\
name: small
groups:
  npu:
    count: 4
    memory: hbm
    launch: 5 us
    vector: 22 TFLOP/s
    rates: {bf16: 353.8 TFLOP/s, i8: 700 TOP/s}
levels:
  package: {size: 2, latency: 0.8 us, bandwidth: 224 GB/s, algorithms: [direct]}
  node: {size: 2, latency: 1 us, bandwidth: 196 GB/s, shared: [ub]}
tiers:
  hbm: {scope: device, capacity: 64 GiB, bandwidth: 1.6 TB/s}
  pool: {scope: node, capacity: 1.5 TB, bandwidth: 640 GB/s}
segments:
  ub: {scope: device, bandwidth: 196 GB/s, within: host}
  host: {scope: node, bandwidth: 368 GB/s}
links:
  pool -> hbm: {latency: 1.46 us, bandwidth: 98 GB/s, shared: [ub]}
  hbm -> pool: {latency: 1.41 us, bandwidth: 55 GB/s, shared: [ub]}
"""


def test_reads_every_field() -> None:
    machine = machines.parse_yaml(GOOD)
    assert machine.name == "small"
    assert machine.num_devices == 4
    (group,) = machine.groups
    assert (group.count, group.memory, group.efficiency) == (4, "hbm", 1.0)
    assert group.launch == 5e-6
    assert dict(group.rates) == {"bf16": 353.8e12, "i8": 7e14}
    assert machine.levels[0].algorithms == (machines.Algorithm.DIRECT,)
    assert machine.levels[1].shared == ("ub",)
    assert machine.tier("hbm").capacity == 64 * 2**30
    assert machine.segments[0].within == "host"
    assert machine.link("pool", "hbm").bandwidth == 98e9
    assert machine.link("hbm", "pool").bandwidth == 55e9
    with pytest.raises(KeyError):
        machine.link("pool", "pool")


@pytest.mark.parametrize("name", machines.preset_names())
def test_presets_survive_yaml(name: str) -> None:
    machine = machines.load(name)
    assert machine.name == name
    assert machines.parse_yaml(machines.yaml_text(machine)) == machine


@pytest.mark.parametrize("name", machines.preset_names())
def test_every_number_of_a_preset_has_its_standing(name: str) -> None:
    for line in machines.show(name).splitlines():
        value, _, comment = line.partition("#")
        if re.search(r":\s+[0-9]", value) and not value.strip().startswith("efficiency: 1.0"):
            assert re.match(r" [MVA](:|$)", comment), f"{name}: {line}"


def test_compiler_presets_are_fresh() -> None:
    made = (ROOT / "dialects" / "Supernode" / "SupernodePresets.inc").read_text()
    assert made == preset_source(), "run `python -m hyperparallel.machines > dialects/Supernode/SupernodePresets.inc`"


def test_show_and_check(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(GOOD)
    assert machines.parse_yaml(machines.show(path)) == machines.load(path)
    assert machines.check(path) == "small: 4 x npu; 2 network levels; tiers hbm, pool; 2 links"


# Each case: the text to replace, what to put there, the line that is at fault, and what is said about it.
BROKEN = {
    "unknown key": ("launch: 5 us", "lunch: 5 us", 6, "unknown key `lunch` of group `npu`"),
    "unknown section": ("segments:", "segment:", 15, "unknown key `segment` of the machine; expected one of `name`"),
    "missing key": ("    memory: hbm\n", "", 4, "expected group `npu` to have `memory`"),
    "key twice": ("    count: 4\n", "    count: 4\n    count: 4\n", 5, "expected `count` once but got it twice"),
    "missing unit": ("launch: 5 us", "launch: 5", 6, "expected a time with its unit, such as `3.1 us`, but got `5`"),
    "wrong unit": ("22 TFLOP/s", "22 GB/s", 7, "expected a rate in one of FLOP/s, kFLOP/s"),
    "no number": ("640 GB/s", "fast", 14, "expected a bandwidth such as `196 GB/s` but got `fast`"),
    "negative": ("1.5 TB", "-1.5 TB", 14, "expected `capacity` of tier `pool` to be positive but got `-1.5 TB`"),
    "zero rate": ("353.8 TFLOP/s", "0 TFLOP/s", 8, "expected rate `bf16` of group `npu` to be positive"),
    "negative latency": ("1.46 us", "-1 us", 19, "expected `latency` of link `pool -> hbm` to be at least 0"),
    "no devices": ("count: 4", "count: 0", 4, "expected `count` of group `npu` to be at least 1 but got 0"),
    "part of a device": ("count: 4", "count: 4.5", 4, "expected `count` of group `npu` to be a whole number"),
    "efficiency": ("vector: 22", "efficiency: 1.2\n    vector: 22", 7, "to be a number in (0, 1] but got `1.2`"),
    "element type": ("bf16:", "brain16:", 8, "to be by element type such as `bf16` but got `brain16`"),
    "no rates": ("{bf16: 353.8 TFLOP/s, i8: 700 TOP/s}", "{}", 8, "expected group `npu` to have at least one rate"),
    "algorithm": ("[direct]", "[star]", 10, "expected `algorithms` of level `package` to be of `ring`, `tree`"),
    "algorithm twice": ("[direct]", "[direct, direct]", 10, "to name `direct` once but got it twice"),
    "device count": ("size: 2, latency: 1 us", "size: 3, latency: 1 us", 10, "multiply to the 4 devices of the groups"),
    "level name": ("package:", "device:", 10, "expected no level to be called `device`"),
    "scope of a tier": (
        "pool: {scope: node",
        "pool: {scope: rack",
        14,
        "expected the scope of tier `pool` to be one of",
    ),
    "scope of a segment": ("ub: {scope: device", "ub: {scope: rack", 16, "expected the scope of segment `ub`"),
    "memory": ("memory: hbm", "memory: pool", 5, "to be a tier of scope `device` but got `pool`"),
    "unknown tier": ("pool -> hbm", "ssd -> hbm", 19, "expected link `ssd -> hbm` to join tiers of `hbm`, `pool`"),
    "link without arrow": ("pool -> hbm", "pool to hbm", 19, "called `tier -> tier` but got `pool to hbm`"),
    "link twice": ("hbm -> pool", "pool  ->  hbm", 20, "expected link `pool -> hbm` once but got it twice"),
    "unknown segment": (
        "98 GB/s, shared: [ub]",
        "98 GB/s, shared: [bus]",
        19,
        "share one of the segments `ub`, `host`",
    ),
    "segment within nothing": ("within: host", "within: rack", 16, "expected segment `ub` to lie within one of"),
    "cycle of segments": (
        "bandwidth: 368 GB/s",
        "bandwidth: 368 GB/s, within: ub",
        16,
        "expected segments not to lie within themselves but got ub -> host -> ub",
    ),
    "cores key": (
        "rates:",
        "cores: {count: 2, speed: 1}\n    rates:",
        8,
        "unknown key `speed` of the cores of group `npu`",
    ),
    "no cores": ("rates:", "cores: {count: 0}\n    rates:", 8, "`count` of the cores of group `npu` to be at least 1"),
    "gain of a core": ("rates:", "cores: {count: 2, gain: 2}\n    rates:", 8, "to be a number in (0, 1] but got `2`"),
    "time of a cut": ("rates:", "cores: {count: 2, cut: 3}\n    rates:", 8, "expected a time with its unit"),
    "packing": ("rates:", "packing: 0 B/s\n    rates:", 8, "expected `packing` of group `npu` to be positive"),
    "cache": (
        "rates:",
        "cache: l2\n    rates:",
        8,
        "expected the cache of group `npu` to be one of the tiers `hbm`, `pool`",
    ),
    "bus of a tier": ("1.6 TB/s}", "1.6 TB/s, shared: [bus]}", 13, "expected tier `hbm` to share one of the segments"),
    "not a mapping": ("groups:\n", "groups: 3\nextra:\n", 3, "unknown key `extra`"),
    "groups are a number": (
        "{size: 2, latency: 0.8 us, bandwidth: 224 GB/s, algorithms: [direct]}",
        "7",
        10,
        "mapping",
    ),
    "names are no list": ("shared: [ub]}\ntiers", "shared: ub}\ntiers", 11, "to be a list of names"),
    "no YAML": ("name: small", "name: [small", 2, "expected YAML but got"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_errors_name_file_line_and_expectation(what: str, tmp_path: Path) -> None:
    old, new, line, message = BROKEN[what]
    assert old in GOOD
    path = tmp_path / "broken.yaml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(machines.MachineError) as caught:
        machines.load(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert (caught.value.path, caught.value.line) == (str(path), line)


def test_errors_of_whole_files(tmp_path: Path) -> None:
    empty = tmp_path / "empty.yaml"
    empty.write_text("")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00name")
    for source, message in {
        "a4-node": "expected the name of a preset (a3-node, ",
        str(tmp_path / "none.yaml"): "cannot read the file: No such file",
        str(tmp_path): "cannot read the file",
        str(empty): "got an empty file",
        str(binary): "got a binary file",
    }.items():
        with pytest.raises(machines.MachineError, match=re.escape(message)):
            machines.load(source)


@given(st.floats(min_value=1e-12, max_value=1e18), st.sampled_from(["SECONDS", "BYTES", "OPERATIONS_PER_SECOND"]))
def test_spelled_numbers_read_back(value: float, unit: str) -> None:
    dimension: units.Unit = getattr(units, unit)
    assert units.parse(units.spell(value, dimension), dimension) == value


names = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=6).filter(
    lambda name: "->" not in name and name == name.strip()
)


@given(names, names, st.floats(min_value=1e-9, max_value=1e15), st.floats(min_value=0, max_value=10))
def test_any_machine_survives_yaml(name: str, tier: str, number: float, latency: float) -> None:
    machine = machines.parse_yaml(GOOD)
    changed = replace(
        machine,
        name=name,
        groups=(
            replace(machine.groups[0], packing=number, cache=f"{tier}x", cores=machines.Cores(3, 0.25, latency, 1e-6)),
        ),
        tiers=(*machine.tiers, machines.Tier(f"{tier}x", "node", number, number, ("ub",))),
        links=(*machine.links, machines.Link(f"{tier}x", "hbm", latency, number, ("host", "ub"))),
    )
    assert machines.parse_yaml(machines.yaml_text(changed)) == changed


def test_a_preset_of_another_size() -> None:
    small, large = machines.load("cloudmatrix384"), machines.load("cloudmatrix384@1024")
    assert (large.name, large.num_devices) == ("cloudmatrix384@1024", 1024)
    assert [level.size for level in large.levels] == [2, 8, 64]
    # The pool comes with the nodes; what a die or a node has stays.
    assert large.tier("pool").capacity == small.tier("pool").capacity / 48 * 64
    assert large.tier("hbm") == small.tier("hbm")
    assert large.segments == small.segments
    assert machines.load("cloudmatrix384@768") == small


@pytest.mark.parametrize("devices", [0, 100])
def test_a_size_that_cannot_be(devices: int) -> None:
    with pytest.raises(machines.MachineError, match=f"expected a multiple of 16 devices.* but got {devices}"):
        machines.load(f"cloudmatrix384@{devices}")
