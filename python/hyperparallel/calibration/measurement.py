# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the machine at hand and describes it as a CPU supernode.

1. One device on one core: matrix products (rate, packing, launch), vector kernels, memory and cache.
2. One device on all cores: what cutting a kernel gains and costs. As many devices as cores: the memory bus.
3. Collectives on two devices and on twice as many as there are cores: latency, bandwidth, waking up.
4. Copies between the host's tier and a device's.

Each number is fitted to times of small programs that are compiled and run as any other; none to a model.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hyperparallel.calibration import programs
from hyperparallel.calibration.bench import Bench, copy_seconds
from hyperparallel.calibration.fitting import Fit, capacity_of, fit_times
from hyperparallel.calibration.programs import MicroProgram
from hyperparallel.machines import (
    Algorithm,
    Cores,
    DeviceGroup,
    Level,
    Link,
    Machine,
    Segment,
    Tier,
)

#: Called with how much is done, of how much, and what it is.
Progress = Callable[[int, int, str], None]

_DEVICES = 16
_CAPACITY = 4e9
_POOL = 16e9
#: Shapes (batch, m, n, k): large, flat and small ones, and the batches of attention.
_SHAPES = (
    (0, 256, 512, 512),
    (0, 64, 1024, 512),
    (0, 32, 512, 512),
    (0, 256, 512, 1536),
    (0, 256, 1536, 512),
    (0, 128, 2048, 1024),
    (0, 128, 1024, 3072),
    (0, 64, 64, 64),
    (0, 512, 256, 256),
    (24, 64, 64, 64),
    (8, 128, 128, 64),
    (16, 32, 32, 32),
)
#: Second operands of so many elements are taken for weights: each step has another, which no cache holds any more.
_WEIGHTS, _WEIGHT_COPIES = 1 << 18, 8
_QUICK_SHAPES = tuple(_SHAPES[index] for index in (0, 1, 2, 3, 7, 9))
_VECTOR = {
    "exp": ["math.exp {x}", "arith.addf {x}, {y}"],
    "tanh": ["arith.mulf {x}, {y}", "math.tanh {x}", "arith.addf {x}, {y}"],
    "erf": ["math.erf {x}", "arith.mulf {x}, {y}"],
    "log": ["arith.mulf {x}, {x}", "arith.addf {x}, {y}", "math.log {x}"],
}
_ADD = ["arith.addf {x}, {y}"]
_KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
#: Up to here every member of a reduction reads all parts; beyond, each reduces a block and reads the others' blocks.
_ONE_STEP_BYTES = 128 << 10


@dataclass(frozen=True, slots=True)
class Calibration:
    """A measured machine.

    Attributes:
        machine: The description.
        standings: What each number stands on, by its place in the file.
    """

    machine: Machine
    standings: Mapping[tuple[str, ...], str]


class _Effort:
    """How much to measure, and how far it is."""

    def __init__(self, quick: bool, progress: Progress | None) -> None:
        self.quick = quick
        self.rounds = 2 if quick else 3
        self.budget = 0.04 if quick else 0.08
        self.done = 0
        self.total = 1
        self.label = ""
        self._progress = progress

    def begin(self, label: str) -> None:
        self.label = label
        self._tell()

    def advance(self) -> None:
        self.done += 1
        self._tell()

    def finish(self) -> None:
        self.done = self.total
        self._tell()

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(min(self.done, self.total), self.total, self.label)


def usable_cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _standing(fit: Fit, what: str) -> str:
    return f"M: {what}; {fit.points} times, median error {100 * fit.residual:.1f} %"


def _matmuls(quick: bool) -> dict[str, list[MicroProgram]]:
    shapes = _QUICK_SHAPES if quick else _SHAPES
    found = {
        "f32": [
            programs.matmul(
                f"f32_{index}", m, n, k, batch=batch, copies=1 if batch or n * k < _WEIGHTS else _WEIGHT_COPIES
            )
            for index, (batch, m, n, k) in enumerate(shapes)
        ]
    }
    for element, rate in (("f64", 2e10), ("bf16", 2e10), ("f16", 2e10)):
        found[element] = [
            programs.matmul(f"{element}_{index}", m, 256, 256, element=element, rate=rate)
            for index, m in enumerate((128, 256))
        ]
    for element in ("i8", "i32", "i64"):
        found[element] = [programs.matmul(f"{element}_0", 64, 64, 64, element=element, rate=1e9)]
    return found


def _vectors(quick: bool) -> list[MicroProgram]:
    shapes = ((256, 256),) if quick else ((256, 256), (128, 1024))
    kernels = [
        programs.elementwise(f"{name}_{rows}", rows, columns, ops)
        for rows, columns in shapes
        for name, ops in _VECTOR.items()
    ]
    return [*kernels, *(programs.softmax(f"softmax_{columns}", 512, columns) for columns in (64, 256))]


