"""Hits in the order of a cross-encoder: a tiny one, exported as real ones are."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from kb.cli.group import cli
from kb_resources.compose_models import open_reranker
from kb_resources.embed.cross_encoder import CrossEncoder
from kb_resources.errors import InputError, IntegrityError, UnavailableError
from kb_resources.model import Principal
from kb_resources.retrieve import Retriever, highlight
from kb_resources.retrieve.log import QuestionKey, RetrievalLog
from kb_resources.retrieve.reranking import Reranker
from kb_resources.settings import Settings, as_environment
from tests.integration.line.conftest import Bench, bench, models_dir, settings
from tests.integration.search.conftest import World

__all__ = ["bench", "models_dir", "settings"]

WEIGHTS = {"[CLS]": 0.0, "[SEP]": 0.0, "[UNK]": 0.0, "days": 1.0, "thirty": 2.0, "budget": -3.0}
TEXTS = ["Leave leave leave for a budget.", "Leave is thirty days.", "Days of leave."]


def export(
    folder: Path, *, output: str = "logits", labels: int = 1, inputs: Sequence[str] = ()
) -> Path:
    """A graph whose logit is the sum of the weights of the passage's words."""
    folder.mkdir(parents=True)
    names = list(inputs) or ["input_ids", "attention_mask", "token_type_ids"]
    table = np.array(list(WEIGHTS.values()), np.float32)[:, None]
    if labels == 2:
        table = np.concatenate([-table / 2, table / 2], axis=1)
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "input_ids"], ["weights"]),
            helper.make_node("Cast", ["token_type_ids"], ["second"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["second", "last"], ["mask"]),
            helper.make_node("Mul", ["weights", "mask"], ["counted"]),
            helper.make_node("ReduceSum", ["counted", "middle"], [output], keepdims=0),
        ],
        "tiny",
        [helper.make_tensor_value_info(n, TensorProto.INT64, ["b", "s"]) for n in names],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["b", labels])],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.array([2]), "last"),
            numpy_helper.from_array(np.array([1]), "middle"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, folder / "model.onnx")
    words = {word: at for at, word in enumerate(WEIGHTS)}
    tokenizer = Tokenizer(models.WordLevel(words, "[UNK]"))
    tokenizer.add_special_tokens(["[CLS]", "[SEP]", "[UNK]"])
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 0), ("[SEP]", 1)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(tmp_path_factory.mktemp("reranker") / "tiny-reranker")


@pytest.fixture
def library(world: World) -> World:
    for number, text in enumerate(TEXTS):
        world.publish(f"doc-{number}", [text])
    return world


def order(world: World, reranker: Reranker | None, **values: Any) -> tuple[list[str], Any]:
    """Document ids of the hits for one question, and the result."""
    retriever = Retriever(world.database, embedder=lambda: world.embedder, reranker=reranker)
    found = retriever.search("leave", scope=world.scope, principal=Principal("p"), **values)
    return [hit.document_id for hit in found.hits], found


def test_a_cross_encoder_scores_pairs_whatever_their_batch(folder: Path) -> None:
    model = CrossEncoder.open(folder)
    assert model.name.startswith("tiny-reranker@")
    scores = model.scores("thirty days", ["thirty days", "budget", "days days days", "nothing"])
    assert scores is not None
    assert scores.tolist() == [3.0, -3.0, 3.0, 0.0]  # the question's own words do not count
    assert model.scores("x", ["days"] * 600 + ["budget"])[-1] == -3.0  # type: ignore[index]
    long = model.scores("x " * 5000, ["days " * 5000])
    assert long is not None
    assert 0 < long[0] < 512  # cut to the limit
    assert model.scores("x", ["days"], should_stop=lambda: True) is None


def test_two_classes_give_one_logit(tmp_path: Path, folder: Path) -> None:
    two = CrossEncoder.open(export(tmp_path / "two", labels=2))
    assert two.scores("x", ["thirty days"]).tolist() == [3.0]  # type: ignore[union-attr]


