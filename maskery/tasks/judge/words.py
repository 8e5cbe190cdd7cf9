"""What the pages about a judgement say, in English and Chinese. Names of metrics and classes stay as they are."""

from __future__ import annotations

from dataclasses import dataclass

from maskery.language import Phrases, catalogue


@dataclass(frozen=True, kw_only=True)
class JudgeWords:
    lang: str
    title: str
    numbers: str
    numbers_why: dict[str, str]
    number_heads: tuple[str, ...]
    baselines: str
    baselines_why: str
    baseline_model: str
    by_kind: str
    kind_heads: tuple[str, ...]
    groups: str
    groups_why: str
    group_heads: dict[str, str]
    seeds: str
    seeds_why: str
    seed_heads: tuple[str, ...]
    confusion: str
    confusion_title: str
    confusion_note: str
    gold: str
    predicted: str
    cell: str
    rest: str
    gathered: str
    largest: str
    largest_heads: tuple[str, ...]
    class_heads: tuple[str, ...]
    reliability: str
    reliability_title: str
    reliability_note: str
    reliability_axes: tuple[str, str]
    before: str
    after: str
    bin: str
    calibration_heads: tuple[str, ...]
    mistakes: str
    mistakes_why: dict[str, str]
    no_mistakes: str
    shortened: str
    marked: str
    mistake_answers: str
    mistake_chance: str
    lengths: str
    lengths_why: str
    lengths_whole: str
    over: str
    length_heads: tuple[str, ...]
    learning: str
    learning_title: str
    learning_note: str
    learning_bars: str
    learning_axis: str
    learning_heads: tuple[str, ...]
    training: str
    training_axis: str
    training_loss: str
    training_loss_axis: str
    training_metric: str
    facts: str
    fact_heads: tuple[str, str]
    notes: str

    def line(self, english: str) -> str:
        """A note or fact, which is stored in English."""
        return Phrases(self.lang).line(english)

    def name(self, english: str) -> str:
        """The name of a fact."""
        return Phrases(self.lang).name(english)


