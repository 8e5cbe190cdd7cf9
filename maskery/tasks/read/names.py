"""The names that columns of labelled text usually have, and what they say a column is."""

from __future__ import annotations

import re

LABELS = (
    ("label", "labels", "gold_label", "gold", "tags", "ner_tags", "标签"),
    (
        *("class", "category", "categories", "target", "score", "scores", "gold_score", "similarity"),
        *("similarity_score", "relatedness", "relatedness_score", "relevance", "rating", "stars", "sentiment"),
        *("polarity", "intent", "topic", "quality", "is_duplicate", "judgment", "y", "类别", "分类", "分数"),
    ),
)
"""Names of the label: those of the first row are surer than those of the second."""

SCORES = frozenset(
    {"score", "scores", "gold_score", "similarity", "similarity_score", "relatedness", "relatedness_score"}
    | {"relevance", "rating", "stars", "分数"}
)
"""Labels that measure something: more than two numbers there are points on a scale, not classes."""

PAIRS = (
    *(("text_a", "text_b"), ("texta", "textb"), ("text1", "text2"), ("text_1", "text_2")),
    *(("sentence1", "sentence2"), ("sentence_1", "sentence_2"), ("sentence_a", "sentence_b"), ("sent1", "sent2")),
    *(("premise", "hypothesis"), ("question1", "question2"), ("q1", "q2"), ("s1", "s2"), ("#1_string", "#2_string")),
    *(("query", second) for second in ("title", "passage", "document", "doc", "candidate", "answer", "reply", "text")),
    *(("question", second) for second in ("sentence", "passage", "document", "answer", "context", "text")),
    *(("claim", "evidence"), ("keyword", "abst")),
)
"""Two texts that are set against each other, in this order."""

SEQUENCES = (("source", "target"), ("src", "tgt"), ("input", "output"), ("document", "summary"), ("article", "summary"))
"""A text and what is to be written for it."""

FIELDS = frozenset({"title", "headline", "subject", "keywords", "abstract", "description", "content", "body", "text"})
"""Parts of one piece of writing: all of those that are there are read."""

TEXTS = FIELDS | {
    *("sentence", "review", "comment", "document", "query", "question", "tweet", "utterance", "tokens", "words"),
    *("文本", "内容", "标题", "评论", "句子", "passage", "context", "summary"),
    *(name for pair in PAIRS for name in pair),
}
"""Names of texts."""

IDS = frozenset(
    {"", "id", "idx", "index", "guid", "qid", "pid", "uid", "key", "no", "#1_id", "#2_id", "pairid", "unnamed:_0"}
)
"""Names of columns that only number the rows."""

HALVES = frozenset(name for pair in PAIRS for name in pair) - FIELDS - {"sentence", "query", "question"}
"""Names that tell a text beside its other half; alone, they do not say that other texts are not to be read."""

_LABEL = re.compile(r"(?<![a-z])labels?(?![a-z])")
_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OTHERS = frozenset({"genre", "choice", "choices", "answer", "answers", "label_desc", "entities"})
_OTHERS |= {name for pair in SEQUENCES for name in pair}


def plain(name: str) -> str:
    """A name as the tables here have it: `Gold Label` is `gold_label`."""
    return re.sub(r"[\s\-]+", "_", name.strip().lower())


def known(name: str) -> bool:
    found = plain(name)
    return bool(found) and (found in TEXTS or found in IDS or found in _OTHERS or any(found in row for row in LABELS))


def label_rank(name: str) -> int | None:
    """How surely the name is a label's: 0 before 1 before 2 (it has the word in it); None: it is none that is known."""
    found = next((rank for rank, row in enumerate(LABELS) if plain(name) in row), None)
    return len(LABELS) if found is None and _LABEL.search(_JOINT.sub("_", name).lower()) else found
