"""The kernel against a slow matcher written straight from the definition."""

from __future__ import annotations

import collections
import math
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.errors import InputError
from evenrank.text import kernel  # noqa: F401 (once it is loaded, all counting goes to it)
from evenrank.text.lexicon import Lexicon
from evenrank.text.matcher import Matcher
from evenrank.text.tokens import Tokenizer, tokens

GENDER = {
    "female": ["she", "her", "woman", "grandmothers", "ex-girlfriend", "first lady", "fiancée", "wom*"],
    "male": ["he", "his", "man", "prime minister", "prime", "ex-boyfriend", "grandfather", "señor*", "k"],
}


def reference(text: str, lexicon: Lexicon, tokenizer: Tokenizer) -> tuple[int, list[int], list[float]]:
    """Tokens, counts and logwords of one text: at each token the longest entry wins."""
    entries: dict[tuple[tuple[str, ...], bool], set[int]] = {}
    for number, words in enumerate(lexicon.groups.values()):
        for word in words:
            key = (tuple(tokens(word.removesuffix("*"), tokenizer)), word.endswith("*"))
            entries.setdefault(key, set()).add(number)
    text_tokens = tokens(text, tokenizer)
    widest = max(len(parts) for parts, _ in entries)
    hits: collections.Counter[tuple[tuple[str, ...], bool]] = collections.Counter()
    place = 0
    while place < len(text_tokens):
        matching = [key for key in entries if _matches(text_tokens[place : place + widest], *key)]
        matching.sort(key=lambda key: (len(key[0]), not key[1], len(key[0][-1])), reverse=True)
        if matching:
            best = matching[0]
            hits[best] += 1
            place += len(best[0])
        else:
            place += 1
    counts, logwords = [0] * len(lexicon.groups), [0.0] * len(lexicon.groups)
    for key, times in hits.items():
        groups = set(entries[key])
        if lexicon.overlapping and len(key[0]) == 1:
            for (other, is_open), more in entries.items():
                if is_open and len(other) == 1 and key[0][0].startswith(other[0]):
                    groups |= more
        for group in groups:
            counts[group] += times
            logwords[group] += math.log1p(times)
    return len(text_tokens), counts, logwords


def _matches(rest: list[str], parts: tuple[str, ...], is_open: bool) -> bool:
    if len(rest) < len(parts) or tuple(rest[: len(parts) - 1]) != parts[:-1]:
        return False
    last = rest[len(parts) - 1]
    return last.startswith(parts[-1]) if is_open else last == parts[-1]


def agree(matcher: Matcher, texts: list[str]) -> None:
    for behind in ([], ["-" * 100]):  # the last hundred bytes are read character by character
        _agree(matcher, [*texts, *behind])


def _agree(matcher: Matcher, texts: list[str]) -> None:
    found = matcher.count(texts)
    for row, text in enumerate(texts):
        size, counts, logwords = reference(text, matcher.lexicon, matcher.tokenizer)
        assert found.tokens[row] == size, text
        assert found.counts[row].tolist() == counts, text
        assert found.logwords[row] == pytest.approx(logwords), text


MATCHERS = {name: Matcher(GENDER, name) for name in ("words", "whitespace")}
PIECES = st.sampled_from(
    "she She HER he his He's woman womanly wom WOMEN grandmothers grandmotherss grandmother ex girlfriend "
    "ex-girlfriend EX-boyfriend boyfriend first lady First LADY prime minister Prime Ministers fiancée "
    "FIANCÉE fiance\u0301e fiancee señor SEÑORES sen\u0303or k K K a b x' 's ’s ‘ “ ” — é É \u0301 ʼ 0 99 "
    "_ @ [ averyveryverylongwordindeedlongerthanthelongestentryofall 她 👩‍🔬 \x00 \t \n".split(" ")
)
TEXTS = st.lists(
    st.tuples(PIECES, st.sampled_from(["", " ", "  ", "-", "'", ", ", "’", "\u00a0"])), max_size=40
).map(lambda pairs: "".join(piece + gap for piece, gap in pairs))


def test_a_last_letter_does_not_stand_beside_the_apostrophe_of_the_next_text() -> None:
    texts = ["k", "'she"] * 5000  # enough for the kernel, end to end in memory
    assert MATCHERS["words"].count(texts).tokens.tolist() == [1, 1] * 5000


@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
@given(texts=st.lists(TEXTS, min_size=1, max_size=5))
def test_the_kernel_counts_as_the_definition_does(tokenizer: str, texts: list[str]) -> None:
    agree(MATCHERS[tokenizer], texts)


# The hash of a word is of its first eight bytes and its size: these have the same, or nearly the same.
TWINS = (
    "a bcdefg abcdefg abcdefgh cbcdefgh Abcdefghij abcdefghik abcdefghijklmnop abcdefghijklmnoq abcdefgé"
).split()


