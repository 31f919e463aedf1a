# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices spread over processes get the same bits as devices of one process; what goes wrong is told by all ranks."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from runtime_cases import Axes, axes_words, size_of

from hyperparallel.runtime import find_library

ROOT = Path(__file__).resolve().parents[3]
MPIEXEC = Path(sys.prefix) / "bin" / "mpiexec"
MPI = Path(sys.prefix) / "lib" / "libmpi_abi.so.1"
F32, SUM, AVG = 7, 0, 6

pytestmark = pytest.mark.skipif(not MPI.exists(), reason="mpich is not installed")


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver, built against the public header alone."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    target = tmp_path_factory.mktemp("spread") / "spread"
    library = find_library()
    source = ROOT / "test" / "Runtime" / "spread.c"
    flags = ["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}", f"-Wl,-rpath,{library.parent}"]
    subprocess.run([compiler, *flags, str(source), "-o", str(target), str(library)], check=True)
    return target


def case(entry: str, in_bytes: int, out_bytes: int, *words: int) -> str:
    return " ".join(map(str, (entry, in_bytes, out_bytes, *words)))


def cases(axes: Axes, other: Axes) -> list[str]:
    """Every collective along ``axes``, small and large, at once and started early."""
    group, words = size_of(axes), axes_words(axes)
    lines: list[str] = []
    for later in (0, 1):
        for outer, dim, inner in ((1, 3, 2), (3, 2, 5), (2, 100, 40)):
            count = outer * dim * inner
            lines.append(case("all_gather", 4 * count, 4 * count * group, later, outer, dim, inner, F32, *words))
            lines.append(
                case("reduce_scatter", 4 * count * group, 4 * count, later, outer, dim, inner, F32, SUM, *words)
            )
        for count in (1, 7, 1500, 40001):
            for in_place in (0, 1):
                lines.append(case("all_reduce", 4 * count, 4 * count, later, count, F32, AVG, in_place, *words))
        for split, concat in ((0, 1), (1, 0), (1, 2), (2, 1), (1, 1)):
            shape = [2 * group, 3 * group, 4 * group, 1]
            size = 4 * 24 * group**3
            lines.append(case("all_to_all", size, size, later, split, concat, 4, 3, *shape, *words))
        lines.append(case("permute", 4000, 4000, later, 4000, *words, *axes_words(other)))
    for stride, lo, size in ((3, -1, 5), (3, 0, 3), (2, -2, 4), (3, -4, 11)):
        block = 3
        lines.append(
            case("halo_exchange", 2 * block * 8, 2 * size * 8, 2, block, 8, block * group - 1, stride, lo, size, *words)
        )
    lines.append(case("mixes_sizes", 160000, 160000, 20, *words))
    return lines


def run(command: list[str]) -> list[str]:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return sorted(ran.stdout.splitlines())


@pytest.mark.parametrize(("devices", "processes"), [(4, (4, 2, 3)), (6, (3,))], ids=["4 devices", "6 devices"])
def test_every_collective_gives_the_same_bits(
    devices: int, processes: tuple[int, ...], spread: Path, programs: Path, tmp_path: Path
) -> None:
    if devices == 4:
        lines = (
            cases(((1, 4),), ((1, 4),))
            + cases(((2, 2),), ((1, 2),))
            + cases(((1, 2),), ((2, 2),))
            + cases(((1, 2), (2, 2)), ((2, 2), (1, 2)))
            + [case("overlapped", 32, 32 * 20, 20, 1, 2, 2, 1, 1, 2)]
        )
    else:
        lines = cases(((1, 3),), ((1, 3),)) + cases(((3, 2),), ((3, 2),))
    lines.append(case("ring", 64, 64, devices))
    (tmp_path / "cases").write_text("\n".join(lines) + "\n")
    command = [str(spread), str(programs), str(tmp_path / "cases"), str(devices)]
    expected = run(command)
    assert len(expected) == len(lines) * devices
    for count in processes:
        assert run([str(MPIEXEC), "-n", str(count), *command, str(MPI)]) == expected


def fails(command: list[str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode != 0
    return ran.stderr


def spread_command(spread: Path, programs: Path, tmp_path: Path, line: str, devices: int = 2) -> list[str]:
    (tmp_path / "cases").write_text(line + "\n")
    return [
        *(str(MPIEXEC), "-disable-auto-cleanup", "-n", str(devices)),
        *(str(spread), str(programs), str(tmp_path / "cases"), str(devices), str(MPI)),
    ]


def test_a_deadlock_over_processes_is_found(spread: Path, programs: Path, tmp_path: Path) -> None:
    said = fails(spread_command(spread, programs, tmp_path, case("lost_message", 64, 64, 0)))
    assert "deadlock: the devices wait for each other forever" in said
    assert "device 0 waits in recv of 32 bytes from device 1 with tag 5" in said


def test_what_does_not_match_is_told_as_in_one_process(spread: Path, programs: Path, tmp_path: Path) -> None:
    said = fails(spread_command(spread, programs, tmp_path, case("different_sizes", 64, 64, 1, 1, 2)))
    assert "collectives do not match in the group of devices {0, 1}: device 0 calls all_reduce sum of 8 x f32" in said
    assert "but device 1 calls all_reduce sum of 4 x f32" in said


def test_a_failure_is_told_to_all(spread: Path, programs: Path, tmp_path: Path) -> None:
    said = fails(spread_command(spread, programs, tmp_path, case("asserts", 64, 64, 1, 1, 2, 1)))
    assert "program error: device 1: assertion failed: index out of bounds" in said
    assert "cancelled: rank 1 failed: device 1: assertion failed: index out of bounds" in said
    # Device 0 has begun, or 'before' would not have ended on device 1; how far it came is its own affair.
    waiting = "waits in all_reduce sum of 8 x f32 '(before|after)' in the group of devices {0, 1}, for device 1"
    assert re.search(rf"\n  device 0 ({waiting}|is at work)\n", said)


def test_more_processes_than_devices_are_refused(spread: Path, programs: Path, tmp_path: Path) -> None:
    command = spread_command(spread, programs, tmp_path, case("ring", 64, 64, 2))
    command[command.index("-n") + 1] = "3"
    assert "expected a device for each of 3 processes but got 2 devices" in fails(command)