_EN = JudgeWords(
    lang="en",
    title="{name}: {metric} {value}",
    numbers="In numbers",
    numbers_why={
        "examples": "{n} examples. Intervals are 95 % of resampled examples: they cover the choice of examples, not "
        "the chance of training.",
        "questions": "{n} questions. Intervals are 95 % of resampled questions: they cover the choice of questions, "
        "not the chance of training.",
    },
    number_heads=("metric", "value", "95 % from", "to"),
    baselines="Beside the simplest answers",
    baselines_why="Baselines answer the same examples; figures that are not defined for them are left out.",
    baseline_model="the model",
    by_kind="Kind by kind",
    kind_heads=("kind", "span_f1", "95 % from", "to", "precision", "recall"),
    groups="By {by}",
    groups_why="The same figures for the examples of each group. Few examples make wide intervals.",
    group_heads={},
    seeds="Several seeds",
    seeds_why="{runs} runs that differ in nothing but their seed.",
    seed_heads=("metric", "mean", "sd", "each"),
    confusion_title="Confusion matrix",
    confusion="What is taken for what",
    confusion_note="A line for each right class, a column for each predicted one. Numbers are examples; the colour is "
    "their share of the line.",
    gold="right",
    predicted="predicted",
    cell="right {gold}, predicted {predicted}: {n} of {all} ({share})",
    rest="all others",
    gathered="Of {all} classes the {shown} commonest are drawn; the others are put together.",
    largest="The commonest confusions",
    largest_heads=("right", "predicted", "examples"),
    class_heads=("class", "examples", "precision", "recall", "F1"),
    reliability_title="Reliability diagram",
    reliability="Is it as often right as it says?",
    reliability_note="On the dotted line a model is right as often as it says. Below it, it is too sure. The larger a "
    "point, the more examples; the line leaves out bins of fewer than 10.",
    reliability_axes=("chance that the model gives its answer", "share of right answers"),
    before="as trained",
    after="after the temperature",
    bin="chance {low} to {high}: {n} examples, mean chance {chance}, right {right}",
    calibration_heads=("", "ECE", "loss"),
    mistakes="The worst errors",
    mistakes_why={
        "sure": "Wrong answers, those first of which the model was surest; in brackets its chance.",
        "bad": "Wrong answers, the worst first.",
    },
    no_mistakes="No answer is wrong.",
    shortened="Texts of more than {most} characters are cut here.",
    marked="In the text, a coloured ground marks the right spans, a line below the predicted ones.",
    mistake_answers="right: {gold}; predicted: {predicted}",
    mistake_chance=" ({chance})",
    lengths="Lengths",
    lengths_why="Tokens of a row before it is cut.",
    lengths_whole="Tokens of a row if a long text were not read in windows.",
    over="{over} of {all} rows ({share}) are longer than {limit} and were cut.",
    length_heads=("part of the rows", "tokens at most"),
    learning_title="Learning curve",
    learning="What more data would bring",
    learning_note="A point for each run, the line through their means. Sizes are drawn by their logarithm.",
    learning_bars="Bars are 95 % of resampled examples.",
    learning_axis="examples trained on",
    learning_heads=("examples", "mean", "sd", "each", "95 % from", "to"),
    training="Training",
    training_axis="steps",
    training_loss="Loss of every update",
    training_loss_axis="loss",
    training_metric="{metric} of every evaluation on the development set",
    facts="How it was made",
    fact_heads=("", ""),
    notes="To be known",
)
_ZH = JudgeWords(
    lang="zh",
    title="{name}：{metric} {value}",
    numbers="数字",
    numbers_why={
        "examples": "共 {n} 个样本。区间来自对样本的重抽样（95%）：它反映选到哪些样本的偶然性，不含训练的偶然性。",
        "questions": "共 {n} 个问题。区间来自对问题的重抽样（95%）：它反映选到哪些问题的偶然性，不含训练的偶然性。",
    },
    number_heads=("指标", "数值", "95% 下限", "上限"),
    baselines="与基线比较",
    baselines_why="基线回答的是同样的样本；对基线没有定义的指标留空。",
    baseline_model="模型",
    by_kind="各类片段",
    kind_heads=("类型", "span_f1", "95% 下限", "上限", "精确率", "召回率"),
    groups="按 {by} 分组",
    groups_why="每组样本各自的指标。样本越少，区间越宽。",
    group_heads={"n": "样本数", "95 % from": "95% 下限", "to": "上限"},
    seeds="多个随机种子",
    seeds_why="{runs} 次训练，只有种子不同。",
    seed_heads=("指标", "均值", "标准差", "各次"),
    confusion_title="混淆矩阵",
    confusion="哪类被认成哪类",
    confusion_note="每行是一个正确类别，每列是一个预测类别。数字是样本数，颜色深浅是占该行的比例。",
    gold="正确",
    predicted="预测",
    cell="正确 {gold}，预测 {predicted}：{all} 个中的 {n} 个（{share}）",
    rest="其余",
    gathered="共 {all} 类，画出最常见的 {shown} 类，其余合为一类。",
    largest="最常见的混淆",
    largest_heads=("正确", "预测", "样本数"),
    class_heads=("类别", "样本数", "精确率", "召回率", "F1"),
    reliability_title="可靠性图",
    reliability="说的把握和实际一样吗？",
    reliability_note="落在虚线上，说明模型说的把握和答对的比例一致；在虚线下方，说明过于自信。点越大，样本越多；"
    "样本少于 10 个的区间不连线。",
    reliability_axes=("模型给自己答案的概率", "答对的比例"),
    before="训练后原样",
    after="温度校准后",
    bin="概率 {low} 到 {high}：{n} 个样本，平均概率 {chance}，答对 {right}",
    calibration_heads=("", "ECE", "损失"),
    mistakes="最严重的错误",
    mistakes_why={
        "sure": "答错的样本，模型最有把握的排在前面，括号里是它给的概率。",
        "bad": "答错的样本，错得最严重的排在前面。",
    },
    no_mistakes="没有答错的。",
    shortened="超过 {most} 个字符的文本在这里被截短。",
    marked="文本中，底色标出正确的片段，下划线标出预测的片段。",
    mistake_answers="正确：{gold}；预测：{predicted}",
    mistake_chance="（{chance}）",
    lengths="长度",
    lengths_why="截断之前每行的 token 数。",
    lengths_whole="长文本若不分窗口读，每行的 token 数。",
    over="{all} 行中有 {over} 行（{share}）超过 {limit}，已被截断。",
    length_heads=("占全部行的比例", "token 数不超过"),
    learning_title="学习曲线",
    learning="更多数据会带来什么",
    learning_note="每个点是一次训练，线连接各规模的均值。横轴按对数画。",
    learning_bars="竖线是对样本重抽样得到的 95% 区间。",
    learning_axis="训练样本数",
    learning_heads=("样本数", "均值", "标准差", "各次", "95% 下限", "上限"),
    training="训练过程",
    training_axis="步数",
    training_loss="每步的损失",
    training_loss_axis="损失",
    training_metric="每次评测的验证集 {metric}",
    facts="训练设置",
    fact_heads=("", ""),
    notes="说明",
)
_LANGUAGES = {"en": _EN, "zh": _ZH}


def judge_words(lang: str) -> JudgeWords:
    return catalogue(lang, _LANGUAGES)


def share_text(value: float, digits: int = 1) -> str:
    """0.1234 -> 12.3 %"""
    return f"{100 * value:.{digits}f} %"


def figure_text(value: float) -> str:
    """Four places behind the point; of a large error, four figures in all."""
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.4g}"
