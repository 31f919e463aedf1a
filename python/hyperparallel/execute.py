# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a compiled program on virtual devices: cuts the global arrays, runs, puts the results together."""

from __future__ import annotations

import dataclasses
import math
import time
import zipfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hyperparallel.compiled import INPUTS_FILE, WEIGHTS_FILE, CompiledProgram, CompiledTensor, Target
from hyperparallel.enums import Role
from hyperparallel.errors import RuntimeFailure
from hyperparallel.feed import Feed
from hyperparallel.local_parts import disagreement, join_array, split_array
from hyperparallel.runtime import Launch, RunStatistics, Runtime, Tier, bfloat16_to_float32, empty, numpy_dtype

Array = NDArray[Any]


@dataclasses.dataclass(frozen=True, slots=True)
class RunResult:
    """What a run gave.

    Attributes:
        results: Global results by name; bf16 as its bits in ``uint16``.
        statistics: The last run's statistics.
        wall_seconds: Wall time of each run, in order.
        losses: The first result of every run, of a program that updates its arguments, where that is a single number.
        first_step: The steps that were done before, by what the run went on from.
        masked_communication: Of a run with a trace: the part of communication that is hidden behind kernels
            (``hyperparallel.simulator.timeline``); None if it is not known, or nothing communicated.
    """

    results: Mapping[str, Array]
    statistics: RunStatistics
    wall_seconds: tuple[float, ...]
    losses: tuple[float, ...] = ()
    first_step: int = 0
    masked_communication: float | None = None


def _numpy_type(tensor: CompiledTensor) -> np.dtype[Any]:
    return np.dtype(np.uint8) if tensor.dtype == "ui8" else numpy_dtype(tensor.dtype)


def run_compiled(
    program: CompiledProgram,
    values: Mapping[str, Array] | Callable[[str], Array],
    *,
    repeat: int = 1,
    threads: int | None = None,
    trace: Path | None = None,
    device_memory: int | None = None,
    after_step: Callable[[int, list[Launch]], None] | None = None,
    feed: Feed | None = None,
    first_step: int = 0,
    graphs: bool = True,
    tf32: bool = False,
) -> RunResult:
    """Run a compiled program.

    What a program updates stays on the devices from run to run: a training step that is repeated is a training, with
    the batches of ``feed``, or the same one each time.

    Args:
        program: The program.
        values: The global value of each argument: by name, or a function from names.
        repeat: How often to run it.
        threads: Cores to share out over the devices; all if None.
        trace: A file that gets the trace of the last run.
        device_memory: Bytes that each device may use; what the program was planned for if None.
        after_step: Called after each run with its number, from 1, and the launches, which hold what was updated.
        feed: What the inputs that it names are in each step, instead of ``values``.
        first_step: The steps that were done before, by what the run goes on from.
        graphs: Let GPUs and NPUs capture a step the second time, and replay it from then on.
        tf32: Let GPUs round the operands of products in f32 to 10 bits, which is faster.

    Raises:
        RuntimeFailure: If a value is missing or does not fit, or the run fails.
    """
    backend = str(program.target) if program.target in (Target.CUDA, Target.ASCEND) else "cpu"
    with Runtime(program.mesh.num_devices, backend=backend, threads=threads, graphs=graphs, tf32=tf32) as runtime:
        for one in program.programs or (program,):
            limit = one.device_memory if device_memory is None else device_memory
            for device in _devices_of(one):
                runtime.set_limit(Tier.DEVICE, limit, device=device)
        fed = feed(first_step) if feed is not None else {}
        launches = program_launches(runtime, program, _first(fed, values), own=fed)
        seconds: list[float] = []
        losses: list[float] = []
        statistics: RunStatistics | None = None
        for turn in range(max(1, repeat)):
            if feed is not None and turn > 0:
                _refill(program, launches, feed(first_step + turn))
            begin = time.perf_counter()
            if trace is not None and turn == max(1, repeat) - 1:
                with runtime.trace(trace):
                    statistics = runtime.run(launches)
            else:
                statistics = runtime.run(launches)
            seconds.append(time.perf_counter() - begin)
            if _has_loss(program):
                losses.append(_number(program, launches, program.results[0].name))
            if after_step is not None:
                after_step(turn + 1, launches)
        assert statistics is not None
        return RunResult(_join(program, launches), statistics, tuple(seconds), tuple(losses), first_step)


