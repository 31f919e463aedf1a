# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What was aimed for, and whether it was reached, of what gpu_check.sh found: added to its JSON, and printed.

    python3 gpu_check_goals.py OUT.json [BUNDLE]

Needs nothing but Python. The simulator's prediction needs hyperparallel, and the machine's preset with the PCIe that was
measured, which is written beside the JSON: where the package is not installed, run this again on a machine that has it.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

TORCH_GOAL = 0.9
"""Of torch.compile's speed."""
EXPOSED_GOAL = 0.1
"""How far exposed transfers may be from what was predicted, relative."""
PRESET = "h200-node"


def median(found: dict[str, Any], part: str) -> float | None:
    """Seconds of a step; the first two are not counted where there are more."""
    seconds = (found.get(part) or {}).get("seconds") or []
    counted = sorted(seconds[2:] or seconds)
    return counted[len(counted) // 2] if counted else None


def goal(reached: bool | None, value: float | None, aim: str) -> dict[str, Any]:
    """One goal; ``reached`` is null where something was not measured."""
    return {"value": value, "goal": aim, "reached": reached}


def torch_goals(found: dict[str, Any]) -> dict[str, Any]:
    """Our speed in parts of torch's."""
    seconds = (found.get("torch") or {}).get("seconds") or {}
    goals: dict[str, Any] = {}
    for name, ours, theirs, least in (
        ("forward_of_torch_compile", "forward", "forward_compile", TORCH_GOAL),
        ("training_of_torch_compile", "training", "training_compile", TORCH_GOAL),
        ("training_half_memory_of_torch_offload", "training_half_memory", "training_offload", 1.0),
    ):
        own, other = median(found, ours), seconds.get(theirs)
        value = other / own if own and other else None
        goals[name] = goal(None if value is None else value >= least, value, f">= {least}")
    return goals


def measured_preset(found: dict[str, Any], target: Path) -> Path:
    """The machine's preset with the PCIe that was measured."""
    from hyperparallel import machines

    text = (Path(machines.__file__).parent / f"{PRESET}.yaml").read_text(encoding="utf-8")
    copies = found["copies"]
    for link, name in (("pool -> hbm", "to_device"), ("hbm -> pool", "from_device")):
        numbers = (
            f"    latency: {copies['latency_seconds'] * 1e6:.3f} us # M: gpu_check\n"
            f"    bandwidth: {copies[f'{name}_bytes_per_second'] / 1e9:.3f} GB/s # M: gpu_check\n"
        )
        text = re.sub(rf"(  {link}:[^\n]*\n)    latency:[^\n]*\n    bandwidth:[^\n]*\n", rf"\g<1>{numbers}", text)
    target.write_text(text.replace(f"name: {PRESET}", f"name: {PRESET}-measured"), encoding="utf-8")
    return target


def exposed_goal(found: dict[str, Any], out: Path, bundle: Path) -> dict[str, Any]:
    """Seconds that copies add to the forward pass, over those that the simulator predicts."""
    whole, half = median(found, "forward"), median(found, "half_memory")
    aim = f"within {EXPOSED_GOAL:.0%} of the prediction"
    if whole is None or half is None or not found.get("copies") or importlib.util.find_spec("hyperparallel") is None:
        return goal(None, None, aim)
    from hyperparallel import machines
    from hyperparallel.simulator import simulate_file

    preset = measured_preset(found, out.with_suffix(".machine.yaml"))
    program = bundle / "programs" / "half_memory" / "program.mlirbc"
    predicted = simulate_file(program, machine=machines.load(str(preset))).exposed.transfer
    if predicted is None:
        return goal(None, None, aim)
    value = (half - whole) / predicted if predicted else float(half > whole * (1 + EXPOSED_GOAL))
    told = goal(abs(value - 1) <= EXPOSED_GOAL if predicted else value == 0, value, aim)
    return {**told, "predicted_seconds": predicted, "measured_seconds": half - whole}


def main() -> None:
    out = Path(sys.argv[1])
    found = json.loads(out.read_text())
    goals = torch_goals(found)
    goals["exposed_transfer"] = exposed_goal(found, out, Path(sys.argv[2] if len(sys.argv) > 2 else out.parent))
    for name, told in goals.items():
        value = "not measured" if told["value"] is None else f"{told['value']:.3f}"
        answer = {True: "reached", False: "missed", None: "unknown"}[told["reached"]]
        print(f"{name}: {value} (goal: {told['goal']}): {answer}")
    out.write_text(json.dumps({**found, "goals": goals}, indent=1) + "\n")


if __name__ == "__main__":
    main()
