"""Retrieval and clustering of sentence vectors against slow references, and the files they are read from."""

import json
import math

import numpy as np
import pytest
from sklearn import metrics as sk

from maskery.errors import InputError, TextError
from maskery.vectors.judge import encodes, retrieval
from maskery.vectors.judge.clustering import v_measures
from maskery.vectors.judge.examples import Searches, TextPairs, searches
from maskery.vectors.judge.kmeans import clusters
from maskery.vectors.judge.measure import evaluate_vectors
from maskery.vectors.judge.read import read_vector_examples


class Letters:
    """Counts of letters, so that equal letters are equal vectors; queries are encoded as they are."""

    def encode(self, texts):
        return np.array([[text.count(sign) for sign in "abcdefgh"] for text in texts], dtype=np.float32)


class Drawn:
    """A vector for every text by its name."""

    def __init__(self, width=6):
        self.width, self.calls = width, []

    def encode(self, texts):
        self.calls.append(len(texts))
        seeds = [int.from_bytes(text.encode()[:8].ljust(8), "little") % 2**32 for text in texts]
        return np.stack([np.random.default_rng(seed).normal(size=self.width) for seed in seeds]).astype(np.float32)


def slow(encoder, queries, documents, relevance, same_ids=True):
    """Metrics of each query by sorting everything; for sets without ties."""
    found = []
    for name, query in queries.items():
        grades = {key: grade for key, grade in relevance.get(name, {}).items() if grade > 0}
        if not grades:
            continue
        vector = encoder.encode([query])[0].astype(float)
        scores = {}
        for key, document in documents.items():
            other = encoder.encode([document])[0].astype(float)
            if not (same_ids and key == name and key not in grades):
                scores[key] = vector @ other / np.linalg.norm(vector) / np.linalg.norm(other)
        order = sorted(scores, key=scores.get, reverse=True)
        hits = [key in grades for key in order]
        places = [place for place, hit in enumerate(hits, 1) if hit]
        ideal = sorted(grades.values(), reverse=True)[:10]
        gain = sum(grades.get(key, 0) / math.log2(1 + place) for place, key in enumerate(order[:10], 1))
        row = {f"recall@{k}": sum(hits[:k]) / len(grades) for k in (1, 5, 10, 100)}
        row["mrr@10"] = 1 / places[0] if places and places[0] <= 10 else 0
        row["map@100"] = sum((n + 1) / place for n, place in enumerate(places) if place <= 100) / len(grades)
        row["ndcg@10"] = gain / sum(grade / math.log2(1 + place) for place, grade in enumerate(ideal, 1))
        found.append(row)
    return found


@pytest.mark.parametrize("same_ids", [True, False])
def test_retrieval_is_that_of_sorting_everything(monkeypatch, same_ids):
    monkeypatch.setattr(encodes, "BLOCK", 7)
    monkeypatch.setattr(retrieval, "BLOCK", 5)
    monkeypatch.setattr(retrieval, "_AT_ONCE", 20)
    draws = np.random.default_rng(0)
    documents = {f"d{k}": f"{k}xdoc" for k in range(60)}
    queries = {f"d{k}" if k < 5 else f"q{k}": f"{k}yask" for k in range(20)}
    relevance = {
        name: {
            f"d{k}": int(draws.integers(0, 4)) for k in draws.choice(70, size=int(draws.integers(1, 9)), replace=False)
        }
        for name in list(queries)[:-1]
    }
    encoder = Drawn()
    examples = searches(queries, documents, relevance, same_ids=same_ids)
    found = evaluate_vectors(encoder, "retrieval", examples)
    assert max(encoder.calls) <= 7
    assert sum(encoder.calls) == len(examples.queries) + len(documents), "every text once"
    expected = slow(Drawn(), queries, documents, relevance, same_ids)
    assert found.n == len(expected)
    for name in expected[0]:
        assert found.metrics[name] == pytest.approx(np.mean([row[name] for row in expected]), abs=1e-12), name
        low, high = found.intervals[name]
        assert low <= found.metrics[name] <= high
    assert any("left out" in note for note in found.notes)
    assert any("not among the documents" in note for note in found.notes)
    assert any("not searched for themselves" in note for note in found.notes) == same_ids


def test_vectors_that_are_all_alike_find_nothing():
    class Same:
        def encode(self, texts):
            return np.ones((len(texts), 3), np.float32)

    rows = [(f"q{k}", f"d{k}", 1) for k in range(200)]
    found = evaluate_vectors(Same(), "retrieval", rows)
    assert found.metrics["recall@100"] == found.metrics["mrr@10"] == found.metrics["map@100"] == 0
    assert found.metrics["ndcg@10"] == pytest.approx(sum(1 / math.log2(1 + k) for k in range(1, 11)) / 200)
    assert found.intervals["recall@1"][1] > 0, "nothing of 200 is not surely nothing"
    assert any("200 queries have ties" in note for note in found.notes)


