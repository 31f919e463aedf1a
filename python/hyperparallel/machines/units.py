# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers with units, as people write them in a machine file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation


@dataclass(frozen=True, slots=True)
class Unit:
    """A physical dimension: what it is called, an example, and the factor of each spelling."""

    what: str
    example: str
    factors: dict[str, Decimal]
    display: tuple[str, ...]


_DECIMAL = {"k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50}
_BYTES = {
    "B": Decimal(1),
    **{f"{prefix}B": Decimal(10) ** power for prefix, power in _DECIMAL.items()},
    **{f"{prefix}B": Decimal(2) ** power for prefix, power in _BINARY.items()},
}
_DISPLAY = ("P", "T", "G", "M", "k", "")

SECONDS = Unit(
    "a time",
    "3.1 us",
    {"s": Decimal(1), "ms": Decimal("1e-3"), "us": Decimal("1e-6"), "ns": Decimal("1e-9")},
    ("s", "ms", "us", "ns"),
)
BYTES = Unit("a size", "64 GB", _BYTES, tuple(f"{prefix}B" for prefix in _DISPLAY))
BYTES_PER_SECOND = Unit(
    "a bandwidth",
    "196 GB/s",
    {f"{unit}/s": factor for unit, factor in _BYTES.items()},
    tuple(f"{prefix}B/s" for prefix in _DISPLAY),
)
_FLOPS = {f"{prefix}FLOP/s": Decimal(10) ** power for prefix, power in {"": 0, **_DECIMAL}.items()}
OPERATIONS_PER_SECOND = Unit(
    "a rate",
    "353.8 TFLOP/s",
    {**_FLOPS, **{unit.replace("FLOP", "OP"): factor for unit, factor in _FLOPS.items()}},
    tuple(f"{prefix}FLOP/s" for prefix in _DISPLAY),
)

_NUMBER = re.compile(r"([+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?|[+-]?[0-9]+\.)\s*(\S*)")


def parse(text: str, unit: Unit) -> float:
    """Reads ``text`` as a number of ``unit``.

    Returns:
        The number in the SI unit without prefix.

    Raises:
        ValueError: The text is no number, or has no unit or another one; the message says what was expected.

    Example:
        >>> parse("3.1 us", SECONDS)
        3.1e-06
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected {unit.what} such as `{unit.example}` but got `{text}`")
    number, spelling = match.groups()
    if not spelling:
        raise ValueError(f"expected {unit.what} with its unit, such as `{unit.example}`, but got `{text}`")
    if spelling not in unit.factors:
        raise ValueError(
            f"expected {unit.what} in one of {', '.join(unit.factors)} (such as `{unit.example}`) but got `{text}`"
        )
    try:
        return float(Decimal(number) * unit.factors[spelling])
    except InvalidOperation:
        raise ValueError(f"expected {unit.what} such as `{unit.example}` but got `{text}`") from None


def spell(value: float, unit: Unit) -> str:
    """Writes a number of ``unit`` with the largest prefix that leaves at least 1; reads back as the same number.

    Example:
        >>> spell(1.6e12, BYTES_PER_SECOND)
        '1.6 TB/s'
    """
    exact = Decimal(repr(value))
    for spelling in unit.display:
        scaled = exact / unit.factors[spelling]
        if abs(scaled) >= 1:
            break
    else:
        spelling = unit.display[0] if exact == 0 else unit.display[-1]
        scaled = exact / unit.factors[spelling]
    scaled = scaled.normalize()
    number = f"{scaled:f}" if -6 < scaled.adjusted() < 16 else f"{scaled}"
    return f"{number} {spelling}"


__all__ = ["BYTES", "BYTES_PER_SECOND", "OPERATIONS_PER_SECOND", "SECONDS", "Unit", "parse", "spell"]
