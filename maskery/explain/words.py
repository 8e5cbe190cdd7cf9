"""What pictures say, in English and Chinese. Names of metrics, recipes and edits are names: they stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from maskery.edit import Edit
from maskery.language import catalogue


@dataclass(frozen=True, kw_only=True)
class HeadWords:
    """Of the head view; the script fills in what stands in braces."""

    title: str
    note: str
    size: str
    of: str
    flat: str
    unknown: str
    waiting: str
    layer: str
    sentences: str
    all_pairs: str
    all_heads: str
    head: str
    place: str
    left: str
    right: str
    where: str
    none_on: str
    rest: str
    reads: str
    read_by: str
    pinned: str
    nothing: str

    def script(self) -> dict[str, str]:
        plain = asdict(self)
        return {name: plain[name] for name in ("where", "none_on", "rest", "reads", "read_by", "pinned", "nothing")}


@dataclass(frozen=True, kw_only=True)
class Words:
    heads: HeadWords
    edits: dict[Edit, str]
    was: str
    now: str
    kept: str
    epoch: str
    copy: str
    corrupted: str
    spans: str
    shuffled: str
    permuted: str
    rotated: str
    hidden_run: str
    dynamic: str
    static: str
    unchosen: str
    untouched: str
    unmarked: str
    """Why a unit that a corpus marks is a word here: the corpus has no marks, or none of them is in the text."""
    unfound: str
    maskings: str
    maskings_note: str
    word_map: str
    word_map_note: str
    curves: str
    axes: dict[str, str]
    faint: str
    points: str
    held_out: str
    lacking: str
    different_sums: str
    gaps: str
    comma: str
    last_comma: str
    stop: str
    """What parts two sentences."""
    full_stop: str

    def listed(self, names: Sequence[str]) -> str:
        return names[0] if len(names) == 1 else self.comma.join(names[:-1]) + self.last_comma + names[-1]


_EN = Words(
    heads=HeadWords(
        title="Attention heads",
        note="At rest each head shows the strongest link of every token. Hover, or move with the arrow keys, to see "
        "all links of one token; click or press Enter to pin it, Escape to let go. A double click on a head's square "
        "shows this head alone.",
        size="{layers} layers of {heads} heads, {tokens} tokens; weights in steps of 1/{steps:,}.",
        of="{title}: {name}, {text}",
        flat="The weights are nearly uniform (mean entropy {entropy:.2f} of at most {most:.2f} nats): these heads "
        "hardly tell tokens apart, as in a model that is little trained.",
        unknown="{unknown} of the tokens are not in the vocabulary.",
        waiting="This view needs JavaScript; in a notebook, trust the notebook.",
        layer="Layer",
        sentences="Sentences",
        all_pairs="all pairs",
        all_heads="all heads",
        head="head {number}",
        place="{token} at position {place}",
        left="reads",
        right="is read",
        where="Layer {layer}, {on} of {heads} heads: ",
        none_on="switch a head on by its square.",
        rest="the strongest link of every token.",
        reads="{token} reads {list}.",
        read_by="{token} is read by {list}.",
        pinned="{token} (pinned)",
        nothing="nothing here",
    ),
    edits={
        Edit.MASK: "hidden: the mask is read in its place",
        Edit.RANDOM: "replaced by a random token",
        Edit.KEEP: "chosen and kept: asked for, but read as it is",
        Edit.SIMILAR: "replaced by a similar word",
        Edit.UNMATCHED: "replaced by a random word, because no similar one is known",
        Edit.SHUFFLED: "moved to another place",
        Edit.INFILLED: "one mask for a whole span",
        Edit.NGRAM: "hidden with its n-gram, which is told from others",
    },
    was="was",
    now="is",
    kept="kept",
    epoch="epoch {number}",
    copy="copy {number}",
    corrupted="{rate:.0%} of {of}, by {unit}: {shares}; {when}",
    spans=" in spans ({law})",
    shuffled="; {rate:.0%} of the runs of {size} shuffled",
    permuted="; sentences in random order",
    rotated="; {rate:.0%} of the segments rotated",
    hidden_run="; one run of {shortest} to {longest} words masked whole",
    dynamic="drawn anew in every epoch",
    static="drawn once for each copy of the text",
    unchosen="nothing is chosen",
    untouched="nothing is corrupted",
    unmarked="; the corpus has no marks of this kind (maskery corpus mark), so words are taken",
    unfound="; nothing in the text is marked in the corpus, so words are taken",
    maskings="One sentence, several maskings",
    maskings_note="Every recipe was given the same draws, so that only what it makes of them differs.",
    word_map="Words near {words}",
    word_map_note="Large: the words asked for; small, in the same colour and shape: their nearest words. The two "
    "directions in which these vectors differ most keep {share} of their differences; the rest is not to be seen here.",
    curves="{units} of {runs}",
    axes={"steps": "steps", "tokens": "tokens", "seconds": "training time"},
    faint="Faint: every update. Line: smoothed over about {over} updates.",
    points="Points: held-out text.",
    held_out="{label} held out at {x}: ",
    lacking="No {metric}: {runs}.",
    different_sums="The runs ask different questions: their losses are different sums.",
    gaps="Gaps: {missing} values that are not a number.",
    comma=", ",
    last_comma=" and ",
    stop=" ",
    full_stop=".",
)
_ZH = Words(
    heads=HeadWords(
        title="注意力头",
        note="静止时，每个头只画每个 token 最强的一条联系。把鼠标停在 token 上，或用方向键移动，可以看到它的全部联系；"
        "点击或按 Enter 固定，按 Escape 松开。双击一个头的方块，只看这个头。",
        size="{layers} 层，每层 {heads} 个头，{tokens} 个 token；权重精确到 1/{steps:,}。",
        of="{title}：{name}，{text}",
        flat="权重接近均匀分布（平均熵 {entropy:.2f}，最大 {most:.2f} nat）："
        "这些头几乎不区分 token，模型可能训练不足。",
        unknown="其中 {unknown} 个 token 不在词表里。",
        waiting="这个视图需要 JavaScript；在笔记本里请先信任该笔记本。",
        layer="层",
        sentences="句子",
        all_pairs="全部",
        all_heads="所有头",
        head="第 {number} 个头",
        place="{token}，位置 {place}",
        left="读",
        right="被读",
        where="第 {layer} 层，{heads} 个头中的 {on} 个：",
        none_on="点击方块打开一个头。",
        rest="每个 token 最强的一条联系。",
        reads="{token} 读 {list}。",
        read_by="读 {token} 的有 {list}。",
        pinned="{token}（已固定）",
        nothing="这里没有",
    ),
    edits={
        Edit.MASK: "掩盖：读到的是 [MASK]",
        Edit.RANDOM: "换成随机的 token",
        Edit.KEEP: "选中但保留原样：仍是预测目标",
        Edit.SIMILAR: "换成相近的词",
        Edit.UNMATCHED: "换成随机的词，因为不知道有相近的词",
        Edit.SHUFFLED: "换了位置",
        Edit.INFILLED: "整个片段只用一个掩码",
        Edit.NGRAM: "随整个 n-gram 一起掩盖：要把它和别的 n-gram 区分开",
    },
    was="原来",
    now="现在",
    kept="保留",
    epoch="第 {number} 轮",
    copy="副本 {number}",
    corrupted="按 {of} 计 {rate:.0%}，单位 {unit}：{shares}；{when}",
    spans="，成段（{law}）",
    shuffled="；{rate:.0%} 的 {size} 元连续片段被打乱",
    permuted="；句子顺序随机",
    rotated="；{rate:.0%} 的段落被轮转",
    hidden_run="；连续 {shortest} 到 {longest} 个词整体掩盖一处",
    dynamic="每一轮重新抽取",
    static="文本的每个副本只抽取一次",
    unchosen="不选任何位置",
    untouched="不加噪",
    unmarked="；语料没有这类标注（maskery corpus mark），所以按词处理",
    unfound="；文本中没有语料标注过的内容，所以按词处理",
    maskings="同一句话，几种掩码",
    maskings_note="每个配方用的是同样的随机数，所以不同之处只来自配方本身。",
    word_map="{words} 附近的词",
    word_map_note="大的是要看的词；小的、颜色和形状相同的，是离它最近的词。"
    "图上是这些向量差别最大的两个方向，保留了全部差别的 {share}；其余的在图上看不到。",
    curves="{runs} 的 {units}",
    axes={"steps": "步数（steps）", "tokens": "token 数", "seconds": "训练时间"},
    faint="淡线：每次更新。粗线：在约 {over} 次更新上平滑。",
    points="点：验证集。",
    held_out="{label}，验证集，{x}：",
    lacking="没有 {metric}：{runs}。",
    different_sums="这几次训练的预训练任务不同，损失是不同的和。",
    gaps="断开处：{missing} 个 NaN。",
    comma="、",
    last_comma="、",
    stop="",
    full_stop="。",
)
_LANGUAGES = {"en": _EN, "zh": _ZH}


def words_of(lang: str) -> Words:
    return catalogue(lang, _LANGUAGES)
