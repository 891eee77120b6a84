"""Make the golden file anew, when numbers are meant to change: `python -m tests.golden.refresh`.

The folder with squad is found through EVENRANK_TEST_DATA; without it only what comes of the demo is renewed.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.golden import making

GOLDEN = Path(__file__).with_name("golden.json")


def found(folder: Path) -> dict[str, dict[str, Any]]:
    """Hashes of what was made, and the main values."""
    every = making.files(folder)
    return {
        "sha256": {name: making.fingerprint(path) for name, path in every.items()},
        "values": {name: making.values(every[name]) for name in every if name in making.MEASURED},
    }


def main() -> None:
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    shared = os.environ.get("EVENRANK_TEST_DATA")
    with tempfile.TemporaryDirectory() as folder:
        making.demo(Path(folder))
        golden["demo"] = found(Path(folder))
    if shared:
        with tempfile.TemporaryDirectory() as folder:
            making.squad(Path(folder), Path(shared).resolve())
            golden["squad"] = found(Path(folder))
    GOLDEN.write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n")
    print(f"{GOLDEN} is new; look at the difference before it is committed, and say in the commit why")


if __name__ == "__main__":
    main()
