"""--resume where there is nothing to go on with: a mistyped folder must not begin a long run anew."""

import pytest
from small_run import TINY_FLAGS, corpus_in, run_quietly, tiny_recipe

from maskery.cli import main
from maskery.errors import InputError
from maskery.train.lock import LOCK
from maskery.train.run import pretrain


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


def test_no_folder_is_refused(corpus, tmp_path, capsys):
    out = tmp_path / "typo"
    assert main(["pretrain", "bert", "--corpus", str(corpus.path), "--out", str(out), "--resume", *TINY_FLAGS]) == 2
    err = capsys.readouterr().err
    assert "typo: there is no run to go on with" in err
    assert "begin one with the same command without --resume" in err
    assert not out.exists()
    with pytest.raises(InputError, match="there is no run to go on with"):
        run_quietly(tiny_recipe("bert", training__steps=1), corpus, out, resume=True)
    assert not out.exists()


def test_a_run_that_was_killed_at_once_goes_on(corpus, tmp_path):
    """Killed between its lock and its first file."""
    out = tmp_path / "run"
    out.mkdir()
    (out / LOCK).write_text("4711\n", encoding="utf-8")
    said = []
    pretrain(tiny_recipe("bert", training__steps=1), corpus, out, resume=True, say=said.append)
    assert any("stopped before it had written anything; starting anew" in line for line in said)