def test_what_is_no_cross_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"holds no model\.onnx"):
        CrossEncoder.open(tmp_path)
    with pytest.raises(InputError, match="none is a score"):
        CrossEncoder.open(export(tmp_path / "embedder", output="last_hidden_state"))
    odd = ("input_ids", "token_type_ids", "pixel_values")
    with pytest.raises(InputError, match="pixel_values"):
        CrossEncoder.open(export(tmp_path / "picture", inputs=odd))
    three = CrossEncoder.open(export(tmp_path / "three", labels=1))
    three._session = type("S", (), {"run": lambda *_: [np.full((1, 1), np.nan)]})()
    with pytest.raises(IntegrityError):
        three.scores("x", ["y"])
    broken = export(tmp_path / "broken")
    (broken / "tokenizer.json").write_text("{")
    with pytest.raises(IntegrityError, match=r"tokenizer\.json"):
        CrossEncoder.open(broken)


def test_hits_come_in_its_order_with_a_relevance(library: World, folder: Path) -> None:
    reranker = Reranker(lambda: CrossEncoder.open(folder), time_limit_s=30)
    before, plain = order(library, reranker)
    assert not plain.reranked  # a search never loads it
    assert not reranker.ready
    reranker.warm(wait=True)
    after, found = order(library, reranker)
    assert found.reranked
    assert after == ["doc-1", "doc-2", "doc-0"] != before
    logits = [3.0, 1.0, -3.0]
    expected = [1 / (1 + np.exp(-logit)) for logit in logits]
    assert [hit.relevance for hit in found.hits] == pytest.approx(expected, abs=1e-4)
    assert [hit.rank for hit in found.hits] == [1, 2, 3]
    assert order(library, reranker, k=1)[0] == ["doc-1"]  # found beyond the first
    kept, _ = order(library, reranker, min_score=0.5)
    assert kept == ["doc-1", "doc-2"]
    assert order(library, reranker, min_score=1)[0] == []
    assert order(library, None, min_score=1)[0] == before  # no relevance: nothing is left out
    with pytest.raises(InputError, match="min_score"):
        order(library, reranker, min_score=1.5)


@pytest.mark.requirement("W-36")
@pytest.mark.parametrize("question", ["c++ (", "leave c++ (", "[days", "thirty \\", "*?+ leave"])
def test_signs_of_other_languages_in_a_question_break_neither_order_nor_highlight(
    library: World, folder: Path, question: str
) -> None:
    reranker = Reranker(lambda: CrossEncoder.open(folder), time_limit_s=30)
    reranker.warm(wait=True)
    retriever = Retriever(library.database, embedder=lambda: library.embedder, reranker=reranker)
    given = {"scope": library.scope, "principal": Principal("p")}
    whole = retriever.search(question, **given)
    assert whole.reranked
    assert [hit.document_id for hit in whole.hits] == ["doc-1", "doc-2", "doc-0"]
    assert retriever.search(question, k=2, **given).hits == whole.hits[:2]
    for hit, spans in zip(whole.hits, highlight(question, whole.hits), strict=True):
        for span in spans:
            assert hit.text[span["start"] : span["end"]].strip()


@pytest.mark.requirement("P-83")
def test_as_many_candidates_are_read_as_the_setting_says(tmp_path: Path, world: World) -> None:
    class Seen(Slow):
        def scores(self, _: str, passages: Sequence[str], **__: Any) -> Any:
            self.stopped.append(len(passages) > 1)
            self.read = len(passages)
            return np.arange(len(passages), dtype=np.float32)

    for number in range(15):
        world.publish(f"doc-{number}", [f"leave number {number}"])
    own = open_reranker(Settings(home=tmp_path, reranker=tmp_path, rerank_candidates=10))
    assert own is not None
    assert own.depth == 10
    model = Seen()
    reranker = Reranker(lambda: model, time_limit_s=30, depth=own.depth)
    reranker.warm(wait=True)
    plain, _ = order(world, None, k=15)
    ordered, found = order(world, reranker, k=15)
    assert found.reranked
    assert model.read == 10
    assert ordered == [*plain[:10][::-1], *plain[10:]], "the others keep their places behind"
    assert order(world, reranker, k=3)[0] == plain[:10][::-1][:3]


