"""Files are read as whole lines, whatever their compression, and written whole or not at all."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import evenrank as er
from evenrank.data import files
from evenrank.data.docs import open_docs
from evenrank.data.files import packed, write_model
from evenrank.data.runs import read_run
from evenrank.errors import InputError

zstd = partial(pa.Codec("zstd").compress, asbytes=True)

LINES = b"".join(b"%d\tline %d\n" % (n, n) for n in range(5000))
PACKED = {"plain": lambda data: data, "gzip": gzip.compress, "zstd": zstd}


@pytest.mark.parametrize("kind", PACKED)
def test_compression_is_told_by_content_and_not_by_name(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "docs.tsv"
    path.write_bytes(PACKED[kind](LINES))
    assert files.whole(path) == LINES


@given(
    lines=st.lists(st.sampled_from([b"", b"\r", b"a", b"\xef\xbb\xbf", b"words", b"x" * 40]), max_size=20),
    size=st.integers(1, 64),
    marked=st.booleans(),
    last=st.booleans(),
)
@example(lines=[b"a", b"", b"", b""], size=1, marked=False, last=True)  # blank lines fill a part
def test_parts_of_a_file_are_read_alone(
    lines: list[bytes], size: int, marked: bool, last: bool, tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"\xef\xbb\xbf" * marked + b"\n".join(lines) + b"\n" * last)
    parts = files.line_parts(path, size)
    assert parts[0][0] == 0 and parts[-1][1] == path.stat().st_size
    found = [raw for part in parts for raw in files.raw_blocks(path, block=16, part=part)]
    assert all(raw.line > 1 for raw in found[1:])
    expected = b"".join(raw.data for raw in files.raw_blocks(path))
    full = [line for line in expected.split(b"\n") if line.strip()]
    assert [line for raw in found for line in raw.data.split(b"\n") if line.strip()] == full


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_packed_file_is_one_part(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "docs.tsv"
    path.write_bytes(PACKED[kind](LINES))
    (part,) = files.line_parts(path, 100)
    assert b"".join(raw.data for raw in files.raw_blocks(path, part=part)) == LINES


@pytest.mark.parametrize("kind", PACKED)
def test_block_sizes_add_up_to_the_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "docs.tsv"
    path.write_bytes(PACKED[kind](LINES))
    blocks = list(files.raw_blocks(path, block=4096))
    assert len(blocks) > 10
    assert sum(block.stored for block in blocks) == path.stat().st_size
    assert all(block.data.endswith(b"\n") for block in blocks)


@given(
    lines=st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=20),
    block=st.integers(1, 64),
    last=st.booleans(),
)
def test_blocks_hold_every_line_but_blank_ones_at_the_end(
    lines: list[bytes], block: int, last: bool, tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    data = b"\n".join(lines) + (b"\n" if last else b"")
    path.write_bytes(b"\xef\xbb\xbf" + data)
    expected = data.split(b"\n")
    while expected and not expected[-1].strip(b" \t\r"):
        expected.pop()
    blocks = list(files.raw_blocks(path, block=block))
    found = b"".join(raw.data for raw in blocks)
    assert found.split(b"\n")[:-1] == expected
    before = [b"".join(raw.data for raw in blocks[:k]) for k in range(len(blocks))]
    assert [raw.line for raw in blocks] == [1 + content.count(b"\n") for content in before]


def test_several_gzip_members_and_zstd_frames_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "docs"
    for pack in (gzip.compress, zstd):
        path.write_bytes(pack(b"a\n") + pack(b"b\n"))
        assert files.whole(path) == b"a\nb\n"


def test_a_skippable_zstd_frame_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "docs.zst"
    path.write_bytes(b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + zstd(b"a\n"))
    assert files.whole(path) == b"a\n"


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_truncated_archive_is_refused(pack, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "docs.tsv.gz"
    packed = pack(os.urandom(10_000).hex().encode())
    for cut in (5, 50, len(packed) // 2, len(packed) - 1):
        path.write_bytes(packed[:cut])
        with pytest.raises(InputError, match=r"docs.tsv.gz: cannot be read: Truncated"):
            files.whole(path)


def test_damage_that_only_the_checksum_shows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "docs.gz"
    packed = bytearray(gzip.compress(LINES))
    packed[-6] ^= 1
    path.write_bytes(packed)
    with pytest.raises(InputError, match="cannot be read"):
        files.whole(path)


@pytest.mark.parametrize("content", [bz2.compress(LINES), lzma.compress(LINES), "a\tb".encode("utf-16")])
def test_other_compressions_and_encodings_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "docs.tsv").write_bytes(content)
    for read in (files.whole, open_docs, read_run):
        with pytest.raises(InputError, match=r"docs\.tsv:1: .*give UTF-8 text, plain or as gzip or zstd"):
            read(tmp_path / "docs.tsv")


def test_a_line_longer_than_a_block_makes_a_longer_block(tmp_path: Path) -> None:
    path = tmp_path / "docs"
    path.write_bytes(b"a\n" + b"x" * 3_000_000 + b"\nb\n")
    assert b"".join(raw.data for raw in files.raw_blocks(path, block=1000)) == path.read_bytes()


def test_a_line_that_is_too_long_is_refused_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST", 10_000)
    path = tmp_path / "docs"
    path.write_bytes(b"a\nb\n" + b"x" * 30_000 + b"\n")
    with pytest.raises(InputError, match=r"docs:3: a line is longer"):
        list(files.raw_blocks(path, block=1000))


def test_a_pipe_can_be_read_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(LINES,))
    writer.start()
    assert files.whole(path) == LINES
    writer.join()


def test_what_is_read_twice_cannot_be_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        files.require_regular(tmp_path / "pipe")


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_what_is_written_is_read_again_and_always_the_same_bytes(suffix: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.run{suffix}" for name in "ab"]
    for path in paths:
        with files.writing(path) as out:
            out.write(LINES)
    assert files.whole(paths[0]) == LINES
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert files.fingerprint(paths[0]) == files.fingerprint(paths[1])
    assert (paths[0].stat().st_size < len(LINES)) == bool(suffix)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "bm25.run"
    path.write_text("old")
    with pytest.raises(RuntimeError), files.writing(path) as out:
        out.write(b"half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with files.writing(tmp_path / "link") as out:
        out.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_a_device_is_written_to_and_not_replaced() -> None:
    with files.writing("/dev/null") as out:
        out.write(b"gone")
    assert not Path("/dev/null").is_file()


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"), files.writing(tmp_path / "no" / "x.run"):
        pass


def test_the_fingerprint_is_that_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "docs"
    path.write_bytes(b"")
    assert files.fingerprint(path) == "99aa06d3014798d86001c324468d497f"  # XXH3-128 of nothing


def _file(path: Path) -> None:
    with files.writing(path) as out:
        out.write(LINES)


@pytest.mark.parametrize(
    "write",
    [
        _file,
        lambda path: er.tally({"d": "he"}).write(path.with_suffix(".parquet")),
        lambda path: write_model(path, "lexicon", {}, {"x.npz": packed({"v": np.array([1.0])})}),
    ],
    ids=["file", "tally", "model"],
)
def test_what_gets_its_name_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None]
) -> None:
    done: list[str] = []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda file: (done.append("settled"), sync(file))[1])
    monkeypatch.setattr(Path, "replace", lambda old, new: (done.append("named"), replace(old, new))[1])
    write(tmp_path / "x.run")
    assert done[0] == "settled" and done[-1] == "named" and done.count("named") == 1
