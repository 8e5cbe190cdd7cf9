"""What is said of fine-tuning and evaluation."""

from __future__ import annotations

from maskery.language.chinese import CHINESE

_BASELINES = ("majority", "mean", "tfidf", "cosine", "seen_spans", "overlap", "copy")
"""In sentences they have the names of the tables."""
TASKS: dict[str, str] = {
    # settings
    "chosen: {settings}": "自动选择：{settings}",
    "settings: all as given": "设置：全部按指定",
    "learning rate {n} ({why}), {rest}": "学习率 {n}（{why}），{rest}",
    "{n} epochs ({why}), {rest}": "{n} 轮（{why}），{rest}",
    "batches of {n} ({why}), {rest}": "batch 大小 {n}（{why}），{rest}",
    "learning rate {n} ({why})": "学习率 {n}（{why}）",
    "{n} epochs ({why})": "{n} 轮（{why}）",
    "batches of {n} ({why})": "batch 大小 {n}（{why}）",
    "pooling {w} ({why})": "池化 {w}（{why}）",
    "{n} million layer parameters": "各层共 {n} 百万参数",
    "{n} rows": "{n} 行",
    "{n} units": "{n} 个训练单元",
    "{n} rows need them for enough updates": "只有 {n} 行，更新次数需要这么多轮",
    "{n} rows, for enough updates": "{n} 行，使更新次数足够",
    "the base model is hardly trained": "底座模型训练不足",
    "the base model is hardly trained and has no pooler": "底座模型训练不足，也没有池化层",
    "as the model's folder pools": "与模型文件夹的池化方式相同",
    "read: {pool}, the head of {w} ({head})": "池化：{pool}，{w} 自带的分类头（{head}）",
    "the model has no pooler: a new one is trained": "模型没有池化层：训练一个新的",
    "the model has no pooler, and it is frozen: a layer on its first slot is trained instead": (
        "模型没有池化层，且已冻结：改为在首个位置上训练一层"
    ),
    "{n1} examples make {n2} units of training": "{n1} 个样本构成 {n2} 个训练单元",
    "the model has the task's own head, {w}: training goes on from it": "模型已有该任务的输出层 {w}：在其上继续训练",
    "every question of the training data has an answer, so there will always be one": (
        "训练数据中每个问题都有答案，因此预测时总会给出答案"
    ),
    "no answer is given where that scores better by more than {n}: {why}": "无答案得分高出 {n} 以上时判为无答案：{why}",
    "micro-batch: {units} ({why})": "micro-batch：{units}（{why}）",
    "{n1} of {n2} units": "{n2} 个单元中的 {n1} 个",
    "the whole batch fits": "整个 batch 放得下",
    "{n} tokens fill the cores": "{n} 个 token 已占满计算核心",
    "precision: float32; this CPU is quicker with --set training.precision=bfloat16": (
        "精度：float32；这块 CPU 用 --set training.precision=bfloat16 更快"
    ),
    (
        "warning: the base model is hardly trained, or on other text: {why}. Expect little more than a "
        "baseline; {repair}"
    ): ("警告：底座模型训练不足，或训练文本与此不同：{why}。效果可能只略高于基线；{repair}"),
    "the base model is hardly trained: its pretraining read {n} tokens, BERT's more than 100 billion": (
        "底座模型训练不足：它的预训练只读了 {n} 个 token，BERT 读了超过一千亿个"
    ),
    (
        "its loss on hidden tokens of the training texts is {n1}, that of their frequencies {n2}"
    ): "它在训练文本掩盖的 token 上损失为 {n1}，只用词频的损失为 {n2}",
    "its loss on next tokens of the training texts is {n1}, that of their frequencies {n2}": (
        "它在训练文本下一个 token 上的损失为 {n1}，只用词频的损失为 {n2}"
    ),
    "take a pretrained model, or pretrain it longer": "请换预训练充分的模型，或继续预训练",
    "{n1} s of the budget of {n2} s went before training began": "时间预算 {n2} 秒中有 {n1} 秒用在训练开始之前",
    "batch size {n1}: of {n2} rows only {n3} updates would fit into the budget": (
        "batch 大小 {n1}：若为 {n2} 行，时间预算内只够更新 {n3} 次"
    ),
    "batch size {n1}: of {n2} rows only {n3} update would fit into the budget": (
        "batch 大小 {n1}：若为 {n2} 行，时间预算内只够更新 {n3} 次"
    ),
    "budget of {n1} s: all {n2} epochs fit ({n3} steps; {n4} ms an update)": (
        "时间预算 {n1} 秒：可完成全部 {n2} 轮（{n3} 步；每步 {n4} 毫秒）"
    ),
    "budget of {n1} s: {n2} of {n3} epochs ({n4} steps; {n5} ms an update)": (
        "时间预算 {n1} 秒：{n3} 轮中完成 {n2} 轮（{n4} 步；每步 {n5} 毫秒）"
    ),
    (
        "evaluation has {n1} s: it reads a fixed random sample of {n2} of {n3} development examples ({n4} ms each); "
        "{report}"
    ): "评测可用 {n1} 秒：从 {n3} 个验证样本中固定随机抽取 {n2} 个（每个 {n4} 毫秒）；{report}",
    "the report at the end reads all": "最后的报告使用全部验证样本",
    "so does the report": "报告也是如此",
    "--truncate {w}: no row is cut ({why}), so there is one training": (
        "--truncate {w}：没有行被截断（{why}），只训练一次"
    ),
    # progress
    "step {place}: dev: {figures} (best so far)": "第 {place} 步：验证集：{figures}（目前最好）",
    "step {place}: dev: {figures} (best {n1}, step {n2})": "第 {place} 步：验证集：{figures}（最好 {n1}，第 {n2} 步）",
    "step {place}: dev: {figures} (worse than {n1} before training)": (
        "第 {place} 步：验证集：{figures}（低于训练前的 {n1}）"
    ),
    "{w}: step {place}, loss {n1}, rate {n2}, {speed}, {left} left{rest}": (
        "{w}：第 {place} 步，损失 {n1}，学习率 {n2}，{speed}，剩余 {left}{rest}"
    ),
    "step {place}, loss {n1}, rate {n2}, {speed}, {left} left": (
        "第 {place} 步，损失 {n1}，学习率 {n2}，{speed}，剩余 {left}"
    ),
    "step {place}, loss {n1}, rate {n2}, {speed}, {left} left, {evaluation}": (
        "第 {place} 步，损失 {n1}，学习率 {n2}，{speed}，剩余 {left}，{evaluation}"
    ),
    "{figures} (best so far)": "{figures}（目前最好）",
    "{figures} (best {n1}, step {n2})": "{figures}（最好 {n1}，第 {n2} 步）",
    "{n} tokens/s": "每秒 {n} 个 token",
    "{n1} tokens/s ({n2} % of peak)": "每秒 {n1} 个 token（峰值的 {n2}%）",
    "held out: loss {n1}": "验证集：损失 {n1}",
    "held out: loss {n1}, accuracy {n2} %": "验证集：损失 {n1}，准确率 {n2}%",
    "held out: loss {n1}, accuracy {n2} %, {more}": "验证集：损失 {n1}，准确率 {n2}%，{more}",
    "ended early: {n} evaluations brought nothing better": "提前停止：连续 {n} 次评测没有更好的结果",
    "resumed from {w}": "从 {w} 续训",
    "{path}: already finished at step {n}": "{path}：已在第 {n} 步完成",
    "training {n1} of {n2}, {name}": "第 {n1}/{n2} 次训练，{name}",
    "{path}: {name} is kept, the best on the development set": "{path}：保留 {name}，它在验证集上最好",
    "{path}: {name} is kept, all of the data": "{path}：保留 {name}，即使用全部数据的模型",
    "{path}: {name} is kept": "{path}：保留 {name}",
    "{path}: answers are the average of {names}": "{path}：预测为 {names} 的平均",
    "so far: {what}": "目前：{what}",
    "{n} seeds: {w} {n1}, sd {n2} ({each})": "{n} 个随机种子：{w} {n1}，标准差 {n2}（{each}）",
    "{n} examples: {figure}": "{n} 个样本：{figure}",
    "{n} examples, seed {n1}: {figure}": "{n} 个样本，种子 {n1}：{figure}",
    "truncate {w}: {figure}": "截断方式 {w}：{figure}",
    "the three together: {figure}": "三者集成：{figure}",
    "adapting: {n1} different texts of {n2} examples, {n3} tokens": (
        "继续预训练：{n2} 个样本中的 {n1} 条不同文本，{n3} 个 token"
    ),
    "adapting: {n1} steps of {n2} rows of {n3} tokens, rate {n4}, asked: {what} (recipe {w}); labels are not read": (
        "继续预训练：{n1} 步，每步 {n2} 行、每行 {n3} 个 token，学习率 {n4}，预训练任务：{what}（配方 {w}）；不读标签"
    ),
    # results
    "{w}, {n} examples; in brackets the 95 % interval": "{w}，{n} 个样本；方括号内为 95% 区间",
    "{w}, 1 example; in brackets the 95 % interval": "{w}，1 个样本；方括号内为 95% 区间",
    "{w}, {n} questions; in brackets the 95 % interval": "{w}，{n} 个问题；方括号内为 95% 区间",
    "{path}: a model for {w}, in {time}": "{path}：{w} 任务的模型，用时 {time}",
    "report: {path}": "报告：{path}",
    "answers to the test set: {path}": "测试集的预测：{path}",
    "next: {commands}": "接下来：{commands}",
    "written: {path}": "已写出：{path}",
    "written: {path} ({n} answers)": "已写出：{path}（{n} 条预测）",
    "written: {path} (1 answer)": "已写出：{path}（1 条预测）",
    "written: {one}, {other}; the runs: {path}": "已写出：{one}、{other}；各次训练：{path}",
    "{label}: done in {time}": "{label}：完成，用时 {time}",
    (
        "the model is ahead of the best {which}: {metric} {n1} against {n2}, difference {n3} [{n4}, {n5}]"
    ): "模型优于最好的基线（{which}）：{metric} {n1} 对 {n2}，相差 {n3} [{n4}, {n5}]",
    (
        "the model is level with the best {which}: {metric} {n1} against {n2}, difference {n3} [{n4}, {n5}]"
    ): "模型与最好的基线（{which}）没有显著差别：{metric} {n1} 对 {n2}，相差 {n3} [{n4}, {n5}]",
    (
        "the model is behind the best {which}: {metric} {n1} against {n2}, difference {n3} [{n4}, {n5}]"
    ): "模型不如最好的基线（{which}）：{metric} {n1} 对 {n2}，相差 {n3} [{n4}, {n5}]",
    **{f"baseline, {name}": CHINESE[name] for name in _BASELINES},
    "no four units in a row are right anywhere: bleu is 0 by definition": (
        "没有任何连续四个单元是正确的：按定义 bleu 为 0"
    ),
    "{n1} of {n2} texts were ended at {n3} tokens (write.longest)": (
        "{n2} 条文本中有 {n1} 条在 {n3} 个 token 处截断（write.longest）"
    ),
    "{file}: JSON with one object on each line": "{file}：每行一个对象的 JSON",
    "{folder}: ignored tensors: {n}: {names}": "{folder}：忽略的张量：{n} 个：{names}",
    (
        "warning: all {n} examples are predicted as {label}: the model does not tell the classes apart. Train more "
        "epochs, with another learning rate, or from another model"
    ): "警告：{n} 个样本全部预测为 {label}：模型没有区分各类。请增加轮数、换学习率或换底座模型",
    "f1 is that of {label}, the last label": "f1 是最后一个标签 {label} 的 F1",
    "macro_f1 leaves out what neither occurs nor is predicted: {labels}": (
        "macro_f1 不计既未出现也未被预测的标签：{labels}"
    ),
    "all right answers are {label}: mcc is 0 by definition": "正确标签全是 {label}：mcc 按定义为 0",
    "all right answers are {label}: mcc is 0 and auc 0.5 by definition": (
        "正确标签全是 {label}：按定义 mcc 为 0、auc 为 0.5"
    ),
    "all predictions are {label}: mcc is 0 by definition": "预测全是 {label}：mcc 按定义为 0",
    "all right scores are {n}: spearman and pearson are 0 by definition": (
        "正确分数全是 {n}：spearman 和 pearson 按定义为 0"
    ),
    "all predicted scores are {n}: spearman and pearson are 0 by definition": (
        "预测分数全是 {n}：spearman 和 pearson 按定义为 0"
    ),
    "no span was predicted: precision and span_f1 are 0 by definition": (
        "没有预测出任何片段：precision 和 span_f1 按定义为 0"
    ),
    "predicted, but never right: {kinds}": "有预测但从未正确的类型：{kinds}",
    "left out: {n} questions without a right candidate": "去掉 {n} 个没有正确候选的问题",
    "{n} questions have candidates of equal score: these share the last of their places": (
        "{n} 个问题有同分的候选：它们都取其中最靠后的名次"
    ),
    "answers are compared as SQuAD does": "答案按 SQuAD 的方式比较",
    "answers are compared as CMRC does": "答案按 CMRC 的方式比较",
    "answers are compared as SQuAD does, by the writing of the right ones": (
        "答案按 SQuAD 的方式比较（由正确答案的文字推断）"
    ),
    "answers are compared as CMRC does, by the writing of the right ones": (
        "答案按 CMRC 的方式比较（由正确答案的文字推断）"
    ),
    "{n1} of {n2} questions have no answer: right if nothing is predicted": (
        "{n2} 个问题中有 {n1} 个没有答案：预测为空即为正确"
    ),
    "{n1} of {n2} questions has no answer: right if nothing is predicted": (
        "{n2} 个问题中有 {n1} 个没有答案：预测为空即为正确"
    ),
    "{n1} of {n2} texts were left empty": "{n2} 条生成文本中有 {n1} 条为空",
    "figures are of a fixed random sample of {n1} of {n2} development examples": (
        "指标来自 {n2} 个验证样本中固定随机抽取的 {n1} 个"
    ),
    "the temperature was fitted on the same examples: after it they look better than others would": (
        "温度在同一批样本上拟合：校准后的数值比在新样本上乐观"
    ),
    "the temperature is at its limit, {n}: {why}": "温度到达上下限 {n}：{why}",
    "the TF-IDF baseline is fitted on {n1} of {n2} training examples": (
        "TF-IDF 基线用 {n2} 个训练样本中的 {n1} 个拟合"
    ),
    "only {n} examples: the intervals are too narrow": "只有 {n} 个样本：区间偏窄",
    "only 1 example: the intervals are too narrow": "只有 1 个样本：区间偏窄",
    # facts of the report
    "{n1} epochs in batches of {n2}, rate {n3}, seed {n4}": "{n1} 轮，batch 大小 {n2}，学习率 {n3}，随机种子 {n4}",
    "{n} slots at most": "最多 {n} 个 token",
    "every slot": "每个位置",
    "{w}, the best of {n} on these very examples: their mean is the fairer figure": (
        "{w}，{n} 次中在这批样本上最好的一次；更公平的是各次的均值"
    ),
    "adapting: {text}": "继续预训练：{text}",
    "{file} holds what {w} has no place for: {parts}": "{file} 保存 {w} 放不下的部分：{parts}",
    "its layer norms are as they are drawn at the start": "层归一化的参数仍是初始值",
    "{n} tags did not fit their neighbours and were mended": "{n} 个标签与相邻标签不合，已修正",
    "there is no pooler: {code} opens it; without this word Hugging Face makes an untrained one": (
        "没有池化层：请用 {code} 打开；否则 Hugging Face 会新建一个未训练的池化层"
    ),
    "{figures} (worse than {n1} before training)": "{figures}（低于训练前的 {n1}）",
    "chances say nothing about the answers": "概率与答案是否正确无关",
    "all answers are right": "全部答对",
    "{read}, of a frozen encoder": "{read}，编码器冻结",
    "every token of a target": "目标文本的每个 token",
    "where that scores better by more than {n}": "无答案得分高出 {n} 以上时",
}
