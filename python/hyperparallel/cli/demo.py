# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``make demo``: GPT-2 small, sharded over four virtual devices by a plan of a few lines, and compared with PyTorch."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def _find_examples() -> Path:
    """The examples of the source tree that this package is in, or of the current directory."""
    for root in (Path(__file__).resolve().parents[3], Path.cwd()):
        if (root / "examples" / "gpt2.py").exists():
            return root / "examples"
    raise SystemExit("demo: error: no examples/gpt2.py here; run it from a clone of the repository")


def _hp(*words: str) -> str:
    """Show a command as a person would type it, run it, and return what it prints."""
    print(f"\n$ hp {shlex.join(words)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "hyperparallel.cli.main", *words], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(done.stdout, end="")
        raise SystemExit(done.returncode)
    return done.stdout


def _indent(text: str, lines: int | None = None) -> str:
    shown = text.rstrip().splitlines()
    cut = shown[:lines]
    more = [f"... {len(shown) - len(cut)} lines more"] if len(cut) < len(shown) else []
    return "\n".join(f"    {line}" for line in cut + more)


def main() -> None:
    """Tell the story, with the real commands and their real output."""
    examples = _find_examples()
    model, plan = str(examples / "gpt2.py"), examples / "gpt2.yaml"
    if examples.parent == Path.cwd():
        model, plan = "examples/gpt2.py", Path("examples/gpt2.yaml")
    begin = time.perf_counter()
    print("GPT-2 small (12 layers, width 768, 50,257 words) with random weights, batch 4, 64 tokens each.")
    print(f"Four devices: dp=2 splits the batch, tp=2 splits the matrices. The plan, {plan}:\n")
    print(_indent(plan.read_text(encoding="utf-8")))
    print("\n1. What does each rule match, and what does a device hold?")
    print(_indent(_hp("plan", model, "--plan", str(plan), "--mesh", "dp=2,tp=2", "-q"), 24))
    print(
        "\n2. Import, propagate shardings, place collectives, partition, generate code, run on four devices, compare."
    )
    words = ("run", model, "--plan", str(plan), "--mesh", "dp=2,tp=2", "--check", "--json")
    report: dict[str, Any] = json.loads(_hp(*words))
    print(_indent(_story(report)))
    print("\n3. Another layout is another word. Parameters stored in quarters, gathered where a layer needs them:")
    other: dict[str, Any] = json.loads(
        _hp("run", model, "--preset", "fsdp", "--mesh", "dp=4", "--check", "--json", "-q")
    )
    print(_indent(_story(other)))
    print(f"\nDone in {time.perf_counter() - begin:.0f} s. Next: docs/Tour.md, and hp --help.")


def _story(report: dict[str, Any]) -> str:
    from hyperparallel.plan import format_bytes

    seconds = report["seconds"]
    phases = ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items() if name != "total" and value >= 0.05)
    lines = [
        f"equal to PyTorch: {report['ok']} (max relative error {report['max_rel_error']:.1e})",
        *(
            f"{kind}: {count} for each device, {format_bytes(report['moved_bytes'].get(kind, 0))} moved in all"
            for kind, count in report["collectives"].items()
        ),
        f"memory: {format_bytes(max(report['peak_bytes_per_device']))} at the peak of a device",
        f"one step: {report['run_seconds'][-1] * 1e3:.0f} ms",
        f"time: {phases}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
