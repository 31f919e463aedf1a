# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several imported programs wired into one: rollout → reward → train, encoder → decoder.

A composition is written down as if it were run: calling a program gives values, which other programs take.

    step = Composition("distill")
    teacher, student = step.program("teacher", large), step.program("student", train_small)
    tokens = step.input("tokens", teacher.argument("input_ids"))
    soft = teacher(input_ids=tokens)["logits"]
    step.result("loss", student(input_ids=tokens, target=soft)["loss"])
    model = step.build()            # an ImportedModel: compile it, plan it, run it like any other

The state of a program (parameters, buffers, optimizer state) is a variable: a call reads it, a call of a training program
writes it, ``follow`` lets one program's parameters be those of another. What a step leaves in a variable is there when the
next step begins. A value that is used a step later than it was made goes through ``delayed``: the part that makes it and the
part that takes it no longer wait for each other.

In the built program each call is one operation of ``@main`` with the program's name as its ``hp.path``; a plan's ``stages``
give programs to device groups by these names. Each program's functions are there once, however often it is called.

Cost: linear in the text of the programs. Limits: shapes are those of the imports; a program is called at least once.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
from mlir import ir

from hyperparallel.enums import Role
from hyperparallel.errors import CompilationError
from hyperparallel.frontend.artifact import ArgumentInfo, BlockInfo, ImportedModel, ResultInfo
from hyperparallel.pipeline import ENTRY, MLIRError, make_context, parse_program

Array = np.ndarray[Any, np.dtype[Any]]

