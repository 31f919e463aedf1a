# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fits the program of one device into a given memory, with the tiers below it, and proves that it does.

The planner counts values, the runtime counts buffers: after fusion there may be fewer of them, or some may live a
little longer. So a plan is lowered and its exact peak measured on the buffers that the program will allocate; if that is
above the limit, the program is planned again with that much less room. What is returned is the measured figure, which
the runtime measures again, byte for byte.

A call or a loop is one op to the planner. Where no plan exists, or where one has to wait for copies, the program is
planned again with iterations and parts of large calls as ops, and the faster plan is kept.

Where there is no plan at all, the error says a memory that is enough: one for which a plan was made and measured.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from mlir import ir
from mlir.passmanager import PassManager

from hyperparallel import machines
from hyperparallel.dialects import supernode
from hyperparallel.errors import CompilationError
from hyperparallel.pipeline import ENTRY, MLIRError, diagnostics_of, keep_program, reproduction, set_workspace

_ALIGNMENT = 64
_ATTEMPTS = 6
#: Of a plan's time, what may go to waiting for copies before calls are tried in parts.
_EXPOSED = 0.01
#: A plan that uses this part of the capacity is not planned again with more room.
_ENOUGH = 0.9
#: Parts of calls touch this part of the capacity.
_GRAINS = 8
#: Memories that are tried to say one that is enough: each at least what the last one was short of, and so much larger.
_PROBES = 4
_PROBE_ATTEMPTS = 3
_GROWTH = 1.15
_PEAK = "hp.peak_bytes"
LOWER_TO_CPU = "hp-lower-to-cpu"
LOWER_TO_DEVICE = "hp-lower-to-device"
LOWER_TO_FRAGMENTS = "hp-lower-to-fragments"
#: What stops where it is known what is allocated.
_MEASURE = {LOWER_TO_CPU: "hp-measure-memory"}
#: In the note of what offload-plan-transfers refuses.
_SMALLEST = re.compile(r"(\d+) bytes is the smallest capacity")
#: hp_tier of hp_runtime.h, in the order of the attribute.
_TIERS = ("device", "pinned", "host", "file")


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryPlan:
    """A program that fits.

    Attributes:
        module: The program of one device, with its transfers.
        capacity: Bytes of device memory that it was planned for.
        peak_bytes: The most that is resident on the device, arguments and results included; what a run measures.
        unplanned_peak_bytes: The same if nothing moved.
        figures: What ``offload-plan-transfers`` reports: times, bounds, moves.
        remarks: What it said of its choices.
    """

    module: ir.Module
    capacity: int
    peak_bytes: int
    unplanned_peak_bytes: int
    figures: Mapping[str, Any]
    remarks: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class _Asked:
    """What is to fit: a program, what its functions allocate, its name in messages, and how it may be planned."""

    program: ir.Module
    measured: Mapping[str, ir.Attribute]
    name: str
    recompute: bool
    lowering: str


class TooLittleMemoryError(CompilationError):
    """No plan exists.

    Attributes:
        needed: Bytes of device memory without which there can be none; None if something else is too small.
    """

    def __init__(
        self, message: str, *, needed: int | None, diagnostics: Sequence[str] = (), command: str | None = None
    ) -> None:
        super().__init__(message, diagnostics=diagnostics, pass_name="offload-plan-transfers", command=command)
        self.needed = needed


def parse_size(text: str) -> int:
    """Bytes of a size such as ``2GiB`` or ``500 MB``.

    Raises:
        ValueError: It is no size; the message says what was expected.
    """
    size = parse_amount(text)
    if size < 1:
        raise ValueError(f"expected a size from one byte to 4EiB but got `{text}`")
    return size


def parse_amount(text: str) -> int:
    """Bytes of a size, which may be none: ``0``, or as ``parse_size`` takes it.

    Raises:
        ValueError: It is no size; the message says what was expected.
    """
    from hyperparallel.machines import units

    size = 0 if text == "0" else units.parse(text, units.BYTES)
    if not 0 <= size < 2**62:
        raise ValueError(f"expected a size from one byte to 4EiB but got `{text}`")
    return int(size)


