"""What the pictures of vectors say, in English and Chinese."""

from __future__ import annotations

from dataclasses import dataclass

from maskery.language import catalogue


@dataclass(frozen=True, kw_only=True)
class VectorWords:
    lang: str
    heat_title: str
    heat_note: str
    heat_cell: str
    map_title: str
    pca_note: str
    tsne_note: str
    drawn: str
    rest: str


_EN = VectorWords(
    lang="en",
    heat_title="How alike {n} texts are",
    heat_note="The cosine of every two vectors. The stronger the colour, the more alike: from the least alike "
    "two texts here ({low}) to the most ({high}). Lines and columns have the same numbers.",
    heat_cell="{cosine}\n{one}\n{other}",
    map_title="{n} texts in two dimensions",
    pca_note="The two directions in which these vectors differ most keep {share} of their differences; the rest is not "
    "to be seen here.",
    tsne_note="t-SNE keeps neighbours together; distances between groups and the size of a group mean nothing.",
    drawn=" {n} of {all} texts were drawn by lot.",
    rest="{n} other labels",
)
_ZH = VectorWords(
    lang="zh",
    heat_title="{n} 个文本两两之间的相似度",
    heat_note="每两个向量的余弦。颜色越深越相似：从这里最不相似的两个文本（{low}）到最相似的（{high}）。行与列的编号相同。",
    heat_cell="{cosine}\n{one}\n{other}",
    map_title="二维平面上的 {n} 个文本",
    pca_note="图上是这些向量差别最大的两个方向，保留了全部差别的 {share}；其余的在图上看不到。",
    tsne_note="t-SNE 让相邻的点留在一起；各组之间的距离和组的大小没有意义。",
    drawn="从 {all} 个文本中随机抽取了 {n} 个。",
    rest="其他 {n} 个标签",
)
WORDS = {"en": _EN, "zh": _ZH}


def vector_words(lang: str) -> VectorWords:
    return catalogue(lang, WORDS)
