# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package: its pins agree, and what is installed runs from anywhere beside the wheels it was built against."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pip._vendor import tomli
from source_tree import ROOT

BUILD = Path(os.path.realpath(ROOT / "python" / "hyperparallel" / "bin" / "hp-opt")).parents[1]


def project() -> dict[str, object]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomli.load(file)


def test_the_build_group_repeats_the_build_requirements() -> None:
    declared = project()
    system, groups = declared["build-system"], declared["dependency-groups"]
    assert isinstance(system, dict)
    assert isinstance(groups, dict)
    assert groups["build"] == system["requires"]


def test_one_mlir_for_building_and_running() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    pins = set(re.findall(r'"(xtc-[\w-]+==[\d.]+)"', text))
    assert len(pins) == 5, "each of the five wheels has one version"
    assert len(re.findall(r'"(torch==[\d.]+)"', text)) == 1


def test_the_version_is_one() -> None:
    from hyperparallel import __version__

    cmake = re.search(r"project\(HyperParallel VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    declared = project()["project"]
    assert isinstance(declared, dict)
    assert cmake is not None
    assert {__version__, cmake[1], declared["version"]} == {__version__}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site-packages folder with the installed package, and links to the wheels it needs."""
    if not (BUILD / "CMakeCache.txt").exists():
        pytest.skip("hp-opt does not come from a build folder")
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        ["cmake", "--install", str(BUILD), "--prefix", str(folder)],
        check=True,
        capture_output=True,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
    )
    shutil.copytree(
        ROOT / "python" / "hyperparallel",
        folder / "hyperparallel",
        ignore=shutil.ignore_patterns("*.so", "bin", "*_gen.py", "__pycache__"),
        dirs_exist_ok=True,
    )
    for package in ("mlir", "llvm"):
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.submodule_search_locations is not None
        (folder / package).symlink_to(next(iter(spec.submodule_search_locations)))
    return folder


def run_there(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in {"LD_LIBRARY_PATH", "PYTHONPATH"}}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**environment, "PYTHONPATH": str(site)}, cwd=site
    )


def test_the_installed_driver_finds_its_libraries(site: Path) -> None:
    driver = site / "hyperparallel" / "bin" / "hp-opt"
    assert not driver.is_symlink()
    run = run_there(site, str(driver), "--show-dialects")
    assert "hypershard" in run.stdout, run.stderr


def test_the_installed_extension_finds_its_libraries(site: Path) -> None:
    program = (
        "from mlir import ir\n"
        "from hyperparallel.dialects import hypershard\n"
        "with ir.Context(): print(hypershard.sharding('m', [['dp'], []]), hypershard.__file__)\n"
    )
    run = run_there(site, sys.executable, "-S", "-c", program)  # without the packages of this environment
    assert run.stdout.startswith('#hypershard.sharding<@m, [{"dp"}, {}]> '), run.stderr
    assert str(site) in run.stdout


def test_nothing_installed_points_into_the_build(site: Path) -> None:
    for library in [*site.glob("hyperparallel/*.so"), site / "hyperparallel" / "bin" / "hp-opt"]:
        shown = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True, check=True).stdout
        paths = re.findall(r"Library r(?:un)?path: \[(.*)\]", shown)
        assert all(entry.startswith("$ORIGIN") for path in paths for entry in path.split(":")), f"{library}: {paths}"


def test_console_scripts() -> None:
    scripts = {entry.name: entry.value for entry in importlib.metadata.entry_points(group="console_scripts")}
    if "hp-opt" not in scripts:
        pytest.skip("the package is not installed, only on the path")
    assert scripts["hp-opt"] == "hyperparallel.hp_opt:main"
    assert scripts["hp"] == "hyperparallel.cli.main:main"
