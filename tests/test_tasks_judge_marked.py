"""Errors of tagging and question answering with their spans marked in the text."""

from maskery.tasks.examples import Answer, Example, Span
from maskery.tasks.judge import Evidence, judge, report, worst_mistakes
from maskery.tasks.judge.marked import marked, marks_of


def test_both_kinds_of_spans_are_marked():
    text = "李白出生于碎叶城"
    marks = marks_of(text, [Span(0, 2, "name")], [Span(1, 2, "name"), Span(5, 8, "place")])
    assert marked(text, marks, 300) == (
        '<mark class="mk-gold">李</mark><mark class="mk-gold mk-guess">白</mark>出生于'
        '<mark class="mk-guess">碎叶城</mark>'
    )


def test_an_answer_is_found_in_its_context_and_a_long_text_is_cut_around_it():
    text = "a" * 500 + "<b>" + "c" * 500
    marks = marks_of(text, [Answer(500, "<b>")], "ccc")
    assert marks == ((500, 503, "gold"), (503, 506, "guess"))
    shown = marked(text, marks, 60)
    assert '<mark class="mk-gold">&lt;b&gt;</mark><mark class="mk-guess">ccc</mark>' in shown
    assert shown.startswith("…aaa")
    assert shown.endswith("c…")
    assert marks_of(text, [Answer(500, "<b>")], "") == ((500, 503, "gold"),)


def test_a_report_shows_them_and_says_what_they_mean():
    example = Example(guid="1", texts=("x cat sat",), spans=(Span(0, 1, "one"),))
    gold, predicted = [(Span(0, 1, "one"),)], [(Span(2, 5, "one"),)]
    found = Evidence(mistakes=worst_mistakes("tag", [example], gold, predicted))
    for lang, word in (("en", "a coloured ground"), ("zh", "底色")):
        page = report(judge("tag", gold, predicted), "run", found, lang).html()
        assert '<mark class="mk-gold">x</mark>' in page
        assert '<mark class="mk-guess">cat</mark>' in page
        assert word in page
    plain = report(judge("classify", ["a"], ["b"], labels=["a", "b"]), "run", Evidence(mistakes=[]))
    assert "a coloured ground" not in plain.html()