def _streams(quick: bool) -> list[MicroProgram]:
    """Additions on working sets (three tensors) from 1.5 MiB to 192 MiB."""
    rows = (128, 512, 1024, 2048, 8192) if quick else (128, 256, 512, 1024, 1536, 2048, 4096, 16384)
    return [programs.elementwise(f"stream_{count}", count, 1024, _ADD) for count in rows]


def _finished(quick: bool) -> list[tuple[MicroProgram, MicroProgram]]:
    """Products with and without an addition to them."""
    shapes = ((256, 512, 64),) if quick else ((256, 512, 64), (256, 1024, 64), (512, 512, 32))
    return [
        (programs.matmul(f"plain_{index}", m, n, k), programs.finished_matmul(f"finished_{index}", m, n, k))
        for index, (m, n, k) in enumerate(shapes)
    ]


def _collectives(members: int, quick: bool) -> list[MicroProgram]:
    sizes = (64, 16384, 262144) if quick else (64, 4096, 16384, 65536, 131072, 262144)
    kinds = _KINDS[:2] if quick else _KINDS
    return [programs.collective(f"{kind}_{size}", kind, size, members) for kind in kinds for size in sizes]


def _flops(measured: Sequence[MicroProgram]) -> dict[str, float]:
    """Operations of one step as the cost model counts them, for whom the rates are."""
    from hyperparallel.cost import cost_of_text

    report = cost_of_text(programs.module_text(measured, 1), machine="cpu-supernode", path="calibration")
    return {program.name: report.function(f"{program.name}_step").total.flops for program in measured}


def collective_terms(kind: str, local_bytes: float, members: int) -> tuple[float, float]:
    """Rounds, and bytes that one member reads and writes, as the cost model's ``memory`` algorithm has them."""
    n, p = local_bytes, members
    match kind:
        case "all_gather":
            return 1, 2 * p * n
        case "reduce_scatter":
            return 1, n + n / p
        case "all_reduce":
            return (1, (p + 1) * n) if n <= _ONE_STEP_BYTES else (2, 3 * n + n / p)
        case _:
            return 1, 2 * n


def _kind(program: MicroProgram) -> str:
    return program.name.rpartition("_")[0]


@dataclass(frozen=True, slots=True)
class _OneCore:
    """What is known of one device on one core."""

    products: Fit
    rates: Mapping[str, float]
    vector: Fit
    launch: float
    memory: float
    cache: Fit
    capacity: float


def _fit_products(measured: Sequence[MicroProgram], seconds: Mapping[str, float]) -> Fit:
    """Terms: operations, bytes of the operands, one."""
    sizes = [
        (
            2.0 * p.facts["batch"] * p.facts["m"] * p.facts["n"] * p.facts["k"],
            4.0 * p.facts["batch"] * (p.facts["m"] + p.facts["n"]) * p.facts["k"],
            1.0,
        )
        for p in measured
    ]
    return fit_times(sizes, [seconds[p.name] for p in measured])


def _other_rate(measured: Sequence[MicroProgram], seconds: Mapping[str, float]) -> float:
    """The rate of the fastest product of an element type."""
    return max(2.0 * p.facts["m"] * p.facts["n"] * p.facts["k"] / seconds[p.name] for p in measured)


def _one_core(effort: _Effort, directory: Path) -> tuple[_OneCore, Mapping[str, float]]:
    products, vectors = _matmuls(effort.quick), _vectors(effort.quick)
    streams, finished = _streams(effort.quick), _finished(effort.quick)
    tiny = programs.elementwise("tiny", 4, 16, _ADD)
    everything = [p for group in products.values() for p in group] + vectors + streams
    everything += [p for pair in finished for p in pair] + [tiny]
    effort.begin("kernels on one core")
    bench = Bench(everything, devices=1, threads=1, directory=directory)
    seconds = bench.measure(rounds=effort.rounds, budget=effort.budget, advance=effort.advance)

    flops = _flops(vectors)
    after = [seconds[second.name] - seconds[first.name] for first, second in finished]
    cache = fit_times([(second.facts["bytes"],) for _, second in finished], [max(time, 1e-6) for time in after])
    working_sets = [12.0 * p.facts["elements"] for p in streams]
    rates = [size / seconds[p.name] for size, p in zip(working_sets, streams, strict=True)]
    found = _OneCore(
        products=_fit_products(products["f32"], seconds),
        rates={element: _other_rate(group, seconds) for element, group in products.items() if element != "f32"},
        vector=fit_times([(flops[p.name],) for p in vectors], [seconds[p.name] for p in vectors]),
        launch=seconds["tiny"],
        memory=rates[-1],
        cache=cache,
        capacity=capacity_of(working_sets, rates),
    )
    return found, seconds