def fit_memory(
    module: ir.Module,
    capacity: int | None,
    name: str,
    placements: Mapping[str, str | None] | None = None,
    *,
    recompute: bool = True,
    lowering: str = LOWER_TO_CPU,
) -> MemoryPlan:
    """Plan a partitioned program so that it needs at most ``capacity`` bytes of device memory.

    Args:
        module: The local program of one device; not changed.
        capacity: Bytes; all that the module's machine has if None.
        name: What to call the program in messages.
        placements: The tier in which an argument is to live between steps, by ``hp.name``; None to keep it on the device.
        recompute: Compute a value again where that is faster than copying it.
        lowering: The pipeline that generates code, and says what it allocates.

    Raises:
        TooLittleMemoryError: No plan exists; says which op needs how much, and what is enough.
        CompilationError: No code can be generated.
    """
    measured = _peaks(module, lowering)
    base = _clone(module)
    if capacity is None:
        machine = supernode.machine_of(module) or machines.load("cpu-supernode")
        capacity = int(next(tier.capacity for tier in machine.tiers if tier.name == machine.groups[0].memory))
    _place(base, placements or {})
    asked = _Asked(base, measured, name, recompute, lowering)
    found: list[MemoryPlan] = []
    refusals: list[TooLittleMemoryError] = []
    for prepare in _preparations(capacity):
        try:
            candidate, peak, figures, remarks = _fit(asked, prepare, capacity)
        except TooLittleMemoryError as error:
            refusals.append(error)
            continue
        found.append(MemoryPlan(candidate, capacity, peak, device_peak(module, measured), figures, remarks))
        if figures["wait_in_s"] + figures["wait_out_s"] <= _EXPOSED * figures["step_s"]:
            break
    if found:
        return min(found, key=lambda plan: plan.figures["step_s"])
    if lowering == LOWER_TO_DEVICE and "hp.workspace" not in module.operation.attributes:
        return _fit_without_workspaces(module, capacity, name, placements, recompute)
    refusal = min(refusals, key=lambda error: error.needed or math.inf)
    enough = _find_enough(asked, refusal.needed)
    if enough is not None:
        refusal.message += f"; {enough} bytes are enough"
    if lowering == LOWER_TO_FRAGMENTS:
        refusal.message += "; what libraries may use beside operands is in it, and less of it with --workspace"
    raise refusal


def _fit_without_workspaces(
    module: ir.Module, capacity: int, name: str, placements: Mapping[str, str | None] | None, recompute: bool
) -> MemoryPlan:
    """A plan for products that do without, as cuBLASLt can: there may be one where there is none with workspaces."""
    lean = _clone(module)
    set_workspace(lean, 0)
    plan = fit_memory(lean, capacity, name, placements, recompute=recompute, lowering=LOWER_TO_DEVICE)
    told = f"products have no workspace: with one there is no plan for {capacity} bytes"
    return dataclasses.replace(plan, remarks=(told, *plan.remarks))


