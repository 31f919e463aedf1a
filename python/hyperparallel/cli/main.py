# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The entry of ``hp``: reads the arguments, runs a command, turns what it raises into a message and an exit status.

Exit status: 0 all is well; 1 something handed in is at fault (one message, no traceback); 2 wrong usage; 3 a defect of
HyperParallel (with the traceback); 130 and 143 when a signal ended it.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from hyperparallel import __version__
from hyperparallel.cli import commands, feeding, launching, machine, report, running, schedule, simulate
from hyperparallel.cli.cost import cost_command
from hyperparallel.errors import HyperParallelError

_FAULT_OF_INPUT = 1
_DEFECT = 3
_REFUSED = {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC}


class Terminated(BaseException):
    """The process was asked to end; carries the signal's number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run ``hp`` and leave the process."""
    arguments = _parser().parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminate)
    status = _run(arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.stderr.flush()
    raise SystemExit(status)


def _terminate(number: int, _frame: FrameType | None) -> None:
    raise Terminated(number)


def _run(arguments: argparse.Namespace) -> int:
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        return command(arguments)
    except HyperParallelError as error:
        print(f"hp: error: {error}", file=sys.stderr)
        return _FAULT_OF_INPUT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # A path of the user's that cannot be: too long, below a file, not allowed, on a full disk.
        # A write says which file it was less often than that the disk is full.
        if error.errno not in _REFUSED or (error.filename is None and error.errno != errno.ENOSPC):
            return _defect()
        print(f"hp: error: {error.filename or 'writing'}: {error.strerror}", file=sys.stderr)
        return _FAULT_OF_INPUT
    except KeyboardInterrupt:
        print("hp: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except Terminated as ended:
        print(f"hp: ended by {signal.Signals(ended.number).name}", file=sys.stderr)
        return 128 + ended.number
    except Exception:
        return _defect()


def _defect() -> int:
    traceback.print_exc()
    print("hp: this is a defect of HyperParallel; please report it with the text above", file=sys.stderr)
    return _DEFECT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hp",
        description="From a PyTorch model to one checked program for a whole supernode.",
        epilog="hp COMMAND --help tells more. A MODEL is a Python file with build(), or a directory that "
        "hp import made.",
    )
    parser.add_argument("--version", action="version", version=f"hp {__version__}")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    verb = _verb(verbs, "import", commands.import_command, "import a PyTorch model: program, weights, example inputs")
    verb.add_argument("model", type=_path, metavar="MODEL.py", help="a Python file with build()")
    verb.add_argument("-o", "--output", type=_path, required=True, metavar="DIR", help="the directory to make")
    verb.add_argument("--flat", action="store_true", help="one function, instead of one for each distinct block")
    verb.add_argument("--train", action="store_true", help="refuse a model file that does not say how it is trained")
    _model_options(verb)

    verb = _verb(verbs, "plan", commands.plan_command, "fit a plan to a model and say what each rule matched")
    verb.add_argument("model", type=_path, metavar="MODEL")
    verb.add_argument("--explain", action="store_true", help="what each rule matched, in words (the default)")
    verb.add_argument("--resolved", action="store_true", help="the JSON that hypershard-apply-plan reads")
    verb.add_argument("--all", action="store_true", help="list every tensor, not one of each kind")
    verb.add_argument(
        "--machine",
        metavar="MACHINE",
        help="say when fetching what the plan places in a tier costs nothing on it: a preset or a YAML file",
    )
    _memory_option(verb)
    _plan_options(verb)
    _model_options(verb)

    verb = _verb(verbs, "compile", commands.compile_command, "compile a model for a mesh of devices")
    verb.add_argument("model", type=_path, metavar="MODEL")
    verb.add_argument("-o", "--output", type=_path, required=True, metavar="DIR", help="the directory to make")
    verb.add_argument("--dump-ir", action="store_true", help="keep the IR after each phase in DIR/ir")
    verb.add_argument(
        "--machine",
        metavar="MACHINE",
        help="what collectives are chosen by: a preset, NAME@DEVICES for one of another size, or a YAML file",
    )
    verb.add_argument(
        "--target",
        choices=["cpu", "cuda", "ascend", "none"],
        default="cpu",
        help="what code is generated for (default cpu); with none the program can be simulated, not run",
    )
    verb.add_argument(
        "--arch",
        metavar="LIST",
        help="GPU architectures for the target cuda, such as sm_80,sm_90,sm_100 (default sm_90)",
    )
    verb.add_argument(
        "--soc",
        metavar="CHIP",
        help="the chip for the target ascend, as Ascend's compiler spells it (default Ascend910B1)",
    )
    verb.add_argument(
        "--workspace",
        type=_amount,
        metavar="SIZE",
        help="memory that each call of a vendor's library may use beside its operands, such as 16MiB, or 0, with the "
        "targets cuda and ascend (default what the operands and results of the call take, at most 32MiB)",
    )
    verb.add_argument(
        "--steps",
        type=_count,
        metavar="N",
        help="keep batches and learning rates of the first N steps beside the program, for hp-run",
    )
    _memory_option(verb)
    _plan_options(verb)
    _model_options(verb)

    verb = _verb(verbs, "run", running.run_command, "run a model on virtual devices, compiling it first if need be")
    verb.add_argument("model", type=_path, metavar="MODEL", help="a MODEL, or a directory that hp compile made")
    verb.add_argument("--check", action="store_true", help="compare the results with PyTorch's")
    verb.add_argument(
        "--tolerance", type=_positive, default=1e-4, metavar="X", help="largest relative error (default 1e-4)"
    )
    verb.add_argument("--repeat", type=_count, default=1, metavar="N", help="run N times; the last one is reported")
    verb.add_argument("--steps", type=_count, metavar="N", help="train for N steps, or generate N tokens (default 1)")
    verb.add_argument("--inputs", type=_path, metavar="FILE.npz", help="inputs by name, instead of the example inputs")
    verb.add_argument("--results", type=_path, metavar="FILE.npz", help="write the results here")
    verb.add_argument(
        "--trace", type=_path, metavar="FILE.json", help="write a trace of the run here (Chrome, Perfetto)"
    )
    verb.add_argument(
        "--timeline", type=_path, metavar="FILE.json", help="write what each device did here, for hp report"
    )
    verb.add_argument("--threads", type=_count, metavar="N", help="cores to share out over the devices (default: all)")
    feeding.add_arguments(verb)
    launching.add_arguments(verb)
    _memory_option(verb)
    _plan_options(verb)
    _model_options(verb)

    text = "machine descriptions: list, show, check, or measure the one at hand"
    machine.add_arguments(verbs.add_parser("machine", help=text, description=text[0].upper() + text[1:] + "."))

    verb = _verb(verbs, "cost", cost_command, "tabulate what a program costs on a machine, op by op")
    verb.add_argument("program", type=_path, metavar="PROGRAM", help="a file of MLIR, or a directory of hp compile")
    verb.add_argument("--machine", metavar="MACHINE", help="a preset or a YAML file; instead of the program's own")

    verb = _verb(
        verbs, "simulate", simulate.simulate_command, "simulate a compiled program on a machine, seen or unseen"
    )
    verb.add_argument(
        "program", type=_path, metavar="PROGRAM", help="a directory that hp compile made, or an MLIR file"
    )
    verb.add_argument(
        "--machine",
        metavar="MACHINE",
        help="a preset, NAME@DEVICES for one of another size, or a YAML file; instead of the program's own",
    )
    verb.add_argument("-o", "--output", type=_path, metavar="FILE.json", help="write the timeline here")
    verb.add_argument(
        "--noise", type=_positive, default=0.0, metavar="X", help="vary every time by up to this part, below 1"
    )
    verb.add_argument("--seed", type=_seed, default=0, metavar="N", help="of the noise (default 0)")

    schedule.add_arguments(
        _verb(verbs, "schedule", schedule.schedule_command, "draw a pipeline schedule and say what it costs")
    )

    verb = _verb(verbs, "import-trace", simulate.import_trace_command, "turn a recorded step into a program of tasks")
    verb.add_argument("trace", type=_path, metavar="FILE.json.gz", help="a recorded step, gzipped or not")
    verb.add_argument("-o", "--output", type=_path, required=True, metavar="FILE.mlir", help="the program to write")

    verb = _verb(verbs, "report", report.report_command, "show a simulated or measured step, or two side by side")
    verb.add_argument("input", type=_path, metavar="INPUT", help="a compiled DIR, a timeline, or a trace")
    verb.add_argument("other", type=_path, nargs="?", metavar="INPUT2", help="what to compare it with")
    verb.add_argument("-o", "--output", type=_path, metavar="FILE.html", help="write a page here")
    verb.add_argument("--machine", metavar="NAME", help="simulate a DIR on this preset or machine file, not its own")
    verb.add_argument("--perfetto", type=_path, metavar="FILE.json.gz", help="write a trace for Perfetto here")

    _verb(verbs, "doctor", commands.doctor_command, "check that everything that is needed is there")
    _verb(verbs, "version", commands.version_command, "print the versions of the package and of what it stands on")
    return parser


def _verb(verbs: Any, name: str, command: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    verb.set_defaults(command=command)
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.add_argument("-q", "--quiet", action="store_true", help="say nothing on stderr but errors")
    return verb


def _model_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--model-arg",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an argument of the model file's build(); may be repeated",
    )
    verb.add_argument("--no-cache", action="store_true", help="neither use nor keep earlier imports and programs")


def _plan_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--plan", metavar="PLAN", help="a plan file, or the name of a preset; without either, one device does all"
    )
    verb.add_argument(
        "--preset", metavar="NAME", help="megatron, fsdp or data_parallel; a plan's own rules override it"
    )
    verb.add_argument("--mesh", metavar="AXES", help="axes and sizes, such as dp=2,tp=2; instead of the plan's own")
    verb.add_argument("--devices", type=_count, metavar="N", help="refuse a mesh that does not use N devices")


def _memory_option(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--device-memory",
        type=_size,
        metavar="SIZE",
        help="memory of each device, such as 2GiB: what does not fit lives in the tiers below and is fetched in time",
    )


def _amount(text: str) -> int:
    from hyperparallel.memory import parse_amount

    return _bytes(text, parse_amount)


def _size(text: str) -> int:
    from hyperparallel.memory import parse_size

    return _bytes(text, parse_size)


def _bytes(text: str, parse: Callable[[str], int]) -> int:
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("expected a path but got nothing")
    return Path(text)


def _seed(text: str) -> int:
    value = int(text)
    if not 0 <= value < 2**64:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 2^64 - 1 but got {text}")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1 but got {text}")
    return value


def _positive(text: str) -> float:
    value = float(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"expected a number of at least 0 but got {text}")
    return value


if __name__ == "__main__":
    main()