def _first(
    fed: Mapping[str, Array], values: Mapping[str, Array] | Callable[[str], Array]
) -> Mapping[str, Array] | Callable[[str], Array]:
    """The values to begin with."""
    if not fed:
        return values
    return lambda name: fed[name] if name in fed else values(name) if callable(values) else values[name]


def _refill(program: CompiledProgram, launches: list[Launch], values: Mapping[str, Array]) -> None:
    """Write other values of inputs in the place of those that the launches have."""
    for one in program.programs or (program,):
        own = _launches_of(one, launches)
        for index, argument in enumerate(one.arguments):
            if argument.name in values:
                for launch, part in zip(
                    own, split_array(_value(argument, values), argument.layout, one.mesh), strict=True
                ):
                    launch.arguments[index][...] = part


def program_launches(
    runtime: Runtime,
    program: CompiledProgram,
    values: Mapping[str, Array] | Callable[[str], Array],
    *,
    own: Collection[str] = (),
) -> list[Launch]:
    """The launches of a program on all its devices, with its arguments cut and room for its results.

    Where groups of devices have programs of their own, those of each group, in order.

    Args:
        runtime: As many devices as the program's mesh has.
        program: The program; it is loaded.
        values: The global value of each argument: by name, or a function from names.
        own: Arguments that shall be written to, beside those that the program updates.

    Raises:
        RuntimeFailure: If a value is missing or does not fit, or the program cannot be loaded.
    """
    if program.programs:
        made = [program_launches(runtime, one, values, own=own) for one in program.programs]
        return [
            dataclasses.replace(launch, group=number) for number, launches in enumerate(made) for launch in launches
        ]
    mesh = program.mesh
    devices = _devices_of(program)
    columns = [split_array(_value(argument, values), argument.layout, mesh) for argument in program.arguments]
    tiers = [Tier.DEVICE if argument.tier is None else Tier.HOST for argument in program.arguments]
    loaded = runtime.load(program.program_file)
    updated = {result.updates for result in program.results}
    launches: list[Launch] = []
    for position, device in enumerate(devices):
        outputs = [
            empty(result.layout.local_shape(result.shape, mesh), _numpy_type(result))
            for result in program.results
            if result.updates is None
        ]
        arguments = [
            _own(column[position]) if argument.name in updated or argument.name in own else column[position]
            for argument, column in zip(program.arguments, columns, strict=True)
        ]
        written = [
            array for argument, array in zip(program.arguments, arguments, strict=True) if argument.name in updated
        ]
        launches.append(
            Launch(
                loaded, program.entry, arguments, outputs, device, 0, position, argument_tiers=tiers, updated=written
            )
        )
    return launches


def _devices_of(program: CompiledProgram) -> list[int]:
    """The devices that run a program of one mesh, in the order of their places in it."""
    mesh = program.mesh
    return [program.first_device + device for device in mesh.device_ids or range(mesh.num_devices)]


def _value(argument: CompiledTensor, values: Mapping[str, Array] | Callable[[str], Array]) -> Array:
    try:
        array = np.asarray(values(argument.name) if callable(values) else values[argument.name])
    except KeyError:
        raise RuntimeFailure(f"the {argument.role} {argument.name} has no value; give one") from None
    wanted = _numpy_type(argument)
    if array.shape != argument.shape or array.dtype != wanted:
        raise RuntimeFailure(
            f"{argument.role} {argument.name}: expected {wanted} of shape {list(argument.shape)} "
            f"but got {array.dtype} of shape {list(array.shape)}"
        )
    return array


def _own(part: Array) -> Array:
    """A part that a device may write to: neither the caller's array nor another device's."""
    own = empty(part.shape, part.dtype)
    own[...] = part
    return own


