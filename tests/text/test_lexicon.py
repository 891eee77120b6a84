"""Lexicons: what ships, what users bring, and how bad files are refused."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path

import pytest

from evenrank.errors import InputError
from evenrank.text import wordlists
from evenrank.text.lexicon import Lexicon, lexicon, shipped

LANGUAGES = {"spanish": "es", "french": "fr", "german": "de", "italian": "it"}

CSV = "word,group\nshe,f\nher,f\nex-girlfriend,f\nhe,m\nMan,M\nprime minister,m\n"
TOML = 'name = "mine"\nlanguage = "en"\n[groups]\nmale = ["he", "man"]\nfemale = ["she", "wom*"]\n'
JSON = json.dumps({"name": "mine", "groups": {"male": ["he", "man"], "female": ["she", "wom*"]}}, indent=1)
DIC = "%\n1\tmale\n2\tfemale\n3\tfamily\n%\nhe\t1\nmother\t2\t3\nwom*\t2\nstep father\t1\t3\n"


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(source: object, *parts: str) -> None:
    with pytest.raises(InputError) as caught:
        lexicon(source)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message, message


# What ships


def test_two_published_and_four_experimental_lexicons_ship() -> None:
    assert shipped() == ("fabris2020", "french", "german", "italian", "rekabsaz2020", "spanish")
    assert [name for name in shipped() if lexicon(name).experimental] == sorted(LANGUAGES)


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_lexicon_is_named_cited_and_explained(name: str) -> None:
    words = lexicon(name)
    assert words.name == name
    assert words.source and words.note
    assert list(words.groups) == ["female", "male"]
    assert not words.overlapping


def test_rekabsaz2020_has_32_words_for_each_gender() -> None:
    groups = lexicon("rekabsaz2020").groups
    assert {group: len(words) for group, words in groups.items()} == {"female": 32, "male": 32}
    assert "she" in groups["female"] and "his" in groups["male"]


def test_rekabsaz2020_is_the_published_file(shared: Path) -> None:
    assert lexicon(shared / "data/wordlists/rekabsaz2020.csv").hash == lexicon("rekabsaz2020").hash


def test_the_list_behind_published_nfairr_can_be_loaded(shared: Path) -> None:
    groups = lexicon(shared / "data/wordlists/rekabsaz2021.csv").groups
    assert {group: len(words) for group, words in groups.items()} == {"female": 163, "male": 163}


def test_fabris2020_is_kept_as_printed_without_its_repetition() -> None:
    groups = lexicon("fabris2020").groups
    assert {group: len(words) for group, words in groups.items()} == {"female": 81, "male": 89}
    assert groups["female"].count("ex-girlfriends") == 1
    assert "exgirlfriend" in groups["female"] and "exgirlfriends" not in groups["female"]


@pytest.mark.parametrize(("name", "language"), LANGUAGES.items())
def test_experimental_lexicons_have_forty_words_a_side_and_say_so(name: str, language: str) -> None:
    words = lexicon(name)
    assert words.language == language
    assert all(len(entries) >= 40 for entries in words.groups.values())
    assert "Experimental" in words.note and "Grammatical gender" in words.note


@pytest.mark.parametrize(
    ("name", "ambiguous"),
    [
        ("spanish", "su sus el la lo ellos padres hijos esposas prima primo papa don niño"),
        ("french", "il elle ils elles lui leur son sa ses fils dame m mme époux"),
        ("german", "er sie ihr ihn ihm sein junge jungen man muttern enkel verlobte"),
        (
            "italian",
            "lei lui suo sua gli le la lo signore figli fratelli nipote compare principi papa bambino",
        ),
    ],
)
def test_words_that_only_agree_in_grammar_or_mean_something_else_are_left_out(
    name: str, ambiguous: str
) -> None:
    entries = {word for words in lexicon(name).groups.values() for word in words}
    assert not entries & set(ambiguous.split())


# One lexicon from any source


def test_every_format_gives_the_same_lexicon(tmp_path: Path) -> None:
    groups = {"m": ["he", "man"], "f": ["she", "wom*"]}
    files = {
        "a.csv": "he,m\nman,m\nshe,f\nwom*,f\n",
        "a.tsv": "word\tgender\nhe\tM\nman\tM\nshe\tF\nwom*\tF\n",
        "a.toml": 'm = ["he", "man"]\nf = ["she", "wom*"]\n',
        "a.json": json.dumps(groups),
        "b.toml": TOML,
        "b.json": JSON,
    }
    found = {lexicon(write(tmp_path, name, text)).hash for name, text in files.items()}
    assert found == {lexicon(groups).hash}
    dic = write(tmp_path, "a.dic", "%\n1 male\n2 female\n%\nhe 1\nman 1\nshe 2\nwom* 2\n")
    assert lexicon(dic).groups == lexicon(groups).groups


def test_whether_words_may_overlap_is_part_of_what_is_counted() -> None:
    groups = {"female": ("wom*",), "male": ("woman",)}
    assert Lexicon("x", groups).hash != Lexicon("x", groups, overlapping=True).hash


def test_a_long_file_of_words_is_read_without_looking_for_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> int:
        raise AssertionError("looked for a line")

    monkeypatch.setattr(wordlists, "_line_of", never)
    groups = {"f": ["she", "her"], "m": ["he"]}
    assert lexicon(write(tmp_path, "a.json", json.dumps(groups))).groups == lexicon(groups).groups


def test_female_comes_before_male_whatever_the_source_says(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "he,m\nxe,other\nshe,f\nthey,more\n")
    assert list(lexicon(path).groups) == ["female", "male", "other", "more"]
    assert list(lexicon({"Male": ["he"], "Female": ["she"]}).groups) == ["female", "male"]
    assert list(lexicon(write(tmp_path, "a.dic", DIC)).groups) == ["female", "male", "family"]
    assert list(lexicon("rekabsaz2020", groups=("male", "female")).groups) == ["female", "male"]


def test_a_lexicon_is_passed_through_untouched() -> None:
    words = lexicon("rekabsaz2020")
    assert lexicon(words) is words


def test_words_are_lower_cased_and_stand_once_in_their_order() -> None:
    assert lexicon({"names": ["Willie", "Ann", "ANN", " Mary   Ann ", "É"]}).groups["names"] == (
        "willie",
        "ann",
        "mary ann",
        "é",
    )


def test_bom_crlf_and_blank_lines_are_accepted(tmp_path: Path) -> None:
    for name, text in {"a.csv": CSV, "a.toml": TOML, "a.json": JSON, "a.dic": DIC}.items():
        plain = lexicon(write(tmp_path, name, text))
        windows = lexicon(
            write(tmp_path, name, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() + b"\r\n")
        )
        assert windows == plain


def test_a_header_may_name_the_columns_in_either_order(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "gender,word\nf,she\nm,he\n")
    assert lexicon(path).groups == {"female": ("she",), "male": ("he",)}


def test_a_file_without_header_keeps_its_first_line(tmp_path: Path) -> None:
    assert lexicon(write(tmp_path, "a.csv", "she,f\nhe,m\n")).groups["female"] == ("she",)


def test_metadata_of_a_file_is_kept_and_the_name_defaults_to_the_file(tmp_path: Path) -> None:
    assert lexicon(write(tmp_path, "a.toml", TOML)).name == "mine"
    assert lexicon(write(tmp_path, "short.csv", CSV)).name == "short"
    assert lexicon({"f": ["she"]}).name == "custom"


def test_the_hash_depends_on_the_words_and_not_on_name_or_order_of_words() -> None:
    one = Lexicon("one", {"a": ("x", "y"), "b": ("z",)})
    assert one.hash == Lexicon("two", {"a": ("y", "x"), "b": ("z",)}, note="other").hash
    assert one.hash != Lexicon("one", {"a": ("x",), "b": ("z", "y")}).hash
    assert one.hash != Lexicon("one", {"b": ("z",), "a": ("x", "y")}).hash  # the sign would differ


def test_the_hash_stays_the_same_from_release_to_release() -> None:
    assert lexicon("rekabsaz2020").hash == "2baed13e8a1c75c09c5250a9ad52f8a4"


@pytest.mark.parametrize("name", shipped())
def test_a_lexicon_survives_json_pickle_and_its_own_file(name: str, tmp_path: Path) -> None:
    words = lexicon(name)
    text = json.dumps(words.to_dict())
    assert Lexicon.from_dict(json.loads(text)) == words
    assert pickle.loads(pickle.dumps(words)) == words
    assert lexicon(write(tmp_path, "again.json", text)) == words


def test_groups_are_read_only() -> None:
    with pytest.raises(TypeError):
        lexicon("rekabsaz2020").groups["female"] = ()  # type: ignore[index]


# Dictionaries


def test_a_dic_entry_may_belong_to_many_categories(tmp_path: Path) -> None:
    words = lexicon(write(tmp_path, "a.dic", DIC))
    assert words.overlapping
    assert words.groups["family"] == ("mother", "step father")
    assert words.groups["female"] == ("mother", "wom*")


def test_categories_of_a_dic_can_be_chosen(tmp_path: Path) -> None:
    path = write(tmp_path, "a.dic", DIC)
    assert list(lexicon(path, groups=("family",)).groups) == ["family"]
    with pytest.raises(
        InputError, match=r"no group 'famly'; did you mean 'family'\? there are: female, male"
    ):
        lexicon(path, groups=("famly",))


def test_descriptions_of_categories_and_unused_categories_are_dropped(tmp_path: Path) -> None:
    path = write(tmp_path, "a.dic", "%\n10\tsocial (Social Words)\n\t11\tfriend (Friends)\n%\npal*\t011\n")
    assert lexicon(path).groups == {"friend": ("pal*",)}


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        ("1\tfemale\n%\nshe\t1\n", 1, "starts with a line that is just %"),
        ("%\n1\tfemale\nshe\t1\n", None, "second % line"),
        ("%\n1\tfemale\n%\nshe\t2\n", 4, "category 2 is not declared"),
        ("%\n1\tfemale\n%\nshe\n", 4, "names no category"),
        ("%\n1\tfemale\n1\tmale\n%\nshe\t1\n", 3, "declared twice"),
        ("%\none\tfemale\n%\nshe\t1\n", 2, "number<tab>category"),
        ("%\n1\tfemale\n%\nlike\t(02 134)125/464\n", 4, "conditional"),
        ("%\n1\tfemale\n%\nw*n\t1\n", 4, "star"),
        ("%\n1\tfemale\n%\n", None, "no words"),
    ],
)
def test_a_malformed_dic_is_refused_with_its_line(
    tmp_path: Path, content: str, line: int | None, what: str
) -> None:
    path = write(tmp_path, "bad.dic", content)
    refused(path, f"{path}:{line}:" if line else f"{path}:", what)


# Refusals


@pytest.mark.parametrize(
    ("name", "content", "line", "what"),
    [
        ("a.csv", "", None, "empty"),
        ("a.csv", "\n \n", None, "empty"),
        ("a.csv", "word,group\n", None, "no words"),
        ("a.csv", "she,f\n,m\n", 2, "empty word"),
        ("a.csv", "she,f\n,\n", 2, "without a word"),
        ("a.csv", "she,f\nhe,\n", 2, "group without a name"),
        ("a.csv", "she,f\nhe\n", 2, "expected two columns"),
        ("a.csv", "she,f\nhe,m,x\n", 2, "expected two columns"),
        ("a.csv", 'she,f\n"he,m\n', 2, "CSV"),
        ("a.csv", "she,f\nhe,m\nSHE,m\n", 3, "'she' is in two groups, 'female' and 'male'"),
        ("a.csv", "she,f\nw*man,f\n", 2, "star"),
        ("a.csv", "she,f\n*,f\n", 2, "every word"),
        ("a.csv", "she,f\nprime *,f\n", 2, "star"),
        ("a.csv", "she,tokens\n", 1, "name of a group"),
        ("a.csv", "she,female_logwords\n", 1, "name of a group"),
        ("a.csv", b"she,f\nm\xe4n,m\n", 2, "UTF-8"),
        ("a.csv", b"\xff\xfes\x00", 1, "UTF-8"),
        ("a.toml", "female = [", 1, "TOML"),
        ("a.toml", 'f = ["she"]\nm = ["he",\n"she"]', 3, "two groups"),
        ("a.toml", 'f = "she"', None, "not a list"),
        ("a.toml", "f = [1]", None, "not a word"),
        ("a.toml", "f = []", None, "no words"),
        ("a.toml", 'nme = "x"\n[groups]\nf = ["she"]', None, "unknown key 'nme'"),
        ("a.toml", 'experimental = "yes"\n[groups]\nf = ["she"]', None, "experimental should be bool"),
        ("a.json", '{"f": ["she"],\n "m": [}', 2, "JSON"),
        ("a.json", "[1]", None, "expected"),
        ("a.json", '{"f": ["she"], "f": ["her"]}', None, "twice"),
        ("a.json", '{"f": ["\\ud800"]}', None, "character"),
        ("a.json", "[" * 200_000, None, "JSON"),
        ("a.txt", "she,f\n", None, ".csv, .dic, .json, .toml, .tsv"),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_line(
    tmp_path: Path, name: str, content: str | bytes, line: int | None, what: str
) -> None:
    path = write(tmp_path, name, content)
    refused(path, f"{path}:{line}:" if line else f"{path}:", what)


def test_an_unknown_name_gets_a_suggestion_and_the_list() -> None:
    refused("rekabsaz2002", "did you mean 'rekabsaz2020'?", "fabris2020, french")


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    refused(str(tmp_path / "none.csv"), "none.csv", "no such file")
    (tmp_path / "folder.csv").mkdir()
    refused(tmp_path / "folder.csv", "this is a folder; name a file")


@pytest.mark.parametrize(
    "source", [None, 3, {}, {"f": "she"}, {"f": []}, {1: ["she"]}, {"f": [""]}, {"f": [None]}]
)
def test_other_things_than_words_are_refused(source: object) -> None:
    refused(source)


@pytest.mark.slow
def test_ten_thousand_damaged_files_are_read_or_refused_by_name(tmp_path: Path) -> None:
    chance = random.Random(20)
    originals = {"a.csv": CSV, "a.toml": TOML, "a.json": JSON, "a.dic": DIC}
    pieces = [
        b"*",
        b"%",
        b",",
        b"\t",
        b"\n",
        b"\r",
        b'"',
        b"'",
        b"\0",
        b"\xff",
        b"\xed\xa0\x80",
        b"{",
        b"[",
        b"]",
    ]
    pieces += [b"\\ud800", b"\\", b"=", b"9" * 30, b"groups", "İß\u2028".encode(), b"\x1c", b"true", b"nan"]
    read = 0
    for _ in range(10_000):
        name = chance.choice(list(originals))
        data = bytearray(originals[name].encode())
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(data) + 1)
            end = min(len(data), place + chance.choice([0, 0, 1, 1, 5, 20]))
            again = data[(other := chance.randrange(len(data) + 1)) : other + chance.randint(0, 20)]
            data[place:end] = chance.choice([*pieces, bytes(again), b""])
        path = write(tmp_path, name, bytes(data))
        try:
            words = lexicon(path)
        except InputError as error:
            assert name in str(error) and "\n" not in str(error)
        else:
            read += 1
            assert words.hash and all(words.groups.values())
            assert Lexicon.from_dict(json.loads(json.dumps(words.to_dict()))) == words
    assert 1_000 < read < 9_000  # the damage is neither always fatal nor always harmless
