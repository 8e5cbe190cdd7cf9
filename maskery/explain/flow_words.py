"""What the pictures of sight and flow say, in English and Chinese."""

from __future__ import annotations

from dataclasses import dataclass

from maskery.explain.sights import Loss
from maskery.language import catalogue
from maskery.model.flow import Reading


@dataclass(frozen=True, kw_only=True)
class FlowWords:
    title: str
    order_title: str
    columns: str
    note: str
    remembered: str
    sees: dict[str, str]
    """By the kind of a sight."""
    knows: dict[str, str]
    side: dict[str, str]
    comma: str
    read: str
    layer: str
    layers: str
    cell: tuple[str, str]
    """Seen or not: who, where, whom, where."""
    known: tuple[str, str]
    memory: str
    token: str
    turn: str
    asked: str
    order: str
    lost: str
    none_lost: str
    refused: str
    no_position: str
    leaks: str
    nothing: str
    all_kept: str
    sound: str
    apart: str


ENGLISH = FlowWords(
    title="Information flow in {name}",
    order_title="The order {order}",
    columns="A line for each position that reads, a column for each that is read.",
    note="A line for each position that reads, a column for each that is read. Questions asked in {rows} rows.",
    remembered="Negative columns are remembered: {drawn} of {memory} are drawn.",
    sees={
        "own": "Who sees whom",
        "query": "The query stream sees",
        "one_stream": "One stream alone would see",
        "source": "Who sees the source",
    },
    knows={
        "own": "Known after {layers}",
        "query": "The query stream knows after {layers}",
        "one_stream": "One stream alone knows after {layers}",
        "source": "Known of the source after {layers}",
    },
    side={"encoder": "encoder", "decoder": "decoder", "content": "content stream"},
    comma=", ",
    read="read {mode}",
    layer="layer {first}",
    layers="layers {first} to {last}",
    cell=("{one} ({q}) does not see {other} ({k})", "{one} ({q}) sees {other} ({k})"),
    known=("{one} ({q}) does not know {other} ({k})", "{one} ({q}) knows {other} ({k})"),
    memory="what is remembered",
    token="reads",
    turn="turn",
    asked="asked for",
    order="In turn: {walk}",
    lost="Why two streams: the targets of this row should know {wanted} tokens. One stream, in which no target may "
    "see itself, has lost {lost} of these after layer {layer}, because a target passes on what it knows and not what "
    "it is. Two streams lose none, at any depth.",
    none_lost="Of the {wanted} tokens that the targets of this row should know, one stream loses none here.",
    refused="refused: {piece}: {reason}; repair: {repair}",
    no_position="the answer stands in no position, so none can be reached",
    leaks="LEAKS: {leak}",
    nothing="nothing is asked",
    all_kept="every target ({kept}) is left in the input on purpose (keep), where it can read its answer",
    sound="no target can reach its answer",
    apart=", apart from the {kept} of {targets} left in the input on purpose (keep)",
)
CHINESE = FlowWords(
    title="{name} 的信息流",
    order_title="顺序 {order}",
    columns="每行格子是一个去读的位置，每列是一个被读的位置。",
    note="每行格子是一个去读的位置，每列是一个被读的位置。问题在 {rows} 行上检查过。",
    remembered="负号的列是记住的内容：共 {memory} 个位置，画出 {drawn} 个。",
    sees={
        "own": "谁能看到谁",
        "query": "查询流能看到的",
        "one_stream": "只有一条流时能看到的",
        "source": "谁能看到源文",
    },
    knows={
        "own": "{layers}之后知道的",
        "query": "{layers}之后查询流知道的",
        "one_stream": "只有一条流时，{layers}之后知道的",
        "source": "{layers}之后对源文知道的",
    },
    side={"encoder": "编码器", "decoder": "解码器", "content": "内容流"},
    comma="，",
    read="按 {mode} 读",
    layer="第 {first} 层",
    layers="第 {first} 到 {last} 层",
    cell=("{one}（{q}）看不到 {other}（{k}）", "{one}（{q}）能看到 {other}（{k}）"),
    known=("{one}（{q}）不知道 {other}（{k}）", "{one}（{q}）知道 {other}（{k}）"),
    memory="记住的内容",
    token="读到",
    turn="次序",
    asked="要答",
    order="依次：{walk}",
    lost="为什么要两条流：这一行的目标总共应当知道 {wanted} 个 token。如果只有一条流，目标又不能看到自己，"
    "第 {layer} 层之后就丢失其中 {lost} 个，因为目标传下去的是它知道的，而不是它自己。两条流在任何深度都不丢失。",
    none_lost="这一行的目标总共应当知道 {wanted} 个 token，这里一条流也没有丢失。",
    refused="拒绝：{piece}: {reason}；修复：{repair}",
    no_position="答案不在任何位置上，所以够不到",
    leaks="泄漏：{leak}",
    nothing="什么也没有问",
    all_kept="所有目标（{kept} 个）都有意留在输入里（keep），能读到自己的答案",
    sound="没有目标能够到自己的答案",
    apart="，有意留在输入里（keep）的 {kept} 个除外，共 {targets} 个",
)
LANGUAGES = {"en": ENGLISH, "zh": CHINESE}


def flow_words(lang: str) -> FlowWords:
    return catalogue(lang, LANGUAGES)


def verdict(reading: Reading | None, words: FlowWords = ENGLISH) -> str:
    """Whether a question can be answered by reading the answer."""
    if reading is None:
        return words.no_position
    if reading.leak is not None:
        return words.leaks.format(leak=reading.leak.text())
    if not reading.targets:
        return words.nothing
    if reading.kept == reading.targets:
        return words.all_kept.format(kept=reading.kept)
    return words.sound + words.apart.format(kept=reading.kept, targets=reading.targets) * bool(reading.kept)


def why_two(loss: Loss, words: FlowWords = ENGLISH) -> str:
    """What one stream forgets, in a sentence."""
    depth = min(2, len(loss.kept))
    if loss.kept[depth - 1] == loss.wanted:
        return words.none_lost.format(wanted=loss.wanted)
    return words.lost.format(wanted=loss.wanted, lost=loss.wanted - loss.kept[depth - 1], layer=depth)