def _cut(effort: _Effort, cores: int, alone: Mapping[str, float], directory: Path) -> Fit:
    """Terms: the time on one core, one."""
    measured = [*_matmuls(effort.quick)["f32"], *_vectors(effort.quick)]
    measured = [p for p in measured if alone[p.name] > 40e-6]
    effort.begin(f"kernels cut over {cores} cores")
    bench = Bench(measured, devices=1, threads=cores, directory=directory)
    seconds = bench.measure(rounds=effort.rounds, budget=effort.budget, advance=effort.advance)
    return fit_times([(alone[p.name], 1.0) for p in measured], [seconds[p.name] for p in measured])


def _bus(effort: _Effort, cores: int, directory: Path) -> float:
    """Bytes per second of all cores together."""
    measured = _streams(effort.quick)[-1]
    effort.begin("memory of all cores")
    bench = Bench([measured], devices=cores, threads=cores, directory=directory)
    seconds = bench.measure(rounds=effort.rounds, budget=4 * effort.budget, advance=effort.advance)
    return cores * 12.0 * measured.facts["elements"] / seconds[measured.name]


def _exchange(effort: _Effort, members: int, cores: int, directory: Path) -> list[tuple[tuple[float, float], float]]:
    """Terms and seconds of collectives."""
    measured = _collectives(members, effort.quick)
    effort.begin(f"collectives of {members} devices")
    bench = Bench(measured, devices=members, threads=cores, directory=directory)
    seconds = bench.measure(rounds=effort.rounds, budget=effort.budget, advance=effort.advance)
    return [(collective_terms(_kind(p), p.facts["bytes"], members), seconds[p.name]) for p in measured]


def _links(effort: _Effort) -> dict[bool, Fit]:
    """By direction (True: from the pool to a device): latency and seconds a byte."""
    effort.begin("copies between tiers")
    sizes = [1 << power for power in ((12, 20, 24) if effort.quick else (12, 16, 18, 20, 22, 24, 26))]
    taken = copy_seconds(sizes, repeats=5 if effort.quick else 15, advance=effort.advance)
    return {
        inward: fit_times([(1.0, float(size)) for size in sizes], [taken[inward, size] for size in sizes])
        for inward in (True, False)
    }


def _expected_steps(effort: _Effort, cores: int, crowd: int) -> int:
    products = sum(map(len, _matmuls(effort.quick).values()))
    vectors, finished = len(_vectors(effort.quick)), 2 * len(_finished(effort.quick))
    kernels = products + vectors + len(_streams(effort.quick)) + finished + 1
    cut = len(_matmuls(effort.quick)["f32"]) + vectors if cores > 1 else 0
    groups = [members for members in (2, crowd) if members > 1]
    exchanges = sum(len(_collectives(members, effort.quick)) for members in dict.fromkeys(groups))
    return effort.rounds * (kernels + cut + 1 + exchanges) + (3 if effort.quick else 7)


