"""The same input gives the same bytes, whatever the processor: the demo under settings that act like others.

NumPy, OpenBLAS and numba choose their code by what the processor can do, and all three can be told to do
without. One process works as this machine would by itself, one as a machine with AVX2 and no more, one as a
machine of 2008 with a single core.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

MAKING = Path(__file__).parent / "golden" / "making.py"
INTEL = platform.machine() in ("x86_64", "AMD64")
FOUND = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
HASWELL = INTEL and __cpu_features__.get("AVX2", False)


def processors(folder: Path) -> dict[str, dict[str, str]]:
    """Environments that act like processors, by name."""
    newest = [name for name in FOUND if name.startswith(("AVX512", "X86_V4"))]
    return {
        "this": {"OPENBLAS_CORETYPE": "Zen"} if HASWELL else {},
        "avx2": {
            **({"OPENBLAS_CORETYPE": "Haswell"} if HASWELL else {}),
            **({"NPY_DISABLE_CPU_FEATURES": " ".join(newest)} if newest else {}),
            "OPENBLAS_NUM_THREADS": "2",
            "POLARS_MAX_THREADS": "2",
        },
        "old": {
            **({"OPENBLAS_CORETYPE": "Nehalem"} if INTEL else {}),
            **({"NPY_DISABLE_CPU_FEATURES": " ".join(FOUND)} if FOUND else {}),
            "NUMBA_CPU_NAME": "generic",
            "NUMBA_CPU_FEATURES": "",
            "NUMBA_CACHE_DIR": str(folder / "numba"),
            "OPENBLAS_NUM_THREADS": "1",
            "POLARS_MAX_THREADS": "1",
            "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F",
        },
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """What each processor made of the demo; all work at the same time."""
    folder = tmp_path_factory.mktemp("processors")
    running = {}
    for name, settings in processors(folder).items():
        (folder / name).mkdir()
        environment = {**os.environ, "EVENRANK_CACHE": str(folder / name / "cache"), **settings}
        command = [sys.executable, str(MAKING), "made", "demo"]
        running[name] = subprocess.Popen(
            command, cwd=folder / name, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
    for name, process in running.items():
        _, said = process.communicate()
        assert process.returncode == 0, f"{name}: {said.decode()}"
    yield {name: folder / name / "made" for name in running}


@pytest.mark.parametrize("other", ["avx2", "old"])
def test_every_processor_makes_the_same_bytes(made: dict[str, Path], other: str) -> None:
    here, there = (
        {path.relative_to(made[name]): path.read_bytes() for path in made[name].rglob("*") if path.is_file()}
        for name in ("this", other)
    )
    assert {*here} == {*there}
    assert {Path("demo/tally.parquet"), Path("demo/audit.json"), Path("demo/report.html")} <= {*here}
    assert [str(name) for name in here if here[name] != there[name]] == []
