"""What users are told can be printed anywhere, and names that are nearly right are recognised."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenrank.data.runs import read_run
from evenrank.errors import MAX_MESSAGE_LENGTH, InputError, closest_match, printable
from evenrank.text.lexicon import lexicon


def test_terminal_escapes_are_shown_not_obeyed() -> None:
    error = InputError("no query \x1b[2J\u202eevil\x9b1m", path="a\x1b]0;b\x07")
    assert str(error) == r"a\x1b]0;b\x07: no query \x1b[2J\u202eevil\x9b1m"


def test_letters_of_any_script_stay_as_they_are() -> None:
    assert printable("Ünï — 中文 👩‍⚕️\tx\ny") == "Ünï — 中文 👩‍⚕️\tx\ny"


def test_an_endless_message_keeps_its_beginning_and_its_end() -> None:
    text = str(InputError("the id " + "x" * 1_000_000 + " is twice", path="run.txt", line=3))
    assert len(text) < MAX_MESSAGE_LENGTH + 100
    assert text.startswith("run.txt:3: the id xxx") and text.endswith("xxx is twice") and "998,0" in text


def test_a_file_name_that_is_no_utf8_can_be_told(tmp_path: Path) -> None:
    name = bytes(tmp_path / "run-") + b"\xff.txt"
    path = Path(name.decode(errors="surrogateescape"))
    with pytest.raises(InputError, match="no such file") as caught:
        read_run(path)
    str(caught.value).encode()
    path.write_text("q1 Q0 d1 1 0.5 t\n")
    assert len(read_run(path)) == 1


def test_nearest_looks_past_case_and_gives_the_name_itself() -> None:
    assert closest_match("arab", ["RaB", "ARaB"]) == "ARaB"
    assert closest_match("zzz", ["RaB", "ARaB"]) is None
    assert closest_match("x" * 1_000_000, ["RaB"]) is None
    assert closest_match("a", []) is None


def test_a_category_name_of_many_blanks_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "d.dic"
    path.write_text("%\n1\tanger" + " " * 80_000 + "x\n2\tfear  (Of All)\n%\nrage\t1\nfright\t2\n")
    groups = list(lexicon(path).groups)
    assert groups[1] == "fear" and groups[0].startswith("anger ")
