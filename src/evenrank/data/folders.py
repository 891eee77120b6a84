"""Which file of a folder is the collection, the queries, the judgements."""

from __future__ import annotations

from pathlib import Path

from evenrank.data.columns import listing
from evenrank.errors import InputError

SUFFIXES = (".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".trec", ".qrels", ".topics", ".xml")


def find(folder: Path, kind: str, split: str | None, *, required: bool = True) -> Path | None:
    """The file ``kind[.split].suffix[.gz|.zst]``; where there are several, ``split`` has to choose."""
    found: dict[Path, str] = {}
    for path in sorted(folder.iterdir()):
        plain = path.with_suffix("") if path.suffix.lower() in (".gz", ".zst") else path
        name, *parts = plain.stem.split(".")
        if name == kind and plain.suffix.lower() in SUFFIXES and path.is_file():
            found[path] = ".".join(parts)
    chosen = list(found)
    if split is not None and (any(found.values()) or kind == "queries"):
        chosen = [path for path, part in found.items() if part == split]
        if not chosen and kind == "docs":  # one collection may serve all splits
            chosen = [path for path, part in found.items() if not part]
        if not chosen and found:
            known = listing(dict.fromkeys(part for part in found.values() if part))
            raise InputError(f"no {kind} for split {split!r}; splits there: {known}", path=folder)
    if len(chosen) > 1:
        names = listing(path.name for path in chosen)
        splits = listing(dict.fromkeys(found[path] for path in chosen if found[path]))
        way_out = f"choose with split= one of {splits}" if split is None and splits != "none" else "keep one"
        raise InputError(f"several {kind} files: {names}; {way_out}", path=folder)
    if not chosen and required:
        raise InputError(f"no {kind} file; expected {kind}.tsv, .jsonl or .parquet", path=folder)
    return chosen[0] if chosen else None
