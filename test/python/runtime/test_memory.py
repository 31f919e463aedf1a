# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The books of the memory tiers are exact, and limits hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hyperparallel.errors import RuntimeFailure
from hyperparallel.runtime import Launch, Program, RunStatistics, Runtime, Tier

ORDER = list(Tier)


def allocate(
    program: Program, blocks: list[tuple[int, Tier]], keep: int = 0, argument_tiers: list[Tier] | None = None
) -> tuple[RunStatistics, list[int]]:
    words = np.array(
        [len(blocks), *(word for size, tier in blocks for word in (size, ORDER.index(tier))), keep], dtype=np.int64
    )
    result = np.full(64, -1, dtype=np.int64)
    statistics = program.run("allocates", [[words]], [[result]], argument_tiers=argument_tiers)
    return statistics, result[: len(blocks)].tolist()


def rounded(size: int) -> int:
    return max(64, -(-size // 64) * 64)


def test_peak_is_the_sum_of_aligned_sizes(programs: Path) -> None:
    sizes = [0, 1, 64, 65, 1000, 4097, 123_457, 9_000_000]
    with Runtime() as runtime:
        program = runtime.load(programs)
        statistics, offsets = allocate(program, [(size, Tier.DEVICE) for size in sizes])
        assert offsets == [0] * len(sizes)
        words_bytes = rounded(8 * (2 * len(sizes) + 2))
        assert statistics.peak_bytes == {Tier.DEVICE: sum(map(rounded, sizes)) + words_bytes + rounded(64 * 8)}
        assert statistics.leaked_bytes == 0
        assert statistics.devices[0].allocations == len(sizes)
        usage = runtime.tier(Tier.DEVICE)
        assert (usage.used, usage.limit) == (0, None)
        assert usage.peak == statistics.peak_bytes[Tier.DEVICE]


def test_tiers_are_separate_and_leaks_are_counted(programs: Path) -> None:
    with Runtime() as runtime:
        program = runtime.load(programs)
        blocks = [(1000, Tier.DEVICE), (5000, Tier.HOST), (100, Tier.PINNED), (777, Tier.HOST)]
        statistics, _ = allocate(program, blocks, keep=2, argument_tiers=[Tier.HOST])
        words_bytes = rounded(8 * (2 * len(blocks) + 2))
        assert statistics.peak_bytes == {
            Tier.DEVICE: rounded(1000) + 512,
            Tier.HOST: rounded(5000) + rounded(777) + words_bytes,
            Tier.PINNED: rounded(100),
        }
        leaked = statistics.devices[0].leaked_bytes
        assert leaked[Tier.PINNED] == rounded(100)
        assert leaked[Tier.HOST] == rounded(777)
        assert leaked[Tier.DEVICE] == 0
        assert runtime.tier(Tier.HOST).used == 0


@pytest.mark.parametrize("tier", [Tier.DEVICE, Tier.HOST])
def test_limits_hold_to_the_byte(tier: Tier, programs: Path) -> None:
    with Runtime() as runtime:
        program = runtime.load(programs)
        blocks = [(1000, tier), (3000, tier)]
        statistics, _ = allocate(program, blocks)
        peak = statistics.peak_bytes[tier]
        runtime.set_limit(tier, peak)
        assert allocate(program, blocks)[0].peak_bytes[tier] == peak
        runtime.set_limit(tier, peak - 1)
        with pytest.raises(RuntimeFailure, match=f"device 0: tier '{tier}' is full: asked for 3008 bytes") as caught:
            allocate(program, blocks)
        assert caught.value.status == "HP_OUT_OF_MEMORY"
        assert runtime.tier(tier).used == 0
        runtime.set_limit(tier, None)
        allocate(program, blocks)


def test_arguments_and_results_count(programs: Path) -> None:
    with Runtime(tier_limits={Tier.DEVICE: 4096}) as runtime:
        program = runtime.load(programs)
        with pytest.raises(RuntimeFailure, match="tier 'device' is full: asked for 8512 bytes"):
            runtime.run([Launch(program, "allocates", [np.zeros(1000)], [np.zeros(64, dtype=np.int64)])])


def test_an_array_that_is_argument_and_result_counts_once(programs: Path) -> None:
    with Runtime() as runtime:
        program = runtime.load(programs)
        array = np.zeros(64, dtype=np.int64)
        statistics = runtime.run([Launch(program, "allocates", [array], [array])])
        assert statistics.peak_bytes[Tier.DEVICE] == array.nbytes


def test_the_file_tier_is_refused(programs: Path) -> None:
    with Runtime() as runtime, pytest.raises(RuntimeFailure, match="no memory in tier 'file'") as caught:
        allocate(runtime.load(programs), [(64, Tier.FILE)])
    assert caught.value.status == "HP_UNIMPLEMENTED"


def test_an_impossible_allocation_is_an_error(programs: Path) -> None:
    with Runtime() as runtime, pytest.raises(RuntimeFailure, match="cannot allocate 4611686018427387904 bytes"):
        allocate(runtime.load(programs), [(1 << 62, Tier.DEVICE)])