_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclasses.dataclass(frozen=True, slots=True)
class TensorKind:
    """Sizes and element type of a tensor, the element type as MLIR spells it (``ui8`` for unsigned bytes)."""

    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    @property
    def mlir(self) -> str:
        """The type in a program's text; signs of integers are not in it."""
        sizes = "".join(f"{size}x" for size in self.shape)
        return f"tensor<{sizes}{self.dtype.removeprefix('u')}>"


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor of the composed program, as calls give and take it."""

    composition: Composition
    text: str
    kind: TensorKind
    what: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Call:
    program: str
    operands: tuple[Value, ...]
    results: tuple[TensorKind, ...]
    number: int


class Member:
    """A program of a composition; ``Composition.program`` makes it."""

    def __init__(self, composition: Composition, name: str, model: ImportedModel) -> None:
        self.name = name
        self.model = model
        self._composition = composition
        self._inputs = [entry for entry in model.arguments if entry.role is Role.INPUT]
        self.state: dict[str, Value] = {}
        self.called = False

    def argument(self, name: str) -> TensorKind:
        """Sizes and element type of an argument.

        Raises:
            CompilationError: If the program has none of that name.
        """
        for entry in self.model.arguments:
            if entry.name == name:
                return _kind(entry)
        names = ", ".join(entry.name for entry in self._inputs)
        raise CompilationError(f"program {self.name} has no argument {name!r}; its inputs are {names or 'none'}")

    def __call__(self, **inputs: Value) -> dict[str, Value]:
        """Add a call of the program.

        Args:
            **inputs: A value for every input of the program, by its name.

        Returns:
            The results by name, without those that are the next values of the program's own state.

        Raises:
            CompilationError: If an input is missing, unknown, of another type, or of another composition.
        """
        known = {entry.name: entry for entry in self._inputs}
        for name, value in inputs.items():
            if name not in known:
                raise CompilationError(f"program {self.name} has no input {name!r}; expected {', '.join(known)}")
            wanted = _kind(known[name])
            if value.composition is not self._composition:
                raise CompilationError(f"{value.what}, given as {name} of {self.name}, belongs to another composition")
            if value.kind != wanted:
                raise CompilationError(
                    f"program {self.name} takes {name} as {wanted} but {value.what} is {value.kind}; "
                    "import the program with inputs of that shape"
                )
        missing = [name for name in known if name not in inputs]
        if missing:
            raise CompilationError(f"program {self.name} needs a value for its input {missing[0]}")
        self.called = True
        operands = [inputs[e.name] if e.role is Role.INPUT else self.state[e.name] for e in self.model.arguments]
        made = self._composition.add_call(self.name, operands, self.model.results)
        given: dict[str, Value] = {}
        for result, value in zip(self.model.results, made, strict=True):
            if result.updates is None:
                given[result.name] = value
            else:
                self.state[result.updates] = value
        return given

    def follow(self, source: Member, *, late: int = 0) -> None:
        """From here on this program's parameters and buffers are those that ``source`` now has under the same names.

        Args:
            source: Another program.
            late: They are those that ``source`` had so many steps ago (the bound on staleness): in the first steps, this
                program's own. What makes them and what takes them no longer wait for each other.

        Raises:
            CompilationError: If ``source`` lacks one, or has it in another type, or ``late`` is below 0.
        """
        if late < 0:
            raise CompilationError(f"{self.name} cannot follow {source.name} {late} steps late; expected 0 or more")
        for entry in self.model.arguments:
            if entry.role not in (Role.PARAMETER, Role.BUFFER):
                continue
            value = source.state.get(entry.name)
            if value is None:
                raise CompilationError(f"{self.name} cannot follow {source.name}, which has no {entry.name}")
            if value.kind != _kind(entry):
                raise CompilationError(
                    f"{self.name} cannot follow {source.name}: {entry.name} is {_kind(entry)} here and {value.kind} there"
                )
            if late > 0:
                own = self.model.weight(entry.name)
                value = self._composition.delayed(f"{self.name}.{entry.name}.late", value, own, steps=late)
            self.state[entry.name] = value


class Composition:
    """Programs, and what flows between them.

    Args:
        name: What the composed program is called.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._context = make_context()
        self._modules: dict[str, ir.Module] = {}
        self._members: dict[str, Member] = {}
        self._arguments: list[tuple[ArgumentInfo, Value, dict[str, str]]] = []
        self._initial: dict[str, Array] = {}
        self._delayed: dict[str, Value] = {}
        self._calls: list[_Call] = []
        self._results: dict[str, Value] = {}
        self._by_name: dict[str, Value] = {}

    def program(self, name: str, model: ImportedModel) -> Member:
        """Add a program; it may be called any number of times.

        Args:
            name: What plans call it by: a word.
            model: The imported program; a training program's updated state is followed from call to call.

        Raises:
            CompilationError: If the name is taken or no word, or the program is malformed.
        """
        if not _NAME.fullmatch(name) or name == ENTRY:
            raise CompilationError(f"expected a word other than {ENTRY} as the name of a program but got {name!r}")
        if name in self._members:
            raise CompilationError(f"composition {self.name} has two programs {name}; give each a name of its own")
        module = parse_program(model.mlir, f"program {name}", self._context)
        if not any(_symbol(operation.operation) == ENTRY for operation in module.body.operations):
            raise CompilationError(f"program {name} has no function @{ENTRY}; import {model.name} again")
        member = Member(self, name, model)
        self._modules[name], self._members[name] = module, member
        for entry in model.arguments:
            if entry.role is not Role.INPUT:
                full = dataclasses.replace(
                    entry, name=f"{name}.{entry.name}", aliases=tuple(f"{name}.{alias}" for alias in entry.aliases)
                )
                member.state[entry.name] = self._argument(full, {})
        return member

    def input(self, name: str, kind: TensorKind) -> Value:
        """Add an input of the composed program.

        Args:
            name: Its name.
            kind: Its sizes and element type; ``Member.argument`` gives those of a program's.

        Raises:
            CompilationError: If the name is taken.
        """
        return self._argument(ArgumentInfo(name, Role.INPUT, kind.shape, kind.dtype), {})

    def delayed(self, name: str, value: Value, initial: Array, *, steps: int = 1) -> Value:
        """What ``value`` was some steps ago, so that its maker and its user need not wait for each other.

        Args:
            name: Name of the channel; it is state of the composed program.
            value: What is made in this step.
            initial: What the first steps get; the shape and type of ``value``.
            steps: How many steps old it is (the bound on staleness), at least 1.

        Raises:
            CompilationError: If ``steps`` is below 1 or ``initial`` does not fit.
        """
        if steps < 1:
            raise CompilationError(f"channel {name}: expected a delay of one step or more but got {steps}")
        wanted = np.dtype(_NUMPY_TYPES[value.kind.dtype])
        if initial.shape != value.kind.shape or initial.dtype != wanted:
            raise CompilationError(
                f"channel {name}: expected an initial value of {value.kind} but got {initial.dtype}{list(initial.shape)}"
            )
        for age in range(1, steps + 1):
            full = name if age == steps else f"{name}.{age}"
            info = ArgumentInfo(full, Role.BUFFER, value.kind.shape, value.kind.dtype)
            held = self._argument(info, {"hp.staleness": str(age)})
            self._initial[full] = initial
            self._delayed[full], value = value, held
        return value

    def result(self, name: str, value: Value) -> None:
        """Make a value a result of the composed program.

        Raises:
            CompilationError: If the name is taken.
        """
        if name in self._results or name in self._by_name:
            raise CompilationError(f"composition {self.name} has two results or arguments {name}; rename one")
        self._results[name] = value

    def build(self) -> ImportedModel:
        """The composed program, with the weights of its parts.

        Raises:
            CompilationError: If a program is never called, or nothing comes out.
        """
        for member in self._members.values():
            if not member.called:
                raise CompilationError(f"program {member.name} of composition {self.name} is never called")
        updated = dict(self._delayed)
        for member in self._members.values():
            for key, value in member.state.items():
                if value.text != self._by_name[f"{member.name}.{key}"].text:
                    updated[f"{member.name}.{key}"] = value
        if not self._results and not updated:
            raise CompilationError(f"composition {self.name} has no result; name one with result()")
        results = [(name, value, "") for name, value in self._results.items()]
        results += [(name, value, name) for name, value in updated.items()]
        text = self._main_text(results)
        with self._context, ir.Location.unknown():
            merged = ir.Module.create()
            for name, module in self._modules.items():
                # From its text, so that a composition can be built again.
                _absorb(ir.Module.parse(str(module)), name, merged)
            calls = "\n".join(str(operation) for operation in merged.body.operations)
            try:
                whole = ir.Module.parse(f"{text}\n{calls}")
            except MLIRError as error:
                raise CompilationError(f"composition {self.name} is no valid program: {error}") from None
        weights = dict(self._initial)
        return ImportedModel(
            name=self.name,
            mlir=str(whole),
            arguments=tuple(info for info, _, _ in self._ordered()),
            results=tuple(
                ResultInfo(name, value.kind.shape, value.kind.dtype, updates or None)
                for name, value, updates in results
            ),
            blocks=tuple(BlockInfo(call.program, call.program) for call in self._calls),
            unused=tuple(f"{m.name}.{entry}" for m in self._members.values() for entry in m.model.unused),
            has_weights=all(member.model.has_weights for member in self._members.values()),
            _read_weight=lambda key: weights[key] if key in weights else self._weight(key),
        )

    def add_call(self, program: str, operands: list[Value], results: tuple[ResultInfo, ...]) -> list[Value]:
        """Note a call; for ``Member``."""
        number = len(self._calls)
        kinds = tuple(TensorKind(entry.shape, entry.dtype) for entry in results)
        self._calls.append(_Call(program, tuple(operands), kinds, number))
        single = len(kinds) == 1
        return [
            Value(self, f"%c{number}" if single else f"%c{number}#{index}", kind, f"{program}'s {entry.name}")
            for index, (kind, entry) in enumerate(zip(kinds, results, strict=True))
        ]

    def _argument(self, info: ArgumentInfo, attributes: dict[str, str]) -> Value:
        if info.name in self._by_name:
            raise CompilationError(f"composition {self.name} has two arguments {info.name}; rename one")
        value = Value(self, f"%arg{len(self._arguments)}", _kind(info), info.name)
        self._arguments.append((info, value, attributes))
        self._by_name[info.name] = value
        return value

    def _ordered(self) -> list[tuple[ArgumentInfo, Value, dict[str, str]]]:
        """The arguments as every imported program has them: inputs, then state."""
        return sorted(self._arguments, key=lambda entry: entry[0].role is not Role.INPUT)

    def _weight(self, key: str) -> Array:
        program, _, name = key.partition(".")
        return self._members[program].model.weight(name)

    def _main_text(self, results: list[tuple[str, Value, str]]) -> str:
        arguments: list[str] = []
        for info, value, extra in self._ordered():
            entries = [f'hp.name = "{info.name}"', f'hp.role = "{info.role}"']
            if info.aliases:
                entries.append("hp.aliases = [" + ", ".join(f'"{alias}"' for alias in info.aliases) + "]")
            entries += [f"{key} = {number} : i64" for key, number in extra.items()]
            arguments.append(f"{value.text}: {value.kind.mlir} {{{', '.join(entries)}}}")
        outputs = [
            f'{value.kind.mlir} {{hp.name = "{name}"' + (f', hp.updates = "{updates}"' if updates else "") + "}"
            for name, value, updates in results
        ]
        lines = [f"func.func @{ENTRY}({', '.join(arguments)}) -> ({', '.join(outputs)}) {{"]
        for call in self._calls:
            given = ", ".join(value.text for value in call.operands)
            taken = ", ".join(value.kind.mlir for value in call.operands)
            made = ", ".join(kind.mlir for kind in call.results)
            left = f"%c{call.number}" + (f":{len(call.results)}" if len(call.results) != 1 else "")
            path = f'{{hp.path = "{call.program}"}}'
            lines.append(f"  {left} = call @{call.program}({given}) {path} : ({taken}) -> ({made})")
        values = ", ".join(value.text for _, value, _ in results)
        kinds = ", ".join(value.kind.mlir for _, value, _ in results)
        return "\n".join([*lines, f"  return {values} : {kinds}", "}"])


