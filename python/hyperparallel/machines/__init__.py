# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine descriptions: presets and YAML files.

``hyperparallel.dialects.supernode`` turns them into ``#supernode.machine`` and back; this package needs no MLIR.

Example:
    >>> from hyperparallel import machines
    >>> machines.preset_names()
    ('a3-node', 'atlas950', 'cloudmatrix384', 'cpu-supernode', 'gb200-nvl72', 'h200-node')
    >>> machines.load("cloudmatrix384").num_devices
    768
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hyperparallel.machines.description import (
    Algorithm,
    Cores,
    DeviceGroup,
    Level,
    Link,
    Machine,
    Segment,
    Tier,
)
from hyperparallel.machines.errors import MachineError
from hyperparallel.machines.reading import parse_yaml
from hyperparallel.machines.resizing import resized
from hyperparallel.machines.writing import attribute_text, yaml_text

_PRESETS = Path(__file__).parent


@cache
def preset_names() -> tuple[str, ...]:
    """Names of the machines that come with the package, sorted."""
    return tuple(sorted(path.stem for path in _PRESETS.glob("*.yaml")))


def load(source: str | Path) -> Machine:
    """A machine by the name of its preset, or from a YAML file.

    Args:
        source: A preset's name, or the path of a file (anything with a suffix or a directory). With ``@1024`` behind
            it, the machine has that many devices (see :func:`resized`).

    Raises:
        MachineError: There is no such preset or file, the file is no machine, or it cannot have that many devices.
    """
    name, at, devices = str(source).rpartition("@")
    if at and devices.isdigit() and not Path(source).exists():
        machine = load(name)
        try:
            return resized(machine, int(devices))
        except ValueError as error:
            raise MachineError(str(error), path=str(source)) from None
    path = Path(source)
    if str(source) in preset_names():
        path = _PRESETS / f"{source}.yaml"
    elif not path.suffix and len(path.parts) == 1 and not path.exists():
        raise MachineError(
            f"expected the name of a preset ({', '.join(preset_names())}) or a YAML file", path=str(source)
        )
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise MachineError("expected YAML text but got a binary file", path=str(path)) from None
    except OSError as error:
        raise MachineError(f"cannot read the file: {error.strerror}", path=str(path)) from None
    return parse_yaml(text, path=str(path))


def show(source: str | Path) -> str:
    """What ``hp machine show`` prints: the file of a preset with the standing of its numbers, or a file made canonical.

    Raises:
        MachineError: As :func:`load`.
    """
    machine = load(source)
    if str(source) in preset_names():
        return (_PRESETS / f"{source}.yaml").read_text(encoding="utf-8")
    return yaml_text(machine)


def check(source: str | Path) -> str:
    """What ``hp machine check`` prints for a good machine: one line that sums it up.

    Raises:
        MachineError: As :func:`load`.
    """
    machine = load(source)
    groups = ", ".join(f"{group.count} x {group.name}" for group in machine.groups)
    tiers = ", ".join(tier.name for tier in machine.tiers)
    return f"{machine.name}: {groups}; {len(machine.levels)} network levels; tiers {tiers}; {len(machine.links)} links"


__all__ = [
    "Algorithm",
    "Cores",
    "DeviceGroup",
    "Level",
    "Link",
    "Machine",
    "MachineError",
    "Segment",
    "Tier",
    "attribute_text",
    "check",
    "load",
    "parse_yaml",
    "preset_names",
    "resized",
    "show",
    "yaml_text",
]
