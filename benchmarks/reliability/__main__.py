from __future__ import annotations

import json
import sys

import evenrank as er
from benchmarks import reliability


def main(given: list[str]) -> int:
    if given[:1] == ["--here"]:
        print(json.dumps(reliability.here(given[1])))
        return 0
    for name in given or reliability.missing(reliability.gathered()):
        chosen = [each for each in reliability.SECTIONS if each == name or each.startswith(f"{name}:")]
        if not chosen:
            print(f"there is no section {name}; there are {', '.join(reliability.SECTIONS)}", file=sys.stderr)
            return 2
        for each in chosen:
            reliability.run(each)
            print(f"{each}: {json.dumps(json.loads(reliability.kept(each).read_text()))[:300]}", flush=True)
    content = {"command": "python -m benchmarks.evidence reliability", "evenrank": er.__version__}
    whole = {**content, "results": reliability.gathered()}
    reliability.write_table(whole["results"])  # type: ignore[arg-type]
    reliability.EVIDENCE.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
    return 0


sys.exit(main(sys.argv[1:]))