def _parts(program: CompiledProgram, launches: list[Launch]) -> dict[str, list[Array]]:
    """What each device has of each result: made beside the arguments, or in the place of one."""
    positions = {argument.name: index for index, argument in enumerate(program.arguments)}
    parts: dict[str, list[Array]] = {}
    made = 0
    for result in program.results:
        if result.updates is None:
            parts[result.name] = [launch.results[made] for launch in launches]
            made += 1
        else:
            parts[result.name] = [launch.arguments[positions[result.updates]] for launch in launches]
    return parts


def _has_loss(program: CompiledProgram) -> bool:
    """Whether the program is a step that says by its first result, a number, how well it went."""
    return any(result.updates is not None for result in program.results) and math.prod(program.results[0].shape) == 1


def _launches_of(program: CompiledProgram, launches: list[Launch]) -> list[Launch]:
    """Those of a group's devices."""
    last = program.first_device + program.mesh.num_devices
    return [launch for launch in launches if program.first_device <= launch.device < last]


def _number(program: CompiledProgram, launches: list[Launch], name: str) -> float:
    """A result that is one number, from the group that makes it."""
    for one in program.programs:
        if any(result.name == name for result in one.results):
            return _number(one, _launches_of(one, launches), name)
    result = next(result for result in program.results if result.name == name)
    value = join_array(_parts(program, launches)[name], result.shape, result.layout, program.mesh)
    return float(bfloat16_to_float32(value) if result.dtype == "bf16" else value)


def _join(program: CompiledProgram, launches: list[Launch]) -> dict[str, Array]:
    joined: dict[str, Array] = {}
    if program.programs:
        for one in program.programs:
            joined |= _join(one, _launches_of(one, launches))
        return {result.name: joined[result.name] for result in program.results}
    all_parts = _parts(program, launches)
    for result in program.results:
        parts = all_parts[result.name]
        fault = disagreement(parts, result.shape, result.layout, program.mesh)
        if fault is not None:
            raise RuntimeFailure(f"result {result.name}: {fault}; this is a defect of the compiler, please report it")
        joined[result.name] = join_array(parts, result.shape, result.layout, program.mesh)
    return joined


def saved_values(program: CompiledProgram) -> dict[str, Array]:
    """The weights and example inputs that are kept with a program.

    Raises:
        RuntimeFailure: If a file is damaged.
    """
    values: dict[str, Array] = {}
    weights = program.directory / WEIGHTS_FILE
    if any(argument.role is not Role.INPUT for argument in program.arguments) and weights.exists():
        values.update(_read_safetensors(weights, program))
    inputs = program.directory / INPUTS_FILE
    if inputs.exists():
        try:
            with np.load(inputs, allow_pickle=False) as file:
                values.update({name: file[name] for name in file.files})
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise RuntimeFailure(f"{inputs} is damaged ({error}); compile the program again") from None
    return values


def _read_safetensors(path: Path, program: CompiledProgram) -> dict[str, Array]:
    import json

    again = "compile the program again from a whole import"
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise RuntimeFailure(f"{path} is {'empty' if size == 0 else 'cut off, or no safetensors file'}; {again}")
        text = file.read(length)
    values: dict[str, Array] = {}
    try:
        header = cast("dict[str, Any]", json.loads(text))
        for argument in program.arguments:
            if argument.role is Role.INPUT:
                continue
            begin, end = header[argument.name]["data_offsets"]
            dtype = _numpy_type(argument)
            if end - begin != dtype.itemsize * int(np.prod(argument.shape, dtype=np.int64)):
                raise RuntimeFailure(f"{path}: {argument.name} has another size than the program expects; {again}")
            if size < 8 + length + end:
                raise RuntimeFailure(
                    f"{path} is cut off: expected {8 + length + end} bytes or more but got {size}; {again}"
                )
            if end == begin:
                values[argument.name] = np.empty(argument.shape, dtype)
                continue
            mapped = np.memmap(path, dtype, "r", 8 + length + begin, argument.shape or (1,))
            values[argument.name] = mapped.reshape(argument.shape)
    except (ValueError, KeyError, TypeError) as error:
        raise RuntimeFailure(f"{path} is no weights file of this program ({error!r}); {again}") from None
    return values
