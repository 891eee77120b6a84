"""Saved models: plain arrays, checked to the last byte."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest

from evenrank import InputError
from evenrank.data.files import check_names, is_model, packed, read_model, write_model, writing_folder
from evenrank.queries.model import StaticClassifier, load_classifier


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_model(tmp_path / "m", "lexicon", {"a": 1}, {"x.npz": packed({"v": np.arange(3)})})
    return tmp_path / "m"


def test_what_is_written_comes_back(folder: Path) -> None:
    saved = read_model(folder)
    assert saved.kind == "lexicon" and saved.facts == {"a": 1}
    assert saved.arrays("x.npz")["v"].tolist() == [0, 1, 2]


def test_the_same_model_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    write_model(tmp_path / "n", "lexicon", {"a": 1}, {"x.npz": packed({"v": np.arange(3)})})
    for name in ("model.json", "x.npz"):
        assert (folder / name).read_bytes() == (tmp_path / "n" / name).read_bytes()


def test_a_changed_array_is_refused(folder: Path) -> None:
    content = bytearray((folder / "x.npz").read_bytes())
    content[-30] ^= 1
    (folder / "x.npz").write_bytes(content)
    with pytest.raises(InputError, match="changed after the model was saved"):
        read_model(folder)


@pytest.mark.parametrize("value", [2, "half a character: \ud800"])
def test_a_changed_header_is_refused(folder: Path, value: int | str) -> None:
    header = json.loads((folder / "model.json").read_text())
    header["facts"]["a"] = value
    (folder / "model.json").write_text(json.dumps(header))
    with pytest.raises(InputError, match="header was changed"):
        read_model(folder)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 1}', "not json"])
def test_what_is_no_header_is_refused(folder: Path, content: str) -> None:
    (folder / "model.json").write_text(content)
    with pytest.raises(InputError, match=r"model\.json"):
        read_model(folder)


def test_a_later_version_is_refused(folder: Path) -> None:
    header = json.loads((folder / "model.json").read_text()) | {"version": 99}
    (folder / "model.json").write_text(json.dumps(header))
    with pytest.raises(InputError, match="version 99"):
        read_model(folder)


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "x.npz").unlink()
    with pytest.raises(InputError, match=r"x\.npz: no such file"):
        read_model(folder)


def test_pickled_arrays_are_never_opened(tmp_path: Path) -> None:
    objects = np.array([{"a": 1}], object)
    write_model(tmp_path / "m", "static", {}, {"static.npz": packed({"table": objects})})
    with pytest.raises(InputError, match="cannot be read"):
        StaticClassifier.load(tmp_path / "m")


def test_a_folder_that_is_no_model_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match="is not a model"):
        write_model(tmp_path, "lexicon", {}, {})
    assert (tmp_path / "thesis.txt").read_text() == "precious"


def test_another_kind_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="a lexicon model, not a static one"):
        read_model(folder, "static")


def test_unknown_names_list_what_there_is() -> None:
    with pytest.raises(InputError, match="choose static, lexicon or the folder"):
        load_classifier("statik")


def test_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such model"):
        load_classifier(tmp_path / "none")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused_though_the_checksum_vouches_for_them(
    tmp_path: Path, value: float
) -> None:
    write_model(tmp_path / "m", "lexicon", {}, {"x.npz": packed({"v": np.array([1.0, value])})})
    with pytest.raises(InputError, match="not finite"):
        read_model(tmp_path / "m").arrays("x.npz")


def test_a_model_is_replaced_in_one_step(tmp_path: Path) -> None:
    """While one thread replaces a model, another never finds none."""
    target, found, stop = tmp_path / "m", [], threading.Event()
    big = {number: {"x.npz": packed({"v": np.full(1000, number)})} for number in (1, 2)}
    write_model(target, "lexicon", {"n": 1}, big[1])

    def read() -> None:
        while not stop.is_set():
            try:
                saved = read_model(target)
                found.append(int(saved.facts["n"]))
            except InputError as error:
                found.append(str(error))

    reader = threading.Thread(target=read)
    reader.start()
    for number in [2, 1] * 20:
        write_model(target, "lexicon", {"n": number}, big[number])
    stop.set()
    reader.join()
    assert target.is_dir() and [p.name for p in tmp_path.iterdir()] == ["m"]
    assert found and not [f for f in found if isinstance(f, str) and "no such" in f]


@pytest.mark.parametrize(
    "names",
    [
        [""],
        ["/a"],
        [".."],
        ["a/../b"],
        ["./a"],
        ["a//b"],
        ["a/"],
        ["a\\b"],
        ["a\nb"],
        ["a", "a"],
        ["a", "a/b"],
    ],
)
def test_names_that_lead_elsewhere_are_refused(names: list[str]) -> None:
    check_names(["a/b", "a/c.json", "d …"], "x.zip")
    with pytest.raises(InputError, match=r"^x\.zip: it names .*"):
        check_names(names, "x.zip")


@pytest.mark.parametrize("name", ["secret.txt", "folder/secret.txt"])
def test_a_link_out_of_a_model_is_not_followed(tmp_path: Path, name: str) -> None:
    write_model(tmp_path / "m", "lexicon", {}, {name: b"secret"})
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.txt").write_bytes(b"secret")
    assert read_model(tmp_path / "m").files == {name: b"secret"}
    (tmp_path / "m" / name).unlink()
    if "/" in name:
        (tmp_path / "m" / "folder").rmdir()
        (tmp_path / "m" / "folder").symlink_to(tmp_path / "elsewhere")
    else:
        (tmp_path / "m" / name).symlink_to(tmp_path / "elsewhere" / name)
    with pytest.raises(InputError, match="is a link that leads outside its folder"):
        read_model(tmp_path / "m")


def test_a_model_may_lie_behind_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    assert read_model(tmp_path / "link").files.keys() == {"x.npz"}
    write_model(tmp_path / "link", "lexicon", {"a": 2}, {})
    assert (tmp_path / "link").is_symlink() and read_model(folder).facts == {"a": 2}


def test_a_folder_that_cannot_be_put_in_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "m"
    with writing_folder(target) as part:
        (part / "a").write_text("old")

    def fails(self: Path, other: Path) -> Path:
        if self.name.endswith(".tmp"):
            raise OSError(5, "Input/output error")
        return rename(self, other)

    rename = Path.replace
    monkeypatch.setattr(Path, "replace", fails)
    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(InputError, match="cannot be written"), writing_folder(target) as part:
        (part / "a").write_text("new")
    assert (target / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_replacement_that_was_killed_half_way_is_undone_at_the_next_open(folder: Path) -> None:
    folder.rename(folder.with_name(".m.0123abcd.old"))
    assert is_model(folder) and read_model(folder).facts == {"a": 1}
    folder.rename(folder.with_name(".m.0123abcd.old"))
    with pytest.raises(ZeroDivisionError), writing_folder(folder):
        raise ZeroDivisionError
    assert read_model(folder).facts == {"a": 1}
    assert [path.name for path in folder.parent.iterdir()] == ["m"]


def test_two_threads_write_the_same_folder_without_mixing(tmp_path: Path) -> None:
    both = threading.Barrier(2)

    def write(who: str) -> None:
        with writing_folder(tmp_path / "m") as part:
            (part / who).write_text(who)
            both.wait(10)

    threads = [threading.Thread(target=write, args=(who,)) for who in "ab"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert len([*(tmp_path / "m").iterdir()]) == 1
