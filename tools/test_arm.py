"""`make test-arm`: build the core for aarch64 and run tests of it under qemu-user.

Everything stays in build/aarch64: Debian's arm64 packages of Python are downloaded with package
lists of their own and unpacked there, so the system's list of architectures does not change. Needs
Debian or a relative of it, with g++-aarch64-linux-gnu and qemu-user.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "aarch64"
SYSTEM = FOLDER / "system"
WHEELS = FOLDER / "wheels"
PACKAGE = FOLDER / "package"
PYTHON = FOLDER / "python"
VERSION = "3.11"
"""The Python of Debian 12, for which the extension module is built."""

# Kernels, signers and their golden vectors, indexes: what differs between processors.
TESTS = (
    "tests/signatures", "tests/features", "tests/compare", "tests/indexes", "tests/vectors",
    "tests/parts", "tests/images/test_image_hash.py",
)  # fmt: skip
LEFT_OUT = (
    # The emulator needs more address space than this test allows.
    "tests/indexes/slices/test_slice_files.py::test_lists_that_do_not_fit_into_memory_are_built",
    # Bounded in seconds, which are longer under emulation.
    *(
        f"tests/indexes/tables/{name}::test_a_fifth_of_the_collection_in_one_bucket_is_not_quadratic"
        for name in ("test_blocks.py", "test_flips.py")
    ),
)
EXAMPLES = "0.1"
"""The share of the examples of property tests that is drawn: emulation is slow."""
NEEDED = (
    "numpy", "pyarrow", "duckdb", "pandas", "polars", "PyStemmer", "Pillow", "Resiliparse",
    "FastWARC", "pytest", "hypothesis", "xxhash",
)  # fmt: skip
PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux_2_28_aarch64")


def main(arguments: list[str]) -> int:
    """Prepare what is missing, build, and run pytest with `arguments` or the usual tests."""
    missing = [
        name
        for name in ("aarch64-linux-gnu-g++", "qemu-aarch64", "apt-get", "dpkg-deb")
        if shutil.which(name) is None
    ]
    if missing:
        print(
            f"not found: {', '.join(missing)}. On Debian or Ubuntu, run: "
            "apt-get install g++-aarch64-linux-gnu qemu-user",
            file=sys.stderr,
        )
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not SYSTEM.exists():
        unpack_system()
    listed = WHEELS / "needed"
    if not listed.exists() or listed.read_text() != " ".join(NEEDED):
        install_wheels()
    build()
    write_launcher()
    left_out = [f"--deselect={name}" for name in LEFT_OUT]
    return subprocess.run(
        [PYTHON, "-m", "pytest", "-p", "no:cacheprovider", *left_out, *(arguments or TESTS)],
        cwd=ROOT,
        env={"LOOKALIKE_EXPLORE": EXAMPLES, **os.environ},
    ).returncode


def unpack_system() -> None:
    """Download Python for arm64 with everything it depends on, and unpack it into a folder."""
    apt = FOLDER / "apt"
    for name in ("state/lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    configuration = FOLDER / "apt.conf"
    configuration.write_text(
        'APT::Architecture "arm64";\nAPT::Architectures { "arm64"; };\n'
        f'Dir::State "{apt}/state";\nDir::State::status "{apt}/status";\n'
        f'Dir::Cache "{apt}/cache";\nDebug::NoLocking "true";\n'
    )
    environment = {**os.environ, "APT_CONFIG": str(configuration)}
    run("apt-get", "update", "-qq", env=environment)
    run(
        "apt-get", "install", "-qq", "-y", "--download-only", "--no-install-recommends",
        f"python{VERSION}", f"libpython{VERSION}-dev", "libstdc++6", env=environment,
    )  # fmt: skip
    unfinished = FOLDER / "system.new"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    for archive in sorted((apt / "cache/archives").glob("*.deb")):
        run("dpkg-deb", "-x", archive, unfinished)
    unfinished.rename(SYSTEM)


def install_wheels() -> None:
    """Install what the tests import, as wheels for aarch64."""
    unfinished = FOLDER / "wheels.new"
    shutil.rmtree(unfinished, ignore_errors=True)
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    run(
        sys.executable, "-m", "pip", "install", "--quiet", "--target", unfinished, *platforms,
        "--python-version", VERSION, "--implementation", "cp", "--only-binary=:all:", *NEEDED,
    )  # fmt: skip
    (unfinished / "needed").write_text(" ".join(NEEDED))
    shutil.rmtree(WHEELS, ignore_errors=True)
    unfinished.rename(WHEELS)


def build() -> None:
    """Cross-compile the core, and lay the package out beside it."""
    version = subprocess.check_output([sys.executable, "-m", "setuptools_scm"], cwd=ROOT, text=True)
    bin = Path(sys.executable).parent
    include = SYSTEM / "usr/include"
    run(
        bin / "cmake", "-S", ROOT, "-B", FOLDER / "core", "-G", "Ninja", "--log-level=WARNING",
        f"-DCMAKE_MAKE_PROGRAM={bin / 'ninja'}", "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
        "-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++", f"-DCMAKE_CXX_FLAGS=-idirafter {include}",
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-DPython_INCLUDE_DIR={include / f'python{VERSION}'}",
        f"-DSKBUILD_PROJECT_VERSION_FULL={version.strip()}",
    )  # fmt: skip
    run(bin / "cmake", "--build", FOLDER / "core")
    shutil.rmtree(PACKAGE, ignore_errors=True)
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "src/lookalike", PACKAGE / "lookalike", ignore=ignored)
    # CMake names the file after the Python that builds it; a plain name is imported by any.
    (module,) = (FOLDER / "core").glob("_native*.so")
    shutil.copyfile(module, PACKAGE / "lookalike" / "_native.so")


def write_launcher() -> None:
    """Write the command that is the emulated Python, also for processes that tests start."""
    paths = os.pathsep.join(map(str, (PACKAGE, WHEELS)))
    words = [
        "qemu-aarch64", "-0", PYTHON, "-L", SYSTEM, "-E", f"PYTHONHOME={SYSTEM / 'usr'}",
        "-E", f"PYTHONPATH={paths}", "-E", "PYTHONDONTWRITEBYTECODE=1",
        SYSTEM / "usr/bin" / f"python{VERSION}",
    ]  # fmt: skip
    command = " ".join(shlex.quote(str(word)) for word in words)
    PYTHON.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    PYTHON.chmod(0o755)


def run(*command: object, env: dict[str, str] | None = None) -> None:
    """Run a command, or end with its status."""
    status = subprocess.run([str(word) for word in command], env=env).returncode
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command[:4]))} … ended with status {status}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
