# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What arith and math ops do to numbers, on numpy scalars and arrays alike.

Strict where hardware is not: a division by zero of integers is an error, as it would trap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hyperparallel.errors import RuntimeFailure

Value = Any
"""A numpy scalar, or an array of one value per iteration."""


def _unsigned(value: Value) -> Value:
    value = np.asarray(value)
    return value if value.dtype == np.bool_ else value.view(np.dtype(f"u{value.dtype.itemsize}"))


def _signed_like(value: Value, like: Value) -> Value:
    return np.asarray(value).astype(np.asarray(like).dtype)


def _check_divisor(divisor: Value) -> None:
    if not bool(np.all(divisor)):
        raise RuntimeFailure("an integer is divided by zero")


def _divsi(a: Value, b: Value) -> Value:
    _check_divisor(b)
    quotient = np.floor_divide(a, b)
    return _signed_like(quotient + ((quotient < 0) & (quotient * b != a)), a)


def _remsi(a: Value, b: Value) -> Value:
    return _signed_like(a - _divsi(a, b) * b, a)


def _floordivsi(a: Value, b: Value) -> Value:
    _check_divisor(b)
    return np.floor_divide(a, b)


def _ceildivsi(a: Value, b: Value) -> Value:
    _check_divisor(b)
    return _signed_like(-np.floor_divide(-np.asarray(a), b), a)


def _divui(a: Value, b: Value) -> Value:
    _check_divisor(b)
    return _signed_like(np.floor_divide(_unsigned(a), _unsigned(b)), a)


def _remui(a: Value, b: Value) -> Value:
    _check_divisor(b)
    return _signed_like(np.remainder(_unsigned(a), _unsigned(b)), a)


def _add(a: Value, b: Value) -> Value:
    return np.logical_xor(a, b) if np.asarray(a).dtype == np.bool_ else np.add(a, b)


def _sub(a: Value, b: Value) -> Value:
    return np.logical_xor(a, b) if np.asarray(a).dtype == np.bool_ else np.subtract(a, b)


def _maxnum(a: Value, b: Value) -> Value:
    return np.fmax(a, b)


def _elementwise(function: Callable[[float], float]) -> Callable[[Value], Value]:
    vectorised = np.vectorize(function, otypes=[np.float64])

    def apply(value: Value) -> Value:
        value = np.asarray(value)
        return vectorised(value).astype(value.dtype)

    return apply


BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": _maxnum,
    "arith.minnumf": np.fmin,
    "arith.addi": _add,
    "arith.subi": _sub,
    "arith.muli": np.multiply,
    "arith.divsi": _divsi,
    "arith.remsi": _remsi,
    "arith.divui": _divui,
    "arith.remui": _remui,
    "arith.floordivsi": _floordivsi,
    "arith.ceildivsi": _ceildivsi,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": lambda a, b: _signed_like(np.maximum(_unsigned(a), _unsigned(b)), a),
    "arith.minui": lambda a, b: _signed_like(np.minimum(_unsigned(a), _unsigned(b)), a),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "arith.shrui": lambda a, b: _signed_like(np.right_shift(_unsigned(a), _unsigned(b)), a),
    "math.powf": np.power,
    "math.fpowi": np.power,
    "math.atan2": np.arctan2,
    "math.copysign": np.copysign,
}

UNARY: dict[str, Callable[[Value], Value]] = {
    "arith.negf": np.negative,
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.expm1": np.expm1,
    "math.log": np.log,
    "math.log2": np.log2,
    "math.log10": np.log10,
    "math.log1p": np.log1p,
    "math.sqrt": np.sqrt,
    "math.rsqrt": lambda a: np.asarray(a).dtype.type(1) / np.sqrt(a),
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.tan": np.tan,
    "math.tanh": np.tanh,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.trunc": np.trunc,
    "math.roundeven": np.rint,
    "math.isnan": np.isnan,
    "math.erf": _elementwise(math.erf),
}

CONVERSIONS = frozenset(
    {
        "arith.extf",
        "arith.truncf",
        "arith.extsi",
        "arith.trunci",
        "arith.sitofp",
        "arith.fptosi",
        "arith.fptoui",
        "arith.index_cast",
    }
)
"""Signed conversions: numpy's astype. (A one-bit integer is -1 when it is sign-extended.)"""

UNSIGNED_CONVERSIONS = frozenset({"arith.extui", "arith.uitofp", "arith.index_castui"})


def convert(name: str, value: Value, dtype: np.dtype[Any]) -> Value:
    """A conversion op of arith."""
    value = np.asarray(value)
    if name in UNSIGNED_CONVERSIONS:
        return _unsigned(value).astype(dtype)
    if dtype == np.bool_ and value.dtype != np.bool_:
        return (value.astype(np.int64) & 1).astype(np.bool_)
    if value.dtype == np.bool_ and name in ("arith.extsi", "arith.sitofp", "arith.index_cast"):
        return -value.astype(dtype)
    with np.errstate(all="ignore"):
        return value.astype(dtype)


_INTEGER_PREDICATES: list[Callable[[Value, Value], Value]] = [
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    lambda a, b: np.less(_unsigned(a), _unsigned(b)),
    lambda a, b: np.less_equal(_unsigned(a), _unsigned(b)),
    lambda a, b: np.greater(_unsigned(a), _unsigned(b)),
    lambda a, b: np.greater_equal(_unsigned(a), _unsigned(b)),
]


def compare_integers(predicate: int, a: Value, b: Value) -> Value:
    """``arith.cmpi`` by the number of its predicate."""
    return _INTEGER_PREDICATES[predicate](a, b)


def compare_floats(predicate: int, a: Value, b: Value) -> Value:
    """``arith.cmpf`` by the number of its predicate: false, six ordered, ord, six unordered, uno, true."""
    unordered = np.isnan(a) | np.isnan(b)
    relations: list[Callable[[Value, Value], Value]] = [
        np.equal,
        np.greater,
        np.greater_equal,
        np.less,
        np.less_equal,
        lambda x, y: np.not_equal(x, y),
    ]
    if predicate == 0:
        return np.zeros_like(unordered)
    if predicate <= 6:
        return relations[predicate - 1](a, b) & ~unordered
    if predicate == 7:
        return ~unordered
    if predicate <= 13:
        return relations[predicate - 8](a, b) | unordered
    return unordered if predicate == 14 else np.ones_like(unordered)
