"""What the tables about learned sentence vectors are headed by and say, in English and Chinese."""

from __future__ import annotations

HEADS = {
    "vectors_simcse": {
        "en": [
            "set",
            "pairs",
            "before",
            "before, whitened",
            "SimCSE",
            "SimCSE, whitened",
            "SimCSE to before",
            "SimCSE to whitened",
        ],
        "zh": [
            "集合",
            "对数",
            "训练前",
            "训练前，白化",
            "SimCSE",
            "SimCSE，白化",
            "SimCSE 与训练前之差",
            "SimCSE 与白化之差",
        ],
    },
    "vectors_supervised": {
        "en": ["", "STS-B", "ATEC", "BQ", "LCQMC", "PAWSX"],
        "zh": ["", "STS-B", "ATEC", "BQ", "LCQMC", "PAWSX"],
    },
    "vectors_sbert": {
        "en": ["the classes are told from", "ours", "to (u, v, abs(u-v))", "published: BERT-base, English"],
        "zh": ["类别的依据", "我们", "与 (u, v, abs(u-v)) 之差", "论文：BERT-base，英文"],
    },
    "vectors_whitening": {
        "en": ["encoder, set", "after", "dimensions", "fitted on the asked", "to none", "fitted on train", "to none"],
        "zh": ["编码器，集合", "后处理", "维数", "在被考的句子上拟合", "与不做之差", "在训练集上拟合", "与不做之差"],
    },
    "vectors_flow": {
        "en": [
            "encoder, set",
            "fitted on",
            "vectors: seen / held out",
            "bits before",
            "bits after",
            "largest error",
            "largest number",
        ],
        "zh": ["编码器，集合", "拟合用的句子", "向量：用到 / 留出", "之前的比特", "之后的比特", "最大误差", "最大的数"],
    },
    "vectors_simbert": {
        "en": ["vectors", "queries / texts", "recall@1", "recall@10"],
        "zh": ["向量", "查询 / 文本", "recall@1", "recall@10"],
    },
    "simbert_written": {
        "en": ["given", "its partner in the data", "most probable", "drawn"],
        "zh": ["给出的", "数据里的另一半", "最可能的", "抽取的"],
    },
    "vectors_geometry": {
        "en": ["encoder", "texts of", "mean cosine", "alignment", "uniformity"],
        "zh": ["编码器", "文本来自", "平均余弦", "alignment", "uniformity"],
    },
}
SIDES = {
    "en": {
        "before": "before",
        "simcse": "SimCSE",
        "cosine": "cosine",
        "cosent": "CoSENT",
        "simcse_cosent": "SimCSE, then CoSENT",
        "mean": "before, mean",
        "first_last": "before, first_last",
        "simbert": "SimBERT",
        "nothing": "(nothing)",
    },
    "zh": {
        "before": "训练前",
        "simcse": "SimCSE",
        "cosine": "cosine",
        "cosent": "CoSENT",
        "simcse_cosent": "先 SimCSE 后 CoSENT",
        "mean": "训练前，mean",
        "first_last": "训练前，first_last",
        "simbert": "SimBERT",
        "nothing": "（没有写出文字）",
    },
}
JOINS = {
    "uv": "(u, v)",
    "difference": "abs(u-v)",
    "product": "u∗v",
    "difference_product": "(abs(u-v), u∗v)",
    "uv_product": "(u, v, u∗v)",
    "uv_difference": "(u, v, abs(u-v))",
    "uv_difference_product": "(u, v, abs(u-v), u∗v)",
}
AFTERS = {
    "en": {"none": "none", "centring": "centring", "whitening": "whitening", "flow": "flow"},
    "zh": {"none": "不做", "centring": "中心化", "whitening": "白化", "flow": "流模型"},
}
FITTED = {
    "en": {"asked": "the asked sentences", "train": "the training sentences"},
    "zh": {"asked": "被考的句子", "train": "训练集的句子"},
}
SAYS = {
    "en": {
        "gap": " ",
        "comma": ", ",
        "pool": "Before training {plain} is the better of the two poolings in the mean over the sets, whitened "
        "{whitened}; whitening was fitted on {many} sentences of the text.",
        "learned_better": "SimCSE is better than the model before on {names}.",
        "learned_worse": "SimCSE is worse than the model before on {names}.",
        "learned_equal": "Between SimCSE and the model before no difference could be shown on {names}.",
        "learned_to_whitened_better": "It is better than whitening alone on {names}.",
        "learned_to_whitened_worse": "It is worse than whitening alone on {names}.",
        "learned_to_whitened_equal": "Between it and whitening alone no difference could be shown on {names}.",
        "whitened_before_better": "Whitening the model before helps on {names}.",
        "whitened_before_worse": "Whitening the model before does harm on {names}.",
        "whitened_before_equal": "Whitening the model before makes no difference that could be shown on {names}.",
        "whitened_after_better": "Whitening on top of SimCSE helps on {names}.",
        "whitened_after_worse": "Whitening on top of SimCSE does harm on {names}.",
        "whitened_after_equal": "Whitening on top of SimCSE makes no difference that could be shown on {names}.",
        "supervised": "Trained on {pairs} pairs of STS-B; the other four sets are transfer.",
        "side_better": "{one} against {other}: better on {names}.",
        "side_worse": "{one} against {other}: worse on {names}.",
        "side_equal": "{one} against {other}: no difference that could be shown on {names}.",
        "joins": "{pairs} pairs of OCNLI, seeds: {seeds}. The highest here is {best}.",
        "join_better": "Better than (u, v, abs(u-v)): {names}.",
        "join_worse": "Worse than (u, v, abs(u-v)): {names}.",
        "join_equal": "No difference to (u, v, abs(u-v)) that could be shown: {names}.",
        "after_better": "{model}, fitted on {fitted}: better than none are {names}.",
        "after_worse": "{model}, fitted on {fitted}: worse than none are {names}.",
        "after_equal": "{model}, fitted on {fitted}: no difference to none could be shown for {names}.",
        "flow": "The likelihood of held-out vectors rises in {risen} of {fits} fits of the flow; the largest error "
        "there and back is {error}.",
        "inverted": "That is within the 1e-4 that we ask for.",
        "not_inverted": "That is more than the 1e-4 that we ask for.",
        "simbert": "Learned from {pairs} pairs: {listed}.",
    },
    "zh": {
        "gap": "",
        "comma": "、",
        "pool": "训练之前，按各集合的平均，两种池化里较好的是 {plain}，白化之后是 {whitened}；"
        "白化在文本的 {many} 个句子上拟合。",
        "learned_better": "SimCSE 比训练前好的集合：{names}。",
        "learned_worse": "SimCSE 比训练前差的集合：{names}。",
        "learned_equal": "SimCSE 与训练前看不出差别的集合：{names}。",
        "learned_to_whitened_better": "比单用白化好的集合：{names}。",
        "learned_to_whitened_worse": "比单用白化差的集合：{names}。",
        "learned_to_whitened_equal": "与单用白化看不出差别的集合：{names}。",
        "whitened_before_better": "训练前的模型，白化有帮助的集合：{names}。",
        "whitened_before_worse": "训练前的模型，白化反而有害的集合：{names}。",
        "whitened_before_equal": "训练前的模型，看不出白化有差别的集合：{names}。",
        "whitened_after_better": "在 SimCSE 之上白化有帮助的集合：{names}。",
        "whitened_after_worse": "在 SimCSE 之上白化反而有害的集合：{names}。",
        "whitened_after_equal": "在 SimCSE 之上看不出白化有差别的集合：{names}。",
        "supervised": "在 STS-B 的 {pairs} 对上训练；另外四个集合是迁移。",
        "side_better": "{one} 对 {other}，较好的集合：{names}。",
        "side_worse": "{one} 对 {other}，较差的集合：{names}。",
        "side_equal": "{one} 对 {other}，看不出差别的集合：{names}。",
        "joins": "OCNLI 的 {pairs} 对，种子数：{seeds}。这里最高的是 {best}。",
        "join_better": "比 (u, v, abs(u-v)) 好的：{names}。",
        "join_worse": "比 (u, v, abs(u-v)) 差的：{names}。",
        "join_equal": "与 (u, v, abs(u-v)) 看不出差别的：{names}。",
        "after_better": "{model}，用{fitted}拟合，比不做好的：{names}。",
        "after_worse": "{model}，用{fitted}拟合，比不做差的：{names}。",
        "after_equal": "{model}，用{fitted}拟合，与不做看不出差别的：{names}。",
        "flow": "流模型的 {fits} 次拟合里，留出向量的似然有 {risen} 次上升；变换再还原，最大误差是 {error}。",
        "inverted": "在我们要求的 1e-4 以内。",
        "not_inverted": "超过了我们要求的 1e-4。",
        "simbert": "学习用的 {pairs} 对：{listed}。",
    },
}
