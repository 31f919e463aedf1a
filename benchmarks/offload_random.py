# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of drawn steps of at most 24 ops against the best there are, which constraint programming proves (OR-tools).

    python benchmarks/offload_random.py [--count 200] [--first 0] [--json]

A step whose best plan is not proven in time counts as the ratio to the bound that is proven for it, which is no better
than the truth, and `unproven` says how many these are.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import asdict, dataclass

from hyperparallel import offload
from hyperparallel.cli.console import Talk
from hyperparallel.testing import offload_oracles as oracles


@dataclass(frozen=True, slots=True)
class Row:
    """A step: its seed, its ops, what the plan and the best plan (or its bound) take, and how long proving it took."""

    seed: int
    ops: int
    step_s: float
    best_s: float
    proven: bool
    seconds: float

    @property
    def ratio(self) -> float:
        """How much longer the plan takes than the best."""
        return self.step_s / self.best_s


def measure(seed: int, problem: offload.Problem, limit: float, workers: int) -> Row:
    """Plans a step and looks for the best plan."""
    step = offload.plan(problem).seconds
    began = time.perf_counter()
    best, proven = oracles.best_seconds(problem, at_most=step, seconds=limit, workers=workers)
    return Row(seed, len(problem.operations), step, best, proven, time.perf_counter() - began)


def main() -> None:
    """Prints the summary, and the steps that are not planned best."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="steps to draw")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--seconds", type=float, default=120.0, help="to look for each best plan, at most")
    parser.add_argument("--workers", type=int, default=1, help="threads to look with")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    rows: list[Row] = []
    talk = Talk()
    with talk.step("plan"):
        for seed, problem in oracles.random_steps(arguments.count, arguments.first):
            rows.append(measure(seed, problem, arguments.seconds, arguments.workers))
            talk.advance(len(rows), arguments.count)
    ratios = [row.ratio for row in rows]
    summary = {
        "steps": len(rows),
        "mean": statistics.fmean(ratios),
        "worst": max(ratios),
        "best_found": sum(row.proven and row.ratio == 1 for row in rows),
        "unproven": sum(not row.proven for row in rows),
        "seconds": sum(row.seconds for row in rows),
    }
    if arguments.json:
        print(json.dumps({**summary, "rows": [asdict(row) for row in rows]}, indent=1))
        return
    print(
        "{steps} steps: mean {mean:.4f}, worst {worst:.4f} of the best; {best_found} are best, {unproven} unproven; "
        "{seconds:.0f} s".format(**summary)
    )
    for row in rows:
        if row.ratio > 1:
            proof = "" if row.proven else " at least"
            print(f"  seed {row.seed} ({row.ops} ops): {row.step_s:g} s, best{proof} {row.best_s:g} s, {row.ratio:.4f}")


if __name__ == "__main__":
    main()
