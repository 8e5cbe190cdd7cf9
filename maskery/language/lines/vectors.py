"""What is said of sentence vectors and word vectors."""

from __future__ import annotations

VECTORS: dict[str, str] = {
    "{n1} distinct texts stand in {n2} places": "{n2} 处文本中有 {n1} 条不同的文本",
    "{path} does not say how slots are pooled: the mean over them is taken, of at most {n} slots": (
        "{path} 没有说明池化方式：取平均池化，最多 {n} 个 token"
    ),
    "{path} does not say how slots are pooled: the {w} one is taken, as in {whose}": (
        "{path} 没有说明池化方式：取 {w}，与 {whose} 相同"
    ),
    "chosen for the loss {w}: {settings}": "按损失函数 {w} 选择：{settings}",
    "{w} {n1} before training, {n2} units": "训练前 {w} {n1}，{n2} 个单元",
    "classes: {labels}": "类别：{labels}",
    "a batch of {n}: there are no more units": "batch 大小 {n}：没有更多的训练单元",
    "a score of {n} stands for the cosine 1 (highest)": "分数 {n} 对应余弦 1（highest）",
    "{n1} of {n2} texts are longer than {n3} slots and are cut": "{n2} 条文本中有 {n1} 条超过 {n3} 个 token，已截断",
    "{n1} of {n2} texts are longer than {n3} slots and were cut": "{n2} 条文本中有 {n1} 条超过 {n3} 个 token，已截断",
    "{n1} of {n2} texts are empty: their vector is that of the marks alone": (
        "{n2} 条文本中有 {n1} 条为空：其向量只来自特殊 token"
    ),
    "{n1} of {n2} units are left out: the line was there before": "去掉 {n2} 个单元中的 {n1} 个：与前面的行重复",
    "{n1} comparisons in {n2} batches are left out: the texts are equal, no false negatives": (
        "{n2} 个 batch 中去掉 {n1} 次比较：文本相同，避免假负例"
    ),
    "the development set told nothing: all similarities or all scores are equal": (
        "验证集无法区分好坏：相似度或分数全部相等"
    ),
    (
        "worse than before: no evaluation reached {w} {n} of the start, which is kept. Try a lower learning rate "
        "(--lr), other data or another loss"
    ): "不如训练前：没有一次评测达到开始时的 {w} {n}，因此保留开始的模型。请降低学习率（--lr），或换数据、换损失函数",
    "{path}: {n1} updates": "{path}：更新 {n1} 步",
    "best at step {n1}: {n2}": "最好在第 {n1} 步：{n2}",
    "worse than before training ({n}): the start is kept": "不如训练前（{n}）：保留开始的模型",
    "{n} dimensions": "{n} 维",
    "{w}, {n} pairs; in brackets the 95 % interval": "{w}，{n} 个句对；方括号内为 95% 区间",
    "{w}, {n} queries; in brackets the 95 % interval": "{w}，{n} 个查询；方括号内为 95% 区间",
    "{w}, {n} texts; in brackets the 95 % interval": "{w}，{n} 条文本；方括号内为 95% 区间",
    "only {n} {units}: the intervals are too narrow": "只有 {n} 个{units}：区间偏窄",
    "whitening, {n1} to {n2} dimensions, fitted on {n3} vectors": "白化：{n1} 维到 {n2} 维，用 {n3} 个向量拟合",
    "the dimensions kept held {n} % of the variance": "保留的维度占方差的 {n}%",
    (
        "{n1} of {n2} directions exist (the rank of the covariance): one weighted sum of the dimensions is the same in "
        "all vectors, as after a last LayerNorm"
    ): "{n2} 个方向中只有 {n1} 个（协方差的秩）：最后的 LayerNorm 使各维的某个加权和在所有向量中相同",
    "{path}: {w} of {n1} texts, {n2} dimensions": "{path}：{w}，{n1} 条文本，{n2} 维",
    "{n1} of {n2} pairs have {n3} negative(s) each, of {n4} texts": (
        "{n2} 个句对中有 {n1} 个各得 {n3} 个负例，共 {n4} 条文本"
    ),
    "{n1} of {n2} texts at the ranks {n3} to {n4} were too near": "第 {n3} 到 {n4} 名的 {n2} 条文本中有 {n1} 条过近",
    "cosine with the anchor: positives {n1}, negatives {n2} ({n3} to {n4})": (
        "与锚点的余弦：正例 {n1}，负例 {n2}（{n3} 到 {n4}）"
    ),
    "ranks {n} in the mean": "平均名次 {n}",
    "the plane keeps {n1} % of the differences of these {n2} vectors": "平面保留了这 {n2} 个向量差别的 {n1}%",
    "no room for {n} words: a wider terminal, a smaller --top, or --html map.html": (
        "有 {n} 个词放不下：请加宽终端、减小 --top，或用 --html map.html"
    ),
    "no room for 1 word: a wider terminal, a smaller --top, or --html map.html": (
        "有 1 个词放不下：请加宽终端、减小 --top，或用 --html map.html"
    ),
}