def test_documents_of_one_text_share_their_places():
    documents = {"1": "ab", "2": "ab", "3": "c"}
    found = evaluate_vectors(Letters(), "retrieval", searches({"q": "ab"}, documents, {"q": {"1": 1}}))
    assert found.metrics["mrr@10"] == 0.5
    assert found.metrics["ndcg@10"] == pytest.approx((1 + 1 / math.log2(3)) / 2)


def test_queries_and_documents_go_through_their_own_methods():
    class Sides(Letters):
        def encode_query(self, texts):
            return self.encode([text.removeprefix("?") for text in texts])

        def encode_document(self, texts):
            return self.encode([text[::2] for text in texts])

    found = evaluate_vectors(Sides(), "retrieval", [("?a", "ahbh", 0), ("?a", "ahah", 1)])
    assert found.metrics["mrr@10"] == 1
    assert any("in their own way" in note for note in found.notes)


def test_relevant_documents_that_are_nowhere_are_refused():
    with pytest.raises(InputError, match="none of the relevant documents"):
        evaluate_vectors(Letters(), "retrieval", searches({"q": "a"}, {"1": "b"}, {"q": {"2": 1}}))
    with pytest.raises(InputError, match="no query with a relevant document"):
        searches({"q": "a"}, {"1": "b"}, {"q": {"1": 0}})


def test_v_measure_is_that_of_scikit_learn_also_of_repeated_rows():
    draws = np.random.default_rng(0)
    labels, found = draws.integers(0, 4, 60), draws.integers(0, 4, 60)
    found[:30] = labels[:30]
    weights = np.concatenate([np.ones((1, 60)), draws.multinomial(60, np.full(60, 1 / 60), size=4)])
    figures = v_measures(labels, found, 4, weights)
    for k, each in enumerate(weights.astype(int)):
        homogeneity, completeness, v = sk.homogeneity_completeness_v_measure(
            np.repeat(labels, each), np.repeat(found, each)
        )
        assert figures[:, k] == pytest.approx([v, homogeneity, completeness], abs=1e-12)


def test_k_means_finds_groups_that_are_apart_and_is_the_same_every_time():
    draws = np.random.default_rng(0)
    middles = 10 * draws.normal(size=(5, 8)) + 100
    labels = draws.integers(0, 5, 3000)
    vectors = (middles[labels] + draws.normal(size=(3000, 8))).astype(np.float32)
    found = clusters(vectors, 5, seed=1)
    assert sk.v_measure_score(labels, found) > 0.999
    assert (clusters(vectors, 5, seed=1) == found).all()


def test_clustering_from_texts_to_figures():
    rows = [(sign * k, sign) for sign in "abc" for k in range(1, 21)]
    found = evaluate_vectors(Letters(), "clustering", rows)
    assert found.n == 60
    assert 0.2 < found.metrics["v_measure"] <= 1
    low, high = found.intervals["v_measure"]
    assert low <= found.metrics["v_measure"] <= high
    same = evaluate_vectors(Letters(), "clustering", [("x", k % 2) for k in range(40)])
    assert same.metrics["v_measure"] == 0
    assert any("1 clusters instead of 2" in note for note in same.notes)
    with pytest.raises(InputError, match="nothing to part"):
        evaluate_vectors(Letters(), "clustering", [("a", 1), ("b", 1)])
    with pytest.raises(InputError, match="a label of its own"):
        evaluate_vectors(Letters(), "clustering", [("a", 1), ("b", 2)])


PAIRS = {
    "headed.tsv": "text_a\ttext_b\tscore\na man eats\tsomeone eats\t4.5\na dog\tthe sky is blue\t0\n",
    "plain.tsv": "a man eats\tsomeone eats\t4.5\na dog\tthe sky is blue\t0\n",
    "some.csv": 'score,sentence1,sentence2\n4.5,a man eats,someone eats\n0,a dog,"the sky is blue"\n',
    "some.jsonl": '{"s1": "a man eats", "s2": "someone eats", "score": 4.5}\n'
    '{"s1": "a dog", "s2": "the sky is blue", "score": 0}\n',
}


