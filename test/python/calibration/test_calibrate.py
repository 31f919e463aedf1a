# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A quick calibration of the machine at hand, through the compiler and the runtime: whole, plausible, and good enough to
predict what programs take to within a factor of three, which holds on a loaded machine too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hyperparallel import machines
from hyperparallel.calibration import Calibration, calibrate, calibration_text
from hyperparallel.calibration.programs import collective, elementwise, finished_matmul, matmul, module_text, softmax
from hyperparallel.cost import cost_of_text
from hyperparallel.testing.compiled import run_devices
from hyperparallel.testing.layout import Mesh


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    """Measured once: it takes some ten seconds."""
    steps: list[tuple[int, int]] = []
    made = calibrate("mine", quick=True, progress=lambda done, total, _: steps.append((done, total)))
    assert steps[-1][0] == steps[-1][1]
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    return made


def test_the_file_reads_back_and_every_number_has_its_standing(calibration: Calibration) -> None:
    text = calibration_text(calibration)
    assert machines.parse_yaml(text) == calibration.machine
    for line in text.splitlines():
        value, _, comment = line.partition("#")
        if re.search(r":\s+[0-9]", value) and not value.strip().startswith("efficiency: 1.0"):
            assert re.match(r" [MA](:|$)", comment), line


def test_the_numbers_are_those_of_a_computer(calibration: Calibration) -> None:
    machine = calibration.machine
    (group,) = machine.groups
    assert group.cores is not None
    assert group.cores.count >= 1
    assert 1e9 < group.rates["f32"] < 1e13
    assert 1e8 < group.vector < 1e12
    assert group.launch < 1e-4
    assert machine.tier("local").bandwidth <= machine.tier("cache").bandwidth
    assert machine.levels[0].latency < 1e-2


@pytest.mark.parametrize("devices", [1, 2])
def test_predicts_programs_that_it_did_not_measure(calibration: Calibration, devices: int, tmp_path: Path) -> None:
    from hyperparallel.calibration.bench import Bench
    from hyperparallel.calibration.measurement import usable_cores

    programs = [matmul("product", 192, 640, 384), softmax("softmax", 384, 320)]
    bench = Bench(programs, devices=devices, threads=usable_cores(), directory=tmp_path)
    measured = bench.measure(rounds=3, budget=0.1, advance=lambda: None)
    report = cost_of_text(module_text(programs, devices), machine=calibration.machine)
    for program in programs:
        predicted = report.function(f"{program.name}_step").total.seconds
        assert 1 / 3 < predicted / measured[program.name] < 3, program.name


def test_the_small_programs_do_what_they_say() -> None:
    """A program that computes something else would measure something else."""
    from hyperparallel.pipeline import make_context, parse_program

    rng = np.random.default_rng(0)

    def run(text: str, inputs: Sequence[np.ndarray], name: str, devices: int = 1) -> list[np.ndarray]:
        mesh = Mesh.of({"x": devices})
        given = [[np.asarray(value[device]) for value in inputs] for device in range(devices)]
        results, _, _ = run_devices(parse_program(text, name, make_context()), mesh, given, name)
        return [result[0] for result in results]

    a, b, c = (
        rng.standard_normal((1, 6, 4), "f"),
        rng.standard_normal((1, 4, 5), "f"),
        rng.standard_normal((1, 6, 5), "f"),
    )
    product = matmul("product", 6, 5, 4)
    (found,) = run(module_text([product], 1), [a, b, c], "product")
    np.testing.assert_allclose(found, a[0] @ b[0], rtol=1e-5)

    finished = finished_matmul("finished", 6, 5, 4)
    (found,) = run(module_text([finished], 1), [a, b, c], "finished")
    np.testing.assert_allclose(found, finished.repeats * (a[0] @ b[0]) + c[0], rtol=1e-4, atol=1e-4)

    chain = elementwise("chain", 6, 5, ["arith.addf {x}, {y}"])
    (found,) = run(module_text([chain], 1), [c, np.full((1, 6, 5), 0.5, "f")], "chain")
    np.testing.assert_allclose(found, c[0] + 0.5 * chain.repeats, rtol=1e-5)

    parts = rng.standard_normal((2, 8), "f")
    for kind, expected in {
        "all_reduce": [parts.sum(0)] * 2,
        "all_gather": [parts.reshape(-1)] * 2,
        "reduce_scatter": list(parts.sum(0).reshape(2, 4)),
        "all_to_all": [np.concatenate([parts[0, 4 * i : 4 * i + 4], parts[1, 4 * i : 4 * i + 4]]) for i in range(2)],
    }.items():
        exchange = collective("exchange", kind, 8, 2)
        given = parts.reshape(2, *exchange.arguments[0][0])
        found_parts = run(module_text([exchange], 2), [given], "exchange", 2)
        for found_part, part in zip(found_parts, expected, strict=True):
            np.testing.assert_allclose(found_part.reshape(-1), part, rtol=1e-5)