def _preparations(capacity: int) -> tuple[str, str]:
    """Passes before planning: calls and loops as one op each, and in parts."""
    grain = max(capacity // _GRAINS, 1)
    return (
        "hp-fuse",
        f"hp-fuse,offload-unroll-loops,canonicalize,cse,offload-split-calls{{grain={grain}}}",
    )


def _find_enough(asked: _Asked, needed: int | None) -> int | None:
    """A memory near the smallest for which there is a plan, from one that is known to be needed; None if none is found."""
    for _ in range(_PROBES):
        if needed is None:
            return None
        short: list[int] = []
        for prepare in _preparations(needed):
            try:
                _fit(asked, prepare, needed, _PROBE_ATTEMPTS)
            except TooLittleMemoryError as error:
                short += [] if error.needed is None else [error.needed]
            else:
                return needed
        needed = max(min(short), int(needed * _GROWTH)) if short else None
    return None


def _fit(
    asked: _Asked, prepare: str, capacity: int, attempts: int = _ATTEMPTS
) -> tuple[ir.Module, int, Mapping[str, Any], tuple[str, ...]]:
    """The program, made ready by some passes, planned with ever less room until what it allocates fits."""
    base, measured = _clone(asked.program), asked.measured
    functions = {_symbol(function) for function in _functions(base)}
    prepared = _listen(base, prepare)
    if {_symbol(function) for function in _functions(base)} != functions:
        measured = _peaks(base, asked.lowering)
    for function in _functions(base):
        peaks = measured.get(_symbol(function))
        if peaks is not None and _symbol(function) != ENTRY:
            function.attributes[_PEAK] = peaks
    room, peak = capacity, capacity
    # Rooms that are too small to plan in, that led to a program that fits, and to one that does not.
    too_little, fits, too_much = 0, 0, 0
    found: list[tuple[ir.Module, int, Mapping[str, Any], tuple[str, ...]]] = []
    for _ in range(attempts):
        try:
            candidate, figures, remarks = _plan(base, room, capacity, asked)
        except TooLittleMemoryError:
            if not too_much:
                raise
            too_little = room
            room = (max(too_little, fits) + too_much) // 2
            continue
        peak = device_peak(candidate, _peaks(candidate, asked.lowering))
        if peak <= capacity:
            found.append((candidate, peak, figures, (*prepared, *remarks)))
            # After much less room than there is, some of that may have been given up in vain.
            if not too_much or peak > _ENOUGH * capacity:
                break
            fits = room
            room = (fits + too_much) // 2
        else:
            too_much = room
            less = min(int(figures["peak_bytes"]), room) - (peak - capacity)
            room = max(less, (max(too_little, fits) + too_much) // 2 if too_little or fits else 0)
    if found:
        best = min(found, key=lambda one: one[2]["step_s"])
        for function in _functions(best[0]):
            if _PEAK in function.attributes:
                del function.attributes[_PEAK]
        return best
    raise TooLittleMemoryError(
        f"{asked.name} does not fit into {capacity} bytes of device memory: it needs {peak} once code is generated",
        needed=peak,
    )


def _listen(module: ir.Module, steps: str) -> tuple[str, ...]:
    """Run passes; what they remark."""
    remarks: list[str] = []

    def keep(diagnostic: Any) -> bool:
        if diagnostic.severity != ir.DiagnosticSeverity.REMARK:
            return False
        remarks.append(str(diagnostic.message))
        return True

    handler: Any = module.context.attach_diagnostic_handler(keep)
    try:
        _run(module, steps)
    finally:
        handler.detach()
    return tuple(remarks)


def _plan(
    base: ir.Module, room: int, capacity: int, asked: _Asked
) -> tuple[ir.Module, Mapping[str, Any], tuple[str, ...]]:
    candidate = _clone(base)
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
        report = Path(temporary) / "offload.json"
        steps = (
            f"offload-split-large-ops{{capacity={room}}},"
            f"offload-plan-transfers{{capacity={room} recompute={str(asked.recompute).lower()}{{report}}}},"
            "offload-insert-transfers,offload-verify-tiers"
        )
        try:
            remarks = _listen(candidate, steps.replace("{report}", f" report={report}"))
        except MLIRError as error:
            kept = keep_program(str(base), f"{asked.name}-partitioned")
            diagnostics = diagnostics_of(error)
            smallest = _SMALLEST.search("\n".join(diagnostics))
            raise TooLittleMemoryError(
                f"{asked.name} does not fit into {capacity} bytes of device memory",
                needed=None if smallest is None else int(smallest[1]),
                diagnostics=diagnostics,
                command=reproduction(kept, steps.replace("{report}", "")),
            ) from None
        return candidate, json.loads(report.read_text(encoding="utf-8")), remarks


def _place(module: ir.Module, placements: Mapping[str, str | None]) -> None:
    """Hang what a person asks for on the entry's arguments."""
    if not placements:
        return
    entry = next(function for function in _functions(module) if _symbol(function) == ENTRY)
    context = module.context
    described: list[ir.Attribute] = []
    for entry_attributes in cast("Any", ir.ArrayAttr(entry.attributes["arg_attrs"])):
        attributes = {named.name: named.attr for named in ir.DictAttr(entry_attributes)}
        name = ir.StringAttr(attributes["hp.name"]).value if "hp.name" in attributes else ""
        if name in placements:
            tier = placements[name]
            if tier is None:
                attributes["offload.keep"] = ir.UnitAttr.get(context)
            else:
                attributes["offload.place"] = ir.Attribute.parse(f'#offload.tier<"{tier}">', context)
        described.append(ir.DictAttr.get(attributes, context))
    entry.attributes["arg_attrs"] = ir.ArrayAttr.get(described, context)


def _forget_placements(module: ir.Module) -> None:
    """What a person asks for is about tensors, and the planner's; code is generated from the decisions."""
    for function in _functions(module):
        if "arg_attrs" not in function.attributes:
            continue
        kept = [
            ir.DictAttr.get(
                {
                    named.name: named.attr
                    for named in ir.DictAttr(entry)
                    if named.name not in ("offload.place", "offload.keep")
                },
                module.context,
            )
            for entry in cast("Any", ir.ArrayAttr(function.attributes["arg_attrs"]))
        ]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(kept, module.context)


def _run(module: ir.Module, steps: str) -> None:
    with module.context:
        PassManager.parse(f"builtin.module({steps})", module.context).run(module.operation)


def _clone(module: ir.Module) -> ir.Module:
    return ir.Module.parse(str(module.operation.get_asm(enable_debug_info=True)), module.context)


def _functions(module: ir.Module) -> list[ir.Operation]:
    return [op.operation for op in module.body.operations if "sym_name" in op.operation.attributes]


def _symbol(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _peaks(module: ir.Module, lowering: str = LOWER_TO_CPU) -> dict[str, ir.Attribute]:
    """What each function allocates once code is generated, by name."""
    lowered, steps = _clone(module), _MEASURE.get(lowering, lowering)
    _forget_placements(lowered)
    try:
        _run(lowered, steps)
    except MLIRError as error:
        kept = keep_program(str(module), "unmeasured")
        raise CompilationError(
            "the code generator refused the program",
            diagnostics=diagnostics_of(error),
            pass_name=steps,
            command=reproduction(kept, steps),
        ) from None
    return {
        _symbol(function): function.attributes[_PEAK]
        for function in _functions(lowered)
        if _PEAK in function.attributes
    }


def _result_attributes(function: ir.Operation) -> dict[int, set[str]]:
    """Names of the attributes of each result that has any."""
    if "res_attrs" not in function.attributes:
        return {}
    entries = cast("Any", ir.ArrayAttr(function.attributes["res_attrs"]))
    return {number: {named.name for named in ir.DictAttr(entry)} for number, entry in enumerate(entries)}


def _bytes(kind: ir.Type) -> int:
    tensor = ir.RankedTensorType(kind)
    element: Any = tensor.element_type
    width = 8 if isinstance(element, ir.IndexType) else (int(element.width) + 7) // 8
    size = width * math.prod(tensor.shape)
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def device_peak(module: ir.Module, measured: Mapping[str, ir.Attribute] | None = None) -> int:
    """The most that is on the device: what the entry allocates, and what its caller holds for it.

    Args:
        module: The program of one device.
        measured: What each function allocates, if that is known already.

    Raises:
        CompilationError: The code generator refuses the program, or it allocates what is known only when it runs.
    """
    peaks = (_peaks(module) if measured is None else measured).get(ENTRY)
    if peaks is None:
        raise CompilationError(
            "the program allocates what is known only when it runs, and cannot be planned for a limited memory; "
            "compile it without one",
            pass_name="hp-measure-buffers",
        )
    entry = next(function for function in _functions(module) if _symbol(function) == ENTRY)
    kind = ir.FunctionType(ir.TypeAttr(entry.attributes["function_type"]).value)
    # What is an argument's next value is where the argument is.
    attributes = _result_attributes(entry)
    results = [type_ for number, type_ in enumerate(kind.results) if "hp.updates" not in attributes.get(number, ())]
    held = [type_ for type_ in (*kind.inputs, *results) if tier_of(type_) is None]
    allocated = list(cast("Any", ir.DenseI64ArrayAttr(peaks)))[_TIERS.index("device")]
    return int(allocated) + sum(_bytes(type_) for type_ in held)


def tier_of(kind: ir.Type) -> str | None:
    """The tier that a tensor's type names; None for the device."""
    encoding = ir.RankedTensorType(kind).encoding
    if encoding is None:
        return None
    return str(encoding).removeprefix("#offload.tier<").removesuffix(">").strip('"')


__all__ = [
    "LOWER_TO_CPU",
    "LOWER_TO_DEVICE",
    "LOWER_TO_FRAGMENTS",
    "MemoryPlan",
    "TooLittleMemoryError",
    "device_peak",
    "fit_memory",
    "parse_amount",
    "parse_size",
    "tier_of",
]