@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
@given(
    known=st.lists(st.sampled_from([*TWINS, "bcdefg a", "abcdefgh a"]), min_size=1, unique_by=str.lower),
    text=st.lists(st.sampled_from([*TWINS, *map(str.upper, TWINS), "abcdefghijk"]), max_size=20).map(
        " ".join
    ),
)
def test_words_that_begin_alike_are_told_apart(tokenizer: str, known: list[str], text: str) -> None:
    agree(Matcher({"g": known}, tokenizer), [text])


@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
@given(texts=st.lists(st.text(), min_size=1, max_size=4))
def test_any_text_at_all_is_counted_as_defined(tokenizer: str, texts: list[str]) -> None:
    agree(MATCHERS[tokenizer], texts)


@given(
    words=st.lists(
        st.lists(
            st.sampled_from(["aa", "ab", "abc", "b", "bb", "é", "ab c", "b aa", "aa b aa"]),
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=5,
    ),
    stars=st.lists(st.booleans(), min_size=25, max_size=25),
    texts=st.lists(st.text(alphabet="aAbBcéÉ '-", max_size=150), min_size=1, max_size=4),
)
def test_any_overlapping_dictionary_is_matched_as_defined(
    words: list[list[str]], stars: list[bool], texts: list[str]
) -> None:
    flags = iter(stars)
    groups = {f"g{i}": [w + "*" if next(flags) else w for w in group] for i, group in enumerate(words)}
    agree(Matcher(Lexicon("generated", groups, overlapping=True)), texts)


@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
def test_a_word_is_found_at_every_offset_from_the_64_byte_steps(tokenizer: str) -> None:
    for word in ("she", "grandmothers", "fiancée", "prime minister", "womanly"):
        texts = [f"{'x' * before} {word} {'y' * after}" for before in range(1, 140) for after in (0, 1, 63)]
        assert MATCHERS[tokenizer].count(texts).counts.sum() == len(texts)
        bare = ["." * before + " " + word for before in range(140)]
        assert MATCHERS[tokenizer].count(bare).counts.sum() == len(bare)


def test_a_long_token_across_many_steps_is_one_token() -> None:
    assert MATCHERS["words"].count(["q" * 1000, "é" * 1000, "she" + "é" * 500 + " she"]).tokens.tolist() == [
        1,
        1,
        2,
    ]


def test_more_hits_than_the_working_memory_holds_are_all_counted() -> None:
    found = MATCHERS["words"].count(["she he " * 20_000])
    assert found.counts.tolist() == [[20_000, 20_000]]
    assert found.tokens.tolist() == [40_000]


LONG = "she saw her first lady, the prime minister; José and his fiancée: womanly. " * 300


@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
@pytest.mark.parametrize("spare", [0, 1, 2, 3, 5, 8])
def test_texts_with_more_hits_than_are_looked_up_at_once_go_on_where_they_stopped(
    tokenizer: str, spare: int
) -> None:
    matcher = MATCHERS[tokenizer]
    short = ["he", "", "a fiancée and a señorita", "first lady"]
    texts = [*short * 15, LONG[spare:], *short, "x" * 90_000, LONG[:5000], LONG.replace("é", "e"), *short]
    found = matcher.count(texts)
    _agree(matcher, texts)
    hits = matcher.find(texts)
    assert len(hits) == found.counts.sum()
    row = 60
    said = [
        texts[row].encode()[a:b].decode() for a, b in hits.filter(pl.col("row") == row)["start", "end"].rows()
    ]
    assert said[-1] in {"womanly", "womanly."} and said.count("first lady") == said.count("prime minister")


def test_texts_may_lie_anywhere_in_memory() -> None:
    matcher = MATCHERS["words"]
    texts = [f"she and {'his ' * n}first lady of k{n}" for n in range(300)]
    expected = matcher.count(texts)
    series = pl.Series(texts)
    for order in (range(300), range(299, -1, -1), [(7 * n) % 300 for n in range(300)]):
        views = series.gather(list(order)).to_arrow(compat_level=pl.CompatLevel.newest())
        assert pa.types.is_string_view(views.type)
        found = matcher.count(views)
        for one, other in zip(found, expected, strict=True):
            assert one.tolist() == other[list(order)].tolist()


def test_texts_may_lie_far_apart() -> None:
    text, size = b"she and his first lady of k", 3 << 30
    room = np.empty(size + 100, np.uint8)  # hardly any of it is ever touched
    first, far = len(text), size - len(text)
    for place in (0, first, far):
        room[place : place + len(text)] = np.frombuffer(text, np.uint8)
    offsets = np.array([0, first, 2 * first, far, size, size + 100], np.int64)  # the gaps are null
    buffers = [pa.py_buffer(bytes([0b01011])), pa.py_buffer(offsets), pa.py_buffer(room)]
    found = MATCHERS["words"].count(pa.Array.from_buffers(pa.large_string(), 5, buffers))
    assert found.counts.tolist() == [[2, 2], [2, 2], [0, 0], [2, 2], [0, 0]]
    assert found.tokens.tolist() == [7, 7, 0, 7, 0]


def test_whitespace_counts_equal_the_published_code_on_ascii_text() -> None:
    rng = np.random.default_rng(1)
    vocabulary = ["she", "He", "her,", "woman", "MAN", "the", "", "k", "he's", "prime"]
    texts = [" ".join(rng.choice(vocabulary, 50)) for _ in range(200)]
    singles = {"female": ["she", "her", "woman"], "male": ["he", "man", "k"]}
    expected = []
    for text in texts:
        counter = collections.Counter(text.lower().split(" "))
        expected.append([sum(counter[w] for w in words) for words in singles.values()])
    assert Matcher(singles, "whitespace").count(texts).counts.tolist() == expected


def test_nulls_slices_and_every_string_type_are_read() -> None:
    texts = ["he", None, "she and her", ""]
    for array in (
        pa.array(texts),
        pa.array(texts, pa.large_string()),
        pa.array(texts, pa.string_view()),
        pa.chunked_array([texts[:2], texts[2:]]),
        pa.array(["her", *texts, "his"]).slice(1, 4),
    ):
        assert MATCHERS["words"].count(array).counts.tolist() == [[0, 1], [0, 0], [2, 0], [0, 0]]
    assert MATCHERS["words"].count([]).counts.shape == (0, 2)


def test_find_gives_every_hit_with_its_place_in_bytes() -> None:
    text = "Señora É: the Prime Minister’s ex-girlfriend, she"
    hits = MATCHERS["words"].find([text, "", text])
    raw = text.encode()
    found = [(g, w, raw[s:e].decode()) for r, g, w, s, e in hits.iter_rows() if r == 2]
    assert found == [
        ("male", "señor*", "Señora"),
        ("male", "prime minister", "Prime Minister"),
        ("female", "ex-girlfriend", "ex-girlfriend"),
        ("female", "she", "she"),
    ]
    assert MATCHERS["words"].find(["nothing"]).is_empty()


def test_a_word_that_two_groups_share_after_folding_is_refused() -> None:
    with pytest.raises(InputError, match="one group"):
        Matcher({"a": ["ex-man"], "b": ["ex man"]})


def test_an_entry_without_a_letter_is_refused() -> None:
    with pytest.raises(InputError, match="no token"):
        Matcher({"a": ["--"], "b": ["he"]})


def _total(texts: list[str]) -> list[int]:
    return [int(n) for n in MATCHERS["words"].count(texts).counts.sum(axis=0)]


def test_eight_threads_and_a_forked_process_count_the_same() -> None:
    texts = ["She told him that the prime minister’s woman was his."] * 3000
    expected = _total(texts)
    with ThreadPoolExecutor(8) as pool:
        assert all(total == expected for total in pool.map(_total, [texts] * 32))
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as processes:
        assert processes.map(_total, [texts] * 4) == [expected] * 4


@pytest.mark.parametrize("turn", [1, -1])
def test_of_two_phrases_with_the_same_first_word_the_longer_one_wins(turn: int) -> None:
    groups = {"short": ["prime minister"], "long": ["prime minister elect"]}
    matcher = Matcher(Lexicon("phrases", dict(list(groups.items())[::turn])), "words")
    found = matcher.count(["The prime minister elect met the prime minister."])
    assert dict(zip(matcher.groups, found.counts[0].tolist(), strict=True)) == {"short": 1, "long": 1}
    together = Lexicon("phrases", {"all": ["prime minister", "prime minister elect"][::turn]})
    assert Matcher(together, "words").find(["prime minister elect"])["word"].to_list() == [
        "prime minister elect"
    ]


_LITTLE = """
import sys
from evenrank.text.matcher import ENOUGH, Matcher
matcher = Matcher({"female": ["she"], "male": ["he"]})
assert matcher.count(["She and he", None, "SHE é"]).counts.tolist() == [[1, 1], [0, 0], [1, 0]]
assert "numba" not in sys.modules and "pandas" not in sys.modules
many = ["she " * 1000] * (ENOUGH // 4000 + 1)
assert matcher.count(many).counts[-1].tolist() == [1000, 0]
assert "numba" in sys.modules
"""


def test_a_few_texts_are_counted_before_the_kernel_is_loaded_and_many_by_it() -> None:
    subprocess.run([sys.executable, "-c", _LITTLE], check=True)


def test_a_matcher_that_has_counted_is_pickled() -> None:
    matcher = Matcher(GENDER)
    before = matcher.count(["She met her grandfather."])
    after = pickle.loads(pickle.dumps(matcher)).count(["She met her grandfather."])
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_what_one_batch_left_behind_does_not_change_the_next() -> None:
    matcher = Matcher(GENDER)
    texts = ["She met the prime minister.", "", "He, his grandfather; WOMEN"]
    fresh = Matcher(GENDER).count(texts)
    matcher.count(["her woman man " * 50] * 20)
    assert all(np.array_equal(a, b) for a, b in zip(matcher.count(texts), fresh, strict=True))
