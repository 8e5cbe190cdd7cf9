"""What the demo says, in English and in Chinese: one field a sentence, filled with `str.format`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Words:
    lang: str
    title: str
    tiny: str
    """Stands beside every example: size and minutes."""
    text: str
    text_ours: str
    text_own: str
    text_pieces: str
    text_cut: str
    corpus: str
    corpus_done: str
    training: str
    speed: str
    training_speed: str
    thread: str
    threads: str
    training_note: str
    capped: str
    measuring: str
    blanks: str
    blanks_rule: str
    blanks_none: str
    looking: str
    saving: str
    saved: str
    scores: tuple[str, str, str, str]
    """Table headings: name, accuracy, cross-entropy, perplexity."""
    trained: str
    frequent: str
    unigram: str
    untrained: str
    verdict_better: str
    verdict_slight: str
    verdict_same: str
    blank_columns: tuple[str, str, str, str]
    hit: str
    near: str
    miss: str
    tally: str
    maskings: str
    maskings_why: str
    maskings_note: str
    attention: str
    attention_why: str
    attention_note: str
    curve: str
    curve_why: str
    curve_title: str
    numbers: str
    numbers_why: str
    use: str
    use_why: str
    steps_heading: str
    step_columns: tuple[str, str]
    total: str
    everything: str
    go_on: str
    second: str
    minute: str

    def names(self) -> dict[str, str]:
        """What the scores are called."""
        return {
            "trained": self.trained,
            "most frequent token": self.frequent,
            "unigram": self.unigram,
            "untrained": self.untrained,
        }

    def span(self, seconds: float) -> str:
        """90 -> 1.5 minutes; 20 -> 20 seconds"""
        return self.second.format(round(seconds)) if seconds < 60 else self.minute.format(seconds / 60)


ENGLISH = Words(
    lang="en",
    title="Maskery: a first model",
    tiny="This model is tiny: {parameters:,} parameters, trained for {time} on {tokens:,} tokens of text.",
    text="Text: a language model learns from raw text; nothing is labelled",
    text_ours="{documents:,} documents, {megabytes:.1f} MB: Python's documentation topics and its library's docstrings",
    text_own="{documents:,} documents, {megabytes:.2f} MB from {name}",
    text_pieces="so few documents could not be divided: cut at line ends into {documents:,} pieces",
    text_cut="only the first {characters:,} characters are used, to end soon",
    corpus="Corpus: learn a vocabulary, turn text into numbers, set some documents aside for the exam",
    corpus_done="{tokens:,} tokens of {vocabulary:,} kinds; {heldout:,} of {documents:,} documents are held out",
    training="Training: hide 15 % of the tokens, guess them, correct the weights, again and again",
    speed="How fast is this machine?",
    training_speed="{parameters:,} parameters, {steps:,} updates ({measured}): what fits into {time}",
    thread="{milliseconds:.0f} ms each with 1 thread",
    threads="{milliseconds:.0f} ms with {threads}",
    training_note="update {step:,} of {steps:,}, loss {loss:.2f}",
    capped="not more than {epochs} times through so small a text: beyond that it is learnt by heart",
    measuring="Exam: the hidden tokens of held-out text, beside three guessers that do not read the context",
    blanks="Blanks: sentences that the model has never read",
    blanks_rule="Chosen by a rule, not for their result: held-out sentences in a random order, in each one random word"
    " that is common in the training text, but not one of the 20 commonest.",
    blanks_none="The held-out text has no sentence of a fitting length.",
    looking="Pictures: maskings of one sentence, attention, the loss curve",
    saving="Saving: open the folder again and compare; write the report",
    saved="opened again, the model gives the same scores to the last bit",
    scores=("guesser", "right", "cross-entropy", "perplexity"),
    trained="this model",
    frequent="always the most frequent token",
    unigram="token frequencies (unigram)",
    untrained="the same network, untrained",
    verdict_better="It guesses {times:.1f} times as often right as the most frequent token, and its cross-entropy is"
    " {nats:.2f} nats below that of token frequencies: it reads the context. It is still wrong"
    " {wrong:.0f} times in 100.",
    verdict_slight="It guesses {times:.1f} times as often right as the most frequent token, but its cross-entropy is"
    " only {nats:.2f} nats below that of token frequencies: it has hardly begun to read the context. It is wrong"
    " {wrong:.0f} times in 100. More minutes (--budget 10m) or more text help.",
    verdict_same="That is no better than token frequencies: it has not learnt to read the context. More minutes"
    " (--budget 10m) or more text help.",
    blank_columns=("sentence", "guesses", "truth", ""),
    hit="right",
    near="among the three",
    miss="wrong",
    tally="{first} of {all} blanks right at the first guess, {three} within three guesses.",
    maskings="How several maskings treat one sentence",
    maskings_why="The same held-out sentence under different rules. What is hidden is what the model is asked for.",
    maskings_note="Every rule was given the same draws, so that only what it makes of them differs.",
    attention="Where the model looks",
    attention_why="Each token gathers from others by weights, one set of them for each head. Do not read"
    " too much into the heads of so small a model.",
    attention_note="Point at a token or move with the arrow keys; click or Enter pins it, Escape lets go. A double"
    " click on the square of a head shows this head alone.",
    curve="How the loss fell",
    curve_why="Cross-entropy of the hidden tokens in training, in nats; the points are held-out text. Half-way"
    " the rows become longer, which can show as a step.",
    curve_title="Loss in training and on held-out text",
    numbers="How good is it?",
    numbers_why="{questions:,} tokens were hidden in documents that the model never read. Every guesser is asked for"
    " the same ones. Cross-entropy is in nats, and lower is better.",
    use="Use it elsewhere",
    use_why="The folder is in the Hugging Face layout. These lines open it:",
    steps_heading="Where the time went",
    step_columns=("step", "time"),
    total="all",
    everything="Everything took {time}. Look at {report}",
    go_on="Go on:",
    second="{} seconds",
    minute="{:.1f} minutes",
)

CHINESE = Words(
    lang="zh",
    title="Maskery：第一个模型",
    tiny="这个模型非常小：{parameters:,} 个参数，训练了 {time}，读了 {tokens:,} 个 token。",
    text="文本：语言模型直接从原始文本学习，不需要任何标注",
    text_ours="{documents:,} 篇文档，{megabytes:.2f} MB：随软件附带的中文短文，由我们自己写成",
    text_own="{documents:,} 篇文档，{megabytes:.2f} MB，来自 {name}",
    text_pieces="文档太少，无法划分，已按行切成 {documents:,} 段",
    text_cut="只使用前 {characters:,} 个字符，以便尽快结束",
    corpus="语料：学出一个词表，把文本变成数字，并留出一部分文档作验证集，用来评测",
    corpus_done="共 {tokens:,} 个 token，词表 {vocabulary:,} 项；{documents:,} 篇文档中留出 {heldout:,} 篇",
    training="训练：掩盖 15% 的 token，让模型预测（掩码语言模型，MLM），按损失更新权重，如此反复",
    speed="这台机器有多快？",
    training_speed="{parameters:,} 个参数，更新 {steps:,} 次（{measured}）：{time}内能完成的次数",
    thread="1 个线程每次 {milliseconds:.0f} 毫秒",
    threads="{threads} 个线程 {milliseconds:.0f} 毫秒",
    training_note="第 {step:,} / {steps:,} 次更新，损失 {loss:.2f}",
    capped="文本很小，最多训练 {epochs} 轮，再多就会过拟合",
    measuring="评测：预测验证集中被掩盖的 token，并与三种不看上下文的基线比较",
    blanks="填空：模型从未读过的句子",
    blanks_rule="句子按规则选取，与结果好坏无关：把验证集的句子随机排序，每句随机掩盖一个字或词，"
    "它在训练文本中常见，但不属于最常见的"
    " 20 个。",
    blanks_none="验证集中没有长度合适的句子。",
    looking="图：一句话的几种掩码方式、注意力、损失曲线",
    saving="保存：重新打开文件夹并核对，再写出报告",
    saved="重新打开后，模型给出的分数逐位相同",
    scores=("预测方法", "准确率", "交叉熵", "困惑度"),
    trained="这个模型",
    frequent="总预测最常见的 token",
    unigram="按 token 频率预测（一元模型）",
    untrained="同样的网络，未经训练",
    verdict_better="它的准确率是“总预测最常见的 token”的 {times:.1f} 倍，交叉熵比按频率预测低 {nats:.2f} 奈特："
    "它确实利用了上下文。不过每 100 次里仍会错 {wrong:.0f} 次。",
    verdict_slight="它的准确率是“总预测最常见的 token”的 {times:.1f} 倍，但交叉熵只比按频率预测低 {nats:.2f} 奈特："
    "它才刚开始利用上下文。每 100 次里它会错 {wrong:.0f} 次。多训练几分钟（--budget 10m）或给更多文本会有帮助。",
    verdict_same="这并不比按 token 频率预测更好：它还没有学会利用上下文。"
    "多训练几分钟（--budget 10m）或给更多文本会有帮助。",
    blank_columns=("句子", "预测", "原文", ""),
    hit="对",
    near="在前三个之中",
    miss="错",
    tally="{all} 个空中，第一次就猜对 {first} 个，三次之内猜对 {three} 个。",
    maskings="同一句话的几种掩码方式",
    maskings_why="同一个验证集句子，按不同掩码策略处理。被掩盖的位置就是预测目标。",
    maskings_note="各种掩码策略使用同样的随机数，差别只来自策略本身。",
    attention="注意力分布",
    attention_why="每个 token 按注意力权重汇集其他 token 的信息，"
    "每个头各有一组权重。模型很小，不宜对各个头作过多解读。",
    attention_note="用鼠标指向一个 token，或用方向键移动；单击或按回车键固定，按 Esc 取消。"
    "双击某个头的方块，只显示这一个头。",
    curve="损失曲线",
    curve_why="训练中被掩盖的 token 的交叉熵（单位：奈特）；圆点为验证集。训练到一半时行变长，曲线上可能有一个台阶。",
    curve_title="训练集与验证集上的损失",
    numbers="效果如何",
    numbers_why="在模型从未读过的文档里掩盖了 {questions:,} 个 token，各种方法预测的是同一批。"
    "交叉熵的单位是奈特，越低越好。",
    use="在别处使用",
    use_why="这个文件夹采用 Hugging Face 的布局，用下面几行就能打开：",
    steps_heading="时间用在哪里",
    step_columns=("步骤", "用时"),
    total="合计",
    everything="全部用时 {time}。请打开 {report}",
    go_on="接下来：",
    second="{} 秒",
    minute="{:.1f} 分钟",
)

WORDS = {"en": ENGLISH, "zh": CHINESE}