_NUMPY_TYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "uint16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "ui8": "uint8",
    "i1": "bool",
}


def _kind(entry: ArgumentInfo) -> TensorKind:
    return TensorKind(entry.shape, entry.dtype)


def _symbol(operation: ir.Operation) -> str:
    return ir.StringAttr(operation.attributes["sym_name"]).value


def _absorb(module: ir.Module, name: str, into: ir.Module) -> None:
    """Move a program's functions into another module, under names and paths of their own."""
    table = ir.SymbolTable(module.operation)
    functions = [operation.operation for operation in module.body.operations]
    for function in functions:
        old = _symbol(function)
        new = name if old == ENTRY else f"{name}.{old}"
        table.replace_all_symbol_uses(old, new, module.operation)
        table.set_symbol_name(function, new)
        if old == ENTRY:
            function.attributes["sym_visibility"] = ir.StringAttr.get("private")
            for key in ("arg_attrs", "res_attrs"):
                if key in function.attributes:
                    del function.attributes[key]

    def prefix(operation: ir.Operation) -> ir.WalkResult:
        if "hp.path" in operation.attributes:
            path = ir.StringAttr(operation.attributes["hp.path"]).value
            operation.attributes["hp.path"] = ir.StringAttr.get(f"{name}.{path}")
        return ir.WalkResult.ADVANCE

    module.operation.walk(prefix, ir.WalkOrder.PRE_ORDER)
    for function in functions:
        into.body.append(function)