@pytest.mark.parametrize("name", PAIRS)
def test_scored_pairs_are_read_from_any_table(tmp_path, name):
    (tmp_path / name).write_text(PAIRS[name], encoding="utf-8")
    found = read_vector_examples(tmp_path / name, "sts")
    assert isinstance(found, TextPairs)
    assert (found.first, found.second) == (("a man eats", "a dog"), ("someone eats", "the sky is blue"))
    assert found.score.tolist() == [4.5, 0]
    assert found.notes
    with pytest.raises(TextError, match=r"4\.5, not 0 or 1"):
        read_vector_examples(tmp_path / name, "pairs")


def test_searches_are_read_from_a_table(tmp_path):
    path = tmp_path / "q.tsv"
    path.write_text("query\tdocument\trelevance\nwho\tme\t1\nwho\tyou all\t0\nwhen\tnow\t2\n", encoding="utf-8")
    found = read_vector_examples(path, "retrieval")
    assert isinstance(found, Searches)
    assert (found.queries, found.documents) == (("who", "when"), ("me", "you all", "now"))
    assert (found.query.tolist(), found.document.tolist(), found.grade.tolist()) == ([0, 1], [0, 2], [1, 2])
    path.write_text("query\tdocument\nwho\tme\nwhen\tnow\n", encoding="utf-8")
    found = read_vector_examples(path, "retrieval")
    assert found.grade.tolist() == [1, 1]
    assert any("no relevance is given" in note for note in found.notes)


def folder_of(tmp_path, relevance="query-id\tcorpus-id\tscore\n1\t7\t2\n1\t8\t0\n2\t9\t1\n", place="qrels/test.tsv"):
    documents = [{"_id": "7", "title": "Cats", "text": "they purr"}, {"_id": "8", "title": "", "text": "dogs bark"}]
    queries = [{"_id": "1", "text": "what purrs"}, {"_id": "2", "text": "what flies"}]
    for name, rows in (("corpus.jsonl", documents), ("queries.jsonl", queries)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(relevance, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("relevance", "place"),
    [
        ("query-id\tcorpus-id\tscore\n1\t7\t2\n1\t8\t0\n2\t9\t1\n", "qrels/test.tsv"),
        ("1\t0\t7\t2\n1\t0\t8\t0\n2\t0\t9\t1\n", "relevance.tsv"),
        ('{"qid": 1, "pid": 7, "relevance": 2}\n{"qid": 2, "pid": 9, "relevance": 1}\n', "qrels.jsonl"),
    ],
    ids=["beir", "trec", "jsonl"],
)
def test_searches_are_read_from_a_folder(tmp_path, relevance, place):
    found = read_vector_examples(folder_of(tmp_path, relevance, place), "retrieval")
    assert found.documents == ("Cats they purr", "dogs bark")
    assert found.queries == ("what purrs", "what flies")
    assert (found.query.tolist(), found.document.tolist(), found.grade.tolist()) == ([0], [0], [2])
    assert found.lost == {1: (1.0,)}


def test_folders_that_cannot_be_searched_are_refused_with_their_place(tmp_path):
    with pytest.raises(TextError, match="there are no queries"):
        read_vector_examples(tmp_path, "retrieval")
    folder = folder_of(tmp_path, "query-id\tcorpus-id\tscore\n5\t7\t2\n")
    with pytest.raises(TextError, match=r"test\.tsv:2: there is no query '5'"):
        read_vector_examples(folder, "retrieval")
    folder_of(tmp_path, "query-id\tcorpus-id\tscore\n1\t7\tgood\n")
    with pytest.raises(TextError, match=r"test\.tsv:2: the score is 'good'"):
        read_vector_examples(folder, "retrieval")


def test_labelled_texts_and_plain_texts_are_read(tmp_path):
    (tmp_path / "c.tsv").write_text("text\tlabel\none two\tx\nthree\ty\nfour\tx\n", encoding="utf-8")
    found = read_vector_examples(tmp_path / "c.tsv", "clustering")
    assert (found.texts, found.labels) == (("one two", "three", "four"), ("x", "y", "x"))
    (tmp_path / "t.txt").write_text("one text\nanother one\none text\n", encoding="utf-8")
    assert read_vector_examples(tmp_path / "t.txt", "geometry").texts == ("one text", "another one")
    (tmp_path / "p.tsv").write_text(PAIRS["headed.tsv"], encoding="utf-8")
    assert isinstance(read_vector_examples(tmp_path / "p.tsv", "geometry"), TextPairs)
    (tmp_path / "empty.tsv").write_text("", encoding="utf-8")
    for kind in ("sts", "retrieval", "clustering"):
        with pytest.raises(TextError, match="empty"):
            read_vector_examples(tmp_path / "empty.tsv", kind)
