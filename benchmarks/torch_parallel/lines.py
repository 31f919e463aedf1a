# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much a person writes for a parallel configuration: a plan here, a script with PyTorch's own parallelism there.

python benchmarks/torch_parallel/lines.py
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = (
    *("data_parallel", "tensor_parallel", "fully_sharded", "expert_parallel"),
    *("pipeline", "pipeline_tensor", "pipeline_sharded"),
)


def parallel_lines(script: str) -> int:
    """Lines of a script that are about the parallel configuration, with the stage that it imports.

    Empty lines, comments and docstrings do not count.
    """
    counted, inside = 0, False
    for line in (HERE / f"{script}.py").read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text.startswith(("# parallel:", "# end")):
            inside = text.startswith("# parallel:")
        elif inside and text and not text.startswith(("#", '"""')):
            counted += 1 + (parallel_lines("stages") if text == "from stages import Stage" else 0)
    return counted


def plan_lines(script: str) -> int:
    """Lines of the plan for the same configuration; empty lines and comments do not count."""
    lines = (HERE / f"{script}.yaml").read_text(encoding="utf-8").splitlines()
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in lines)


def main() -> None:
    """Print a table."""
    print(f"{'configuration':18}{'plan':>6}{'PyTorch':>9}{'share':>7}")
    for script in SCRIPTS:
        ours, theirs = plan_lines(script), parallel_lines(script)
        print(f"{script.replace('_', ' '):18}{ours:6}{theirs:9}{ours / theirs:7.0%}")


if __name__ == "__main__":
    main()
