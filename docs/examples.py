"""The rows that docs/draw.py draws for the recipe pages, in English and Chinese; its signs are explained there."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Example:
    title: str
    title_zh: str
    words: list[int]
    """Tokens of each word of the first line."""
    lines: dict[str, str]
    """What stands before a line, and its cells."""


WWM = Example(
    title="One sentence under both masks: a word is hidden whole or not at all",
    title_zh="同一句话，两种掩码：一个词要么整个藏住，要么不藏",
    words=[3, 1, 2, 2, 3],
    lines={
        "text, words": "周 杰 伦 在 台 北 举 办 演 唱 会",
        "bert": "周 *[MASK] 伦 在 台 北 举 *[MASK] 演 唱 会",
        "bert-wwm": "*[MASK] *[MASK] *[MASK] 在 台 北 举 办 演 唱 会",
    },
)
SPANBERT = Example(
    title="A span of words is hidden whole; the states at its two ends are asked for every token of it",
    title_zh="一段词整段藏住；它两端的状态要说出其中的每个 token",
    words=[1] * 11,
    lines={
        "text, words": "the team won an american football game in denver last night",
        "read": "the team won *[MASK] *[MASK] *[MASK] *[MASK] in denver last night",
        "asked here": "_ _ _ *an *american *football *game _ _ _ _",
        "asked of ends": "_ _ !won 1 2 3 4 !in _ _ _",
    },
)
SPANBERT_ZH = replace(
    SPANBERT,
    words=[2, 2, 1, 2, 1, 1, 2, 2, 2, 1],
    lines={
        "text, words": "球 队 昨 晚 在 丹 佛 赢 了 一 场 美 式 足 球 赛",
        "read": "球 队 昨 晚 在 *[M] *[M] *[M] *[M] 一 场 美 式 足 球 赛",
        "asked here": "_ _ _ _ _ *丹 *佛 *赢 *了 _ _ _ _ _ _ _",
        "asked of ends": "_ _ _ _ !在 1 2 3 4 !一 _ _ _ _ _ _",
    },
)
ERNIE = Example(
    title="Three stages: a character, a phrase, an entity is hidden whole",
    title_zh="三个阶段：依次整个藏住一个字、一个短语、一个实体",
    words=[2, 2, 1, 2, 1, 1, 2, 1, 2, 2],
    lines={
        "text, words": "李 白 出 生 于 碎 叶 城 是 唐 代 的 著 名 诗 人",
        "marks": "+李 +白 _ _ _ +碎 +叶 +城 _ +唐 +代 _ +著 +名 +诗 +人",
        "1: token": "李 *[M] 出 生 于 碎 叶 城 是 *[M] 代 的 著 名 诗 人",
        "2: phrase": "李 白 出 生 于 碎 叶 城 是 唐 代 的 *[M] *[M] *[M] *[M]",
        "3: entity": "李 白 出 生 于 *[M] *[M] *[M] 是 唐 代 的 著 名 诗 人",
    },
)
MACBERT = Example(
    title="No mask is ever read: words are replaced by similar ones of the same length",
    title_zh="从不出现掩码：用同样长的相近词来替换",
    words=[1, 2, 1, 3, 2, 2, 1, 2],
    lines={
        "text, words": "他 喜 欢 在 图 书 馆 阅 读 小 说 和 写 信",
        "bert-wwm": "他 喜 欢 在 *[M] *[M] *[M] 阅 读 小 说 和 写 信",
        "macbert": "他 喜 欢 在 图 书 馆 ^浏 ^览 ^故 ^事 和 写 信",
        "asked": "_ _ _ _ _ _ _ ^阅 ^读 ^小 ^说 _ _ _",
    },
)
STRUCTBERT = Example(
    title="Besides masked tokens: three neighbours in another order; at each place, who stood here?",
    title_zh="掩码之外：相邻三个 token 换了次序，逐位问原来是谁",
    words=[1] * 10,
    lines={
        "text, words": "the dog chased a small cat across the wet street",
        "read": "the *[MASK] chased a %cat %across %small the wet street",
        "asked": "_ *dog _ _ %small %cat %across _ _ _",
    },
)
STRUCTBERT_ZH = replace(
    STRUCTBERT,
    words=[2, 2, 2, 1, 1, 1, 3, 1, 2],
    lines={
        "text, words": "小 狗 追 着 一 只 猫 跑 过 湿 漉 漉 的 街 道",
        "read": "小 *[M] 追 着 一 %猫 %跑 %只 过 湿 漉 漉 的 街 道",
        "asked": "_ *狗 _ _ _ %只 %猫 %跑 _ _ _ _ _ _ _",
    },
)
ELECTRA = Example(
    title="A generator fills the masks; the model tells for every token whether it was replaced",
    title_zh="生成器填上掩码；模型判断每个 token 是否被换过",
    words=[1] * 9,
    lines={
        "text, words": "the chef cooked the meal for ten hungry guests",
        "generator reads": "the chef *[MASK] the *[MASK] for ten hungry *[MASK]",
        "model reads": "the chef ~ate the =meal for ten hungry ~people",
        "replaced?": "no no ~yes no =no no no no ~yes",
    },
)
ELECTRA_ZH = replace(
    ELECTRA,
    words=[2, 1, 2, 2, 1, 2, 1, 2],
    lines={
        "text, words": "厨 师 给 客 人 准 备 了 可 口 的 晚 饭",
        "generator reads": "厨 师 给 *[M] 人 准 备 了 可 口 的 *[M] *[M]",
        "model reads": "厨 师 给 ~女 人 准 备 了 可 口 的 =晚 ~餐",
        "replaced?": "否 否 否 ~是 否 否 否 否 否 否 否 =否 ~是",
    },
)
TRANSFORMER = Example(
    title="The encoder reads the source at once; the decoder reads what it has written and is asked for what comes "
    "next",
    title_zh="编码器一次读完源文；解码器读自己已写的部分，逐位被问下一个是什么",
    words=[],
    lines={
        "encoder reads": "[CLS] ni hao shi jie [SEP]",
        "decoder reads": "[CLS] 你 好 世 界 _",
        "asked": "*你 *好 *世 *界 *[SEP] _",
    },
)
GPT = Example(
    title="The text as it runs, cut into rows of eight; every position is asked for what comes next",
    title_zh="文本连成一条，每八个切成一行；每个位置都被问下一个是什么",
    words=[],
    lines={
        "text": "the cat sat . [SEP] a dog ran off . [SEP] rain fell all day .",
        "row 1": "the cat sat . [SEP] a dog ran _ _ _ _ _ _ _ _",
        "asked": "*cat *sat *. *[SEP] *a *dog *ran _ _ _ _ _ _ _ _ _",
        "row 2": "_ _ _ _ _ _ _ _ off . [SEP] rain fell all day .",
    },
)
GPT_ZH = replace(
    GPT,
    lines={
        "文本": "猫 坐 着 。 [SEP] 狗 跑 了 出 去 [SEP] 下 了 一 天 雨",
        "第一行": "猫 坐 着 。 [SEP] 狗 跑 了 _ _ _ _ _ _ _ _",
        "asked": "*坐 *着 *。 *[SEP] *狗 *跑 *了 _ _ _ _ _ _ _ _ _",
        "第二行": "_ _ _ _ _ _ _ _ 出 去 [SEP] 下 了 一 天 雨",
    },
)
XL = Example(
    title="Rows of four go on where the one before ended; in front of each stands what was remembered of the last five",
    title_zh="每行四个，从上一行结束处接着读；前面是记住的最近五个",
    words=[],
    lines={
        "text": "the cat sat . [SEP] a dog ran off . [SEP] rain",
        "step 1": "the cat sat . _ _ _ _ _ _ _ _",
        "step 2": "@the @cat @sat @. [SEP] a dog ran _ _ _ _",
        "step 3": "_ _ _ @. @[SEP] @a @dog @ran off . [SEP] rain",
        "asked": "_ _ _ _ _ _ _ _ *. *[SEP] *rain _",
    },
)
XL_ZH = replace(
    XL,
    lines={
        "文本": "猫 坐 着 。 [SEP] 狗 跑 了 出 去 [SEP] 下",
        "第一步": "猫 坐 着 。 _ _ _ _ _ _ _ _",
        "第二步": "@猫 @坐 @着 @。 [SEP] 狗 跑 了 _ _ _ _",
        "第三步": "_ _ _ @。 @[SEP] @狗 @跑 @了 出 去 [SEP] 下",
        "asked": "_ _ _ _ _ _ _ _ *去 *[SEP] *下 _",
    },
)
BART = Example(
    title="BART: sentences out of order, one mask for a span of any length; the decoder writes the whole text",
    title_zh="BART：打乱句子顺序，一段无论多长都只换成一个掩码；解码器写出全文",
    words=[1, 4, 4, 1],
    lines={
        "text, words": "[CLS] the cat sat . it was small . [SEP]",
        "encoder reads": "[CLS] %it *[MASK] %. %the %cat *[MASK] %. [SEP] _",
        "decoder reads": "[SEP] [CLS] the cat sat . it was small .",
        "asked": "[CLS] the cat sat . it was small . [SEP]",
    },
)
BART_ZH = replace(
    BART,
    lines={
        "text, words": "[CLS] 猫 坐 着 。 它 很 小 。 [SEP]",
        "encoder reads": "[CLS] %它 *[MASK] %。 %猫 *[MASK] %。 [SEP] _ _",
        "decoder reads": "[SEP] [CLS] 猫 坐 着 。 它 很 小 。",
        "asked": "[CLS] 猫 坐 着 。 它 很 小 。 [SEP]",
    },
)
MASS = Example(
    title="MASS: one fragment is hidden; the decoder writes it alone, at the positions that it had",
    title_zh="MASS：遮住连续的一段；解码器只写这一段，位置与原来相同",
    words=[1, 1, 4, 1, 1, 1],
    lines={
        "text, words": "[CLS] the cat sat on the mat . [SEP]",
        "encoder reads": "[CLS] the *[MASK] *[MASK] *[MASK] *[MASK] mat . [SEP]",
        "decoder reads": "_ the cat sat on _ _ _ _",
        "asked": "_ *cat *sat *on *the _ _ _ _",
    },
)
MASS_ZH = replace(
    MASS,
    lines={
        "text, words": "[CLS] 猫 坐 在 垫 子 上 。 [SEP]",
        "encoder reads": "[CLS] 猫 *[MASK] *[MASK] *[MASK] *[MASK] 上 。 [SEP]",
        "decoder reads": "_ 猫 坐 在 垫 _ _ _ _",
        "asked": "_ *坐 *在 *垫 *子 _ _ _ _",
    },
)
EXAMPLES = {
    "bart": (BART, BART_ZH),
    "mass": (MASS, MASS_ZH),
    "transformer-xl": (XL, XL_ZH),
    "gpt": (GPT, GPT_ZH),
    "bert-wwm": (WWM, WWM),
    "spanbert": (SPANBERT, SPANBERT_ZH),
    "ernie": (ERNIE, ERNIE),
    "macbert": (MACBERT, MACBERT),
    "structbert": (STRUCTBERT, STRUCTBERT_ZH),
    "electra": (ELECTRA, ELECTRA_ZH),
    "transformer": (TRANSFORMER, TRANSFORMER),
}