def test_the_log_holds_what_the_reader_saw(library: World, folder: Path) -> None:
    reranker = Reranker(lambda: CrossEncoder.open(folder), time_limit_s=30)
    reranker.warm(wait=True)
    retriever = Retriever(
        library.database,
        embedder=lambda: library.embedder,
        reranker=reranker,
        log=RetrievalLog(QuestionKey(bytes(32))),
    )
    found = retriever.search(
        "leave", scope=library.scope, principal=Principal("p"), k=5, min_score=0.5
    )
    with library.pipeline() as conn:
        row = conn.execute(
            "select k, hits from kb.retrieval_log where correlation_id = %s", [found.correlation_id]
        ).fetchone()
    assert row[0] == 5
    logged = [(hit["rank"], hit["document_id"]) for hit in row[1]]
    assert logged == [(1, "doc-1"), (2, "doc-2")]


class Slow:
    """A model that answers when it is let."""

    name = "slow"

    def __init__(self) -> None:
        self.go = threading.Event()
        self.go.set()
        self.stopped: list[bool] = []

    def scores(self, _: str, passages: Sequence[str], *, should_stop: Callable[[], bool]) -> Any:
        self.go.wait(60)
        self.stopped.append(should_stop())
        return np.arange(len(passages), dtype=np.float32)


def test_a_search_that_waited_long_enough_keeps_its_own_order(library: World) -> None:
    model, now = Slow(), [0.0]
    reranker = Reranker(lambda: model, time_limit_s=0.2, clock=lambda: now[0])
    reranker.warm(wait=True)
    before, _ = order(library, None)
    model.go.clear()
    late, found = order(library, reranker)
    assert (late, found.reranked) == (before, False)
    now[0] = 1.0
    model.go.set()
    reranker._worker.submit(lambda: None).result(60)
    assert model.stopped[-1]  # it is told that nobody waits any more
    reranker._time_limit_s = 60
    again, found = order(library, reranker)
    assert (again, found.reranked) == (before[::-1], True)


def test_a_model_that_breaks_breaks_no_search(
    library: World, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    missing = open_reranker(Settings(home=tmp_path, reranker=tmp_path / "nowhere"))
    assert missing is not None
    missing.warm(wait=True)
    assert "cannot be used" in caplog.text
    before, _ = order(library, None)
    assert order(library, missing)[0] == before

    class Broken(Slow):
        def scores(self, question: str, passages: Sequence[str], **__: Any) -> Any:
            if question == "leave":
                raise RuntimeError("no")
            return np.zeros(len(passages), np.float32)

    broken = Reranker(Broken)
    broken.warm(wait=True)
    same, found = order(library, broken)
    assert (same, found.reranked) == (before, False)
    assert "leave" not in caplog.text
    assert open_reranker(Settings(home=tmp_path)) is None


def test_the_command_line_says_whether_it_ordered_them(
    bench: Bench, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, text in enumerate(TEXTS):
        bench.ingest(f"doc-{number}.md", f"# Doc {number}\n\n{text}\n")
    for name, value in as_environment(replace(bench.settings, reranker=folder)).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KB_RERANK_TIMEOUT_S", "60")

    def search(*arguments: str, query: str = "leave") -> dict[str, Any]:
        given = ["search", query, "--scope", "acme", "--json", *arguments]
        cli.main(given, standalone_mode=False)
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    assert search()["reranked"] is False
    found = search("--rerank", "--min-score", "0.6")
    assert found["reranked"] is True
    assert [hit["title"] for hit in found["hits"]] == ["Doc 1", "Doc 2"]
    assert [hit["relevance"] for hit in found["hits"]] == [0.9526, 0.7311]
    assert search("--words", "all", query="leave xyzzy")["hits"] == []
    assert search("--words", "all_first", query="leave xyzzy")["hits"]
