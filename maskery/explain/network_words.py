"""What the drawing of a network says, in English and Chinese. Names of choices in a recipe stay as they are."""

from __future__ import annotations

from dataclasses import dataclass

from maskery.language import catalogue


@dataclass(frozen=True, kw_only=True)
class NetworkWords:
    title: str
    note: str
    total: str
    model_reads: str
    generator_reads: str
    parts: dict[str, str]
    borrowed: str
    tie: str
    heads_of: str
    distances: dict[str, str]
    remembers: str
    windows: str
    sees: dict[str, str]
    inner: str
    gated: str
    add: str
    add_norm: str
    times: str
    shared: str
    grouped: str
    once: str
    decoder: str
    written: str
    looks: str
    asked_slots: str
    asked_rows: str
    tied: str
    samples: str
    row: tuple[str, ...]
    hidden: str
    replaced: str
    questions: dict[str, str]


_EN = NetworkWords(
    title="{name}: {layers} layers, width {width}",
    note="To be read from the bottom to the top.",
    total="{total} parameters; on the right those of each box, in one layer",
    model_reads="the model reads",
    generator_reads="the generator reads",
    parts={
        "embeddings": "embeddings",
        "tokens": "tokens",
        "positions": "positions",
        "segments": "segments",
        "tasks": "tasks",
        "start": "where the second stream begins",
        "norm": "norm",
        "waves": "positions: fixed waves",
        "projection": "projection",
        "attention": "attention",
        "feedforward": "feed-forward",
        "last norm": "norm",
        "pooler": "pooler: first slot",
    },
    borrowed="embeddings: the model's own",
    tie="one and the same",
    heads_of="{heads} heads of {width}",
    remembers="and {memory} slots of the rows before",
    windows="all of it in {whole} of {layers} layers, else {reach} slots to either side",
    distances={
        "nezha": "distances: fixed waves, clip {clip}",
        "shaw": "distances: trained, clip {clip}",
        "t5": "distances: {buckets} buckets",
        "mpnet": "distances: {buckets} buckets",
        "xl": "distances: waves times a matrix, of all layers",
        "xlnet": "distances and segments, of all layers",
        "rotary": "distances: queries and keys are turned, base {theta}",
        "disentangled": "distances: {buckets} buckets a side, of all layers",
    },
    sees={
        "full": "every slot sees every slot",
        "causal": "sees what stands before",
        "reverse": "sees what stands behind",
        "prefix": "the target sees source and past",
        "packed": "sees its own document",
        "packed_causal": "sees the past of its document",
        "permuted": "sees what comes before it in a drawn order",
        "mixture": "sees, by row: {shares}",
    },
    inner="{width} → {inner} → {width}, {activation}",
    gated="{width} → 2×{inner} → {width}, gated {activation}",
    add="add",
    add_norm="add & norm",
    times="× {layers}",
    shared="× {layers}, shared",
    grouped="× {layers}: {groups} groups, shared",
    once="shared",
    decoder="decoder × {layers}",
    written="what is written so far: the same token vectors, and",
    looks="sees all that was read",
    asked_slots="asked of slots",
    asked_rows="asked of rows",
    tied="scores by the token matrix",
    samples="its samples fill the chosen slots",
    row=("[CLS]", "the", "cat", "sat", "…", "[SEP]"),
    hidden="[MASK]",
    replaced="dog",
    questions={
        "masked_token": "which token stood here?",
        "next_token": "which token comes next?",
        "permuted_token": "which token stands here?",
        "span_boundary": "what stood between these two?",
        "word_order": "which token stood here before?",
        "replaced_token": "was this token replaced?",
        "contrast": "which run of words is missing?",
        "next_sentence": "does the second follow the first?",
        "sentence_order": "are the two in order?",
        "three_way": "next, before, or elsewhere?",
        "sentence_distance": "how far apart are they?",
        "segment_order": "what order were they in?",
        "sequence_class": "which class?",
        "token_class": "which class is each token?",
        "answer_span": "where does the answer stand?",
        "choice": "how good is this answer?",
    },
)
_ZH = NetworkWords(
    title="{name}：{layers} 层，宽 {width}",
    note="从下往上读。",
    total="共 {total} 个参数；右侧是每个方框的参数个数，层内的按一层计",
    model_reads="模型读到的",
    generator_reads="生成器读到的",
    parts={
        "embeddings": "嵌入",
        "tokens": "token",
        "positions": "位置",
        "segments": "段",
        "tasks": "任务",
        "start": "第二条流的起点",
        "norm": "归一化",
        "waves": "位置：固定的正弦波",
        "projection": "投影",
        "attention": "注意力",
        "feedforward": "前馈",
        "last norm": "归一化",
        "pooler": "pooler：取首位",
    },
    borrowed="嵌入：就是模型的",
    tie="同一份参数",
    heads_of="{heads} 个头，每个 {width}",
    remembers="以及前面各行的 {memory} 个位置",
    windows="{layers} 层中有 {whole} 层看全部，其余各层只看两侧各 {reach} 个位置",
    distances={
        "nezha": "距离：固定的正弦波，截断于 {clip}",
        "shaw": "距离：可训练，截断于 {clip}",
        "t5": "距离：{buckets} 个桶",
        "mpnet": "距离：{buckets} 个桶",
        "xl": "距离：正弦波乘矩阵，各层合计",
        "xlnet": "距离与段，各层合计",
        "rotary": "距离：旋转查询和键，底数 {theta}",
        "disentangled": "距离：每侧 {buckets} 个桶，各层合计",
    },
    sees={
        "full": "每个位置都看得到所有位置",
        "causal": "只看前面的位置",
        "reverse": "只看后面的位置",
        "prefix": "目标看源和它前面的",
        "packed": "只看自己所在的文档",
        "packed_causal": "只看本文档中前面的位置",
        "permuted": "只看随机次序中排在前面的位置",
        "mixture": "按行混合：{shares}",
    },
    inner="{width} → {inner} → {width}，{activation}",
    gated="{width} → 2×{inner} → {width}，门控 {activation}",
    add="相加",
    add_norm="相加与归一化",
    times="× {layers}",
    shared="× {layers}，共享",
    grouped="× {layers}：{groups} 组，组内共享",
    once="共享",
    decoder="解码器 × {layers}",
    written="已写出的部分：token 向量与编码器共用，另有",
    looks="能看到读入的全部内容",
    asked_slots="问各个位置",
    asked_rows="问整行",
    tied="用 token 矩阵打分",
    samples="它采样的 token 填入选中的位置",
    row=("[CLS]", "小", "猫", "坐", "…", "[SEP]"),
    hidden="[MASK]",
    replaced="狗",
    questions={
        "masked_token": "这里原来是哪个 token？",
        "next_token": "下一个 token 是什么？",
        "permuted_token": "这个位置是哪个 token？",
        "span_boundary": "这两端之间原来是什么？",
        "word_order": "这里原来是哪个 token（次序）？",
        "replaced_token": "这个 token 被换过吗？",
        "contrast": "缺的是哪一串词？",
        "next_sentence": "第二段接在第一段后面吗？",
        "sentence_order": "两段的次序对吗？",
        "three_way": "是下一段、上一段，还是别处的？",
        "sentence_distance": "两段相距多远？",
        "segment_order": "原来的次序是怎样的？",
        "sequence_class": "属于哪一类？",
        "token_class": "每个 token 属于哪一类？",
        "answer_span": "答案在哪里？",
        "choice": "这个答案有多好？",
    },
)
_LANGUAGES = {"en": _EN, "zh": _ZH}


def network_words(lang: str) -> NetworkWords:
    return catalogue(lang, _LANGUAGES)
