# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp machine``: list, show, check and measure machine descriptions."""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from hyperparallel.cli.console import Talk
from hyperparallel.errors import HyperParallelError
from hyperparallel.machines import Machine


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """The actions of ``hp machine`` and their options."""
    actions = verb.add_subparsers(title="actions", metavar="ACTION", required=True)

    def action(name: str, command: Any, text: str) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        parser.set_defaults(command=command)
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("-q", "--quiet", action="store_true", help="say nothing on stderr but errors")
        return parser

    action("list", list_command, "list the presets")
    for name, command, text in (
        ("show", show_command, "print a machine, each number with what it stands on"),
        ("check", check_command, "check a machine file, and sum it up in a line"),
    ):
        action(name, command, text).add_argument(
            "machine", metavar="MACHINE", help="the name of a preset, or a YAML file"
        )
    parser = action("calibrate", calibrate_command, "measure this machine's rates, copies and collectives")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.yaml", help="the file to write")
    parser.add_argument("--quick", action="store_true", help="measure less, in seconds instead of a minute")


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in cast("tuple[Any, ...]", value)]
    return value


def machine_json(machine: Machine) -> dict[str, Any]:
    """A machine as plain numbers in SI units, ready for ``json.dumps``."""
    return _plain(machine)


def list_command(arguments: argparse.Namespace) -> int:
    """``hp machine list``."""
    from hyperparallel import machines

    names = machines.preset_names()
    if arguments.json:
        print(json.dumps([{"name": name, "summary": machines.check(name)} for name in names], indent=1))
    else:
        print("\n".join(machines.check(name) for name in names))
    return 0


def show_command(arguments: argparse.Namespace) -> int:
    """``hp machine show``."""
    from hyperparallel import machines

    if arguments.json:
        print(json.dumps(machine_json(machines.load(arguments.machine)), indent=1))
    else:
        print(machines.show(arguments.machine), end="")
    return 0


def check_command(arguments: argparse.Namespace) -> int:
    """``hp machine check``."""
    from hyperparallel import machines

    summary = machines.check(arguments.machine)
    if arguments.json:
        print(json.dumps({"ok": True, "machine": machines.load(arguments.machine).name, "summary": summary}))
    else:
        print(summary)
    return 0


def calibrate_command(arguments: argparse.Namespace) -> int:
    """``hp machine calibrate``."""
    from hyperparallel.calibration import calibrate, calibration_text

    output: Path = arguments.output
    if not output.parent.is_dir():
        raise HyperParallelError(f"cannot write {output}: {output.parent} is no directory; make it first")
    talk = Talk(arguments.quiet)
    talk.say("Measuring this machine; let nothing else run on it")
    begin = time.perf_counter()
    shown = ""

    def progress(done: int, total: int, label: str) -> None:
        nonlocal shown
        if label != shown:
            talk.begin(f"Measuring {label}")
            shown = label
        talk.advance(done, total)

    try:
        calibration = calibrate(output.stem, quick=arguments.quick, progress=progress)
    finally:
        talk.end()
    try:
        output.write_text(calibration_text(calibration), encoding="utf-8")
    except OSError as error:
        raise HyperParallelError(f"cannot write {output}: {error.strerror}") from None
    if arguments.json:
        seconds = time.perf_counter() - begin
        print(json.dumps({"file": str(output), "machine": machine_json(calibration.machine), "seconds": seconds}))
    else:
        print(output)
    return 0


__all__ = ["add_arguments", "calibrate_command", "check_command", "list_command", "machine_json", "show_command"]
