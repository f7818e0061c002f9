"""The order of what is found: both lists and their fusion, each against an oracle made here."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from kb_resources.lexical import analyze_query
from kb_resources.retrieve.asking import FULL_SHARE
from kb_resources.store import passages

from .conftest import WORDS, World


def random_corpus(world: World, seed: int, size: int = 60) -> None:
    chance = random.Random(seed)
    texts = [" ".join(chance.choices(WORDS, k=chance.randint(3, 25))) for _ in range(size)]
    for start in range(0, size, 10):
        world.publish(f"d{start}", texts[start : start + 10])
    with world.pipeline() as conn:
        passages.refresh_statistics(conn, world.scope_id)


@pytest.mark.requirement("O-14", "O-23", "B-22")
@pytest.mark.parametrize("fusion", ["rrf", "adaptive"])
def test_fusion_is_reciprocal_rank_over_both_lists(world: World, fusion: str) -> None:
    """Plain, or each rank by words scaled by how much of the question the passage answers."""
    random_corpus(world, 1)
    chance = random.Random(2)
    for _ in range(40):
        query = " ".join(chance.choices(WORDS, k=chance.randint(1, 5)))
        text = world.search(query, mode="text", k=100).hits
        vector = world.search(query, mode="vector", k=100).hits
        expected: dict[str, float] = {}
        for hits in (text, vector):
            for rank, hit in enumerate(hits, 1):
                key = f"{hit.document_id}/{hit.passage_id}"
                full = fusion == "rrf" or hits is vector
                weight = 1.0 if full else min(1.0, (hit.text_share or 0.0) / FULL_SHARE)
                expected[key] = expected.get(key, 0.0) + weight / (60 + rank)
        fused = world.search(query, k=100, fusion=fusion).hits
        scores = {f"{hit.document_id}/{hit.passage_id}": hit.score for hit in fused}
        assert scores == pytest.approx(dict(sorted(expected.items(), key=lambda x: -x[1])[:100]))
        assert [hit.score for hit in fused] == sorted((h.score for h in fused), reverse=True)
        assert [hit.rank for hit in fused] == list(range(1, len(fused) + 1))


def test_in_a_question_with_an_identifier_words_outweigh_meaning(world: World) -> None:
    world.publish("a", ["section 15 says alpha", "section 16 says alpha beta gamma"])
    for query, weight in (("what says section 15", 0.5), ("what says the section", 1.0)):
        for hit in world.search(query, fusion="rrf").hits:
            expected = 1 / (60 + hit.text_rank) if hit.text_rank else 0.0
            expected += weight / (60 + hit.vector_rank) if hit.vector_rank else 0.0
            assert hit.score == pytest.approx(expected)


def test_the_text_list_is_bm25(world: World) -> None:
    random_corpus(world, 3)
    rows = {}
    with world.pipeline() as conn:
        for document, ordinal, bm in conn.execute(
            "select d.document_id, p.ordinal, l.bm::text from kb.lex l join kb.passage p"
            " using (passage_key) join kb.version v using (version_key)"
            " join kb.document d using (document_key) where p.scope_id = %s",
            [world.scope_id],
        ):
            pairs = bm.strip("{").split("}")[0].split(",")
            rows[document, ordinal] = {int(k): float(v) for k, v in (p.split(":") for p in pairs)}
    df: dict[int, int] = {}
    for weights in rows.values():
        for lexeme in weights:
            df[lexeme] = df.get(lexeme, 0) + 1
    chance = random.Random(4)
    for _ in range(20):
        query = " ".join(chance.choices(WORDS, k=chance.randint(1, 4)))
        question = analyze_query(query)
        expected = {}
        for key, weights in rows.items():
            score = sum(
                n * math.log(1 + (len(rows) - df[t] + 0.5) / (df[t] + 0.5)) * weights[t]
                for t, n in question.items()
                if t in weights
            )
            if score:
                expected[key] = score
        hits = world.search(query, mode="text", k=100).hits
        assert len(hits) == len(expected)
        wanted = sorted(expected.values(), reverse=True)
        assert [hit.text_score for hit in hits] == pytest.approx(wanted, rel=1e-3)


def test_the_vector_list_is_exact(world: World) -> None:
    random_corpus(world, 5)
    with world.pipeline() as conn:
        stored = [
            np.array(vec)
            for (vec,) in conn.execute(
                "select vec::real[] from kb.embedding where scope_id = %s", [world.scope_id]
            )
        ]
    for query in WORDS[:6]:
        question = world.embedder.embed([query], "query")[0]
        expected = sorted((float(vec @ question) for vec in stored), reverse=True)
        hits = world.search(query, mode="vector", k=100).hits
        assert [hit.vector_score for hit in hits] == pytest.approx(expected, abs=2e-3)
