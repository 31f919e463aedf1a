# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files of the source tree, as the structure tests see them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("dialects", "lib", "python", "test", "docs", "examples", "benchmarks", "cmake")
GENERATED = re.compile(r"_(ops|enum)_gen\.py$|\.so$")


def files(*suffixes: str, under: tuple[str, ...] = SOURCES) -> Iterator[Path]:
    """The files with one of the suffixes, but for what is generated."""
    for folder in under:
        for path in sorted((ROOT / folder).rglob("*")):
            generated = GENERATED.search(path.name) or "__pycache__" in path.parts
            if path.suffix in suffixes and path.is_file() and not generated:
                yield path


def name(path: Path) -> str:
    """The path from the root."""
    return path.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Pass:
    """A pass as a .td file of lib/ declares it."""

    class_name: str
    flag: str
    declared_in: Path
    has_description: bool

    @property
    def words(self) -> str:
        """The class's name without Pass, in kebab case: PropagateShardingsPass is propagate-shardings."""
        bare = self.class_name.removesuffix("Pass")
        kebab = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", bare).lower()
        return kebab.replace("hyper-shard", "hypershard").replace("hyper-mpmd", "hypermpmd")

    @property
    def file(self) -> str:
        """The file that the pass's name asks for.

        A pass has a file of its own, where a conversion from X to Y leaves out the word Convert; passes of a file such
        as PhaseContracts.td, which do one thing to several ends, are together in the .cpp of that name.
        """
        if self.declared_in.stem != "Passes":
            return f"{self.declared_in.stem}.cpp"
        bare = self.class_name.removesuffix("Pass")
        is_x_to_y = re.fullmatch(r"Convert\w+To\w+", bare) is not None
        return f"{bare.removeprefix('Convert') if is_x_to_y else bare}.cpp"

    @property
    def source(self) -> Path:
        """That file, in the folder of the declaration or one below it."""
        folder = self.declared_in.parent
        below = [path for path in folder.iterdir() if path.is_dir()]
        return next((one / self.file for one in [folder, *below] if (one / self.file).exists()), folder / self.file)

    @property
    def flags(self) -> set[str]:
        """The flags that follow from the name and the folder."""
        folder = self.declared_in.parent.relative_to(ROOT / "lib").parts
        prefixes = {"Transforms": [f"{folder[-1].lower()}-", "test-"], "Pipelines": ["hp-", "hypershard-"]}
        return {f"{prefix}{self.words}" for prefix in prefixes.get(folder[0], ["", "hp-"])}

    def tests(self, suffix: str = "") -> set[str]:
        """The names that its test file may have, of which one must be there."""
        stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", self.declared_in.stem).lower()
        names = {self.words, *([stem] if stem != "passes" else [])}
        return {f"{one}{suffix}.mlir" for one in names}


def passes() -> list[Pass]:
    """Every pass that a .td file of lib/ declares."""
    found: list[Pass] = []
    for source in files(".td", under=("lib",)):
        text = source.read_text()
        bases = dict.fromkeys(re.findall(r"class (\w+)<[^{]*?: Pass<", text, re.S))
        for entry in re.split(r"(?=^def \w+)", text, flags=re.M):
            declared = re.match(
                rf'def (\w+)\s*:\s*(?:{"|".join(["Pass", "InterfacePass", *bases])})<\s*"([\w-]+)"', entry
            )
            if declared:
                found.append(Pass(declared[1], declared[2], source, "let description" in entry))
    return found