def calibrate(name: str = "cpu-supernode", *, quick: bool = False, progress: Progress | None = None) -> Calibration:
    """Measures this machine; takes about a minute, or a quarter of one if quick.

    Args:
        name: What to call the machine.
        quick: Measure less, less often.
        progress: Told how far it is.

    Raises:
        RuntimeFailure: The runtime cannot be loaded, or a program failed.
    """
    effort = _Effort(quick, progress)
    cores = usable_cores()
    crowd = min(2 * cores, _DEVICES)
    effort.total = _expected_steps(effort, cores, crowd)
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as folder:
        directory = Path(folder)
        core, alone = _one_core(effort, directory)
        cut = _cut(effort, cores, alone, directory) if cores > 1 else None
        bus = _bus(effort, cores, directory)
        pair = _exchange(effort, 2, cores, directory)
        crowded = _exchange(effort, crowd, cores, directory) if crowd > max(2, cores) else pair
        links = _links(effort)
    effort.finish()
    exchange = fit_times([terms for terms, _ in pair], [seconds for _, seconds in pair])
    wakes = sorted(
        seconds - (rounds * exchange.costs[0] + size * exchange.costs[1]) * crowd / cores
        for (rounds, size), seconds in crowded
        if size < 1e6
    )
    wake = max(0.0, wakes[len(wakes) // 2]) if crowd > cores else 0.0
    return _describe(name, cores, crowd, core, cut, bus, exchange, wake, links)


def _per_second(cost: float, otherwise: float) -> float:
    """The inverse of a cost; a cost that vanished says nothing."""
    return 1.0 / cost if cost > 0 else otherwise


def _rounded(value: float) -> float:
    """To three digits, which is more than the measurement has."""
    return float(f"{value:.3g}")


def _link(source: str, target: str, fit: Fit, otherwise: float) -> Link:
    return Link(source, target, _rounded(fit.costs[0]), _rounded(_per_second(fit.costs[1], otherwise)), ("bus",))


def _describe(
    name: str,
    cores: int,
    crowd: int,
    core: _OneCore,
    cut: Fit | None,
    bus: float,
    exchange: Fit,
    wake: float,
    links: Mapping[bool, Fit],
) -> Calibration:
    speed_up = 1.0 / cut.costs[0] if cut is not None and cut.costs[0] > 0 else 1.0
    gain = min(1.0, max(0.01, (speed_up - 1) / (cores - 1))) if cores > 1 else 1.0
    cut_seconds = cut.costs[1] if cut is not None else 0.0
    rate = _per_second(core.products.costs[0], 1e9)
    packing = _per_second(core.products.costs[1], 0.0)
    cache = max(_per_second(core.cache.costs[0], core.memory), core.memory)
    rates = {"f32": rate, **core.rates}
    group = DeviceGroup(
        name="cpu",
        count=_DEVICES,
        memory="local",
        launch=_rounded(max(core.products.costs[2], core.launch)),
        vector=_rounded(_per_second(core.vector.costs[0], 1e9)),
        rates={element: _rounded(value) for element, value in rates.items()},
        packing=_rounded(packing),
        cache="cache",
        cores=Cores(cores, _rounded(gain), _rounded(cut_seconds), _rounded(wake)),
    )
    inward, outward = links[True], links[False]
    machine = Machine(
        name=name,
        groups=(group,),
        levels=(
            Level(
                "host",
                _DEVICES,
                _rounded(exchange.costs[0]),
                _rounded(_per_second(exchange.costs[1], core.memory)),
                (Algorithm.MEMORY,),
            ),
        ),
        tiers=(
            Tier("local", "device", _CAPACITY, _rounded(core.memory), ("bus",)),
            Tier("cache", "host", _rounded(core.capacity), _rounded(cache)),
            Tier("pool", "host", _POOL, _rounded(bus)),
        ),
        segments=(Segment("bus", "host", _rounded(max(bus, core.memory))),),
        links=(
            _link("pool", "local", inward, core.memory),
            _link("local", "pool", outward, core.memory),
            _link("local", "local", outward, core.memory),
        ),
    )
    at = ("groups", "cpu")
    products = _standing(core.products, "matrix products on one core")
    standings = {
        (*at, "count"): "A: virtual devices; a smaller mesh uses the first",
        (*at, "launch"): products,
        (*at, "vector"): _standing(core.vector, "exponentials, tanh, erf, logarithms and softmax on one core"),
        (*at, "packing"): products,
        (*at, "cores", "count"): "M: cores that this process may use",
        (*at, "cores", "gain"): _standing(cut, "the same on all cores, over one") if cut else "A: there is one core",
        (*at, "cores", "cut"): _standing(cut, "the same, what does not shrink") if cut else "A: there is one core",
        (*at, "cores", "wake"): f"M: collectives of {crowd} devices, beyond their share of the cores",
        (*at, "rates", "f32"): products,
        **{(*at, "rates", element): "M: the fastest product on one core" for element in core.rates},
        ("levels", "host", "size"): "A",
        ("levels", "host", "latency"): _standing(exchange, "collectives of two devices"),
        ("levels", "host", "bandwidth"): _standing(exchange, "the same, bytes read and written"),
        ("tiers", "local", "capacity"): "A",
        ("tiers", "local", "bandwidth"): "M: sums of tensors that fit into no cache, one core",
        ("tiers", "cache", "capacity"): "M: the working set at which sums of tensors are half way to memory",
        ("tiers", "cache", "bandwidth"): _standing(core.cache, "sums of what a product has just made"),
        ("tiers", "pool", "capacity"): "A",
        ("tiers", "pool", "bandwidth"): f"M: sums of tensors that fit into no cache, {cores} cores",
        ("segments", "bus", "bandwidth"): f"M: sums of tensors that fit into no cache, {cores} cores",
    }
    for (source, target), fit, what in (
        (("pool", "local"), inward, "copies from the host's tier"),
        (("local", "pool"), outward, "copies to the host's tier"),
    ):
        for field in ("latency", "bandwidth"):
            standings["links", f"{source} -> {target}", field] = _standing(fit, what)
    for field in ("latency", "bandwidth"):
        standings["links", "local -> local", field] = "A: as to the host's tier"
    return Calibration(machine, standings)


__all__ = ["Calibration", "Progress", "calibrate", "collective_terms", "usable_cores"]
