"""Chinese sentences by their English ones; what stands in braces is filled in."""

CHINESE: dict[str, str] = {
    # maskery inspect: rows
    "row {number} of the plan": "计划中的第 {number} 行",
    "{corpus} row {row}": "{corpus} 的第 {row} 行",
    "{size} of {length} slots": "{length} 个位置中占 {size} 个",
    "read {mode}": "按 {mode} 读",
    "{n} chosen": "选中 {n} 个",
    "{n} shuffled": "打乱 {n} 个",
    "{n} in the n-gram": "n-gram 内 {n} 个",
    "pair: {label}": "句对：{label}",
    " (not asked)": "（不作预测目标）",
    ", ": "，",
    ": ": "：",
    "decoder reads": "解码器读",
    "is asked for": "预测目标",
    "drawn by the generator of {run}: what the model reads": "{run} 的生成器抽取的 token：模型读到的是它",
    "ties the tokens of a word": "连接同一个词的 token",
    "Rows of {recipe} as training reads them": "{recipe} 的训练样本（行）",
    "A line below tokens holds a word together.": "下方的横线连接同一个词的 token。",
    "After {sign} stands what the generator of {run} drew: the model reads this.": (
        "{sign} 后面是 {run} 的生成器抽取的 token，模型读到的是它。"
    ),
    "warning: ": "警告：",
    # maskery inspect: rates
    "Measured over {rows} rows, {tokens} positions": "在 {rows} 行、{tokens} 个位置上统计",
    ", from step {step} on": "，从第 {step} 步起",
    " (stage {number} of {of}: {unit})": "（第 {number}/{of} 阶段：{unit}）",
    "measured": "实测",
    "95 % interval": "95% 区间",
    "recipe": "配方",
    "of": "总数",
    "of {cases} {what}": "共 {cases} {what}",
    "; recipe {value}": "；配方 {value}",
    "lengths, %": "长度，%",
    "drawn": "抽取",
    "kept": "保留",
    "runs, in words": "连续片段（词）",
    "longer": "更长",
    "chosen": "选中",
    "chosen, beside the n-gram": "选中（n-gram 之外）",
    "chosen, of what may be": "选中（可选位置中）",
    "chosen words": "选中的词",
    "similar or unmatched": "相似词或无相似词",
    "shuffled": "打乱",
    "runs shuffled": "打乱的片段",
    "in the n-gram": "n-gram 内",
    "rows that have one": "含 n-gram 的行",
    "its words, mean": "n-gram 平均词数",
    "read": "读法",
    "pair": "句对",
    "without a pair": "没有句对",
    "run of chosen, mean words": "连续选中片段，平均词数",
    "words split": "被拆开的词",
    "corpus": "语料",
    "ordinary positions": "个普通位置",
    "ordinary positions outside it": "个 n-gram 外的位置",
    "positions in reach": "个可选位置",
    "words": "个词",
    "rows": "行",
    "pairs": "个句对",
    "pairs read in full": "个双向注意力的句对",
    "spans": "个片段",
    "runs": "个连续片段",
    "n-grams": "个 n-gram",
    "words touched": "个涉及的词",
    # maskery inspect: order
    "a line for each position that reads, a column for each that is read; → what it is asked for": (
        "每行是一个查询位置，每列是一个被读的位置；→ 后面是该位置的预测目标"
    ),
    "before the {wall} what is remembered: {drawn} of {memory} slots": (
        "{wall} 左边是缓存的记忆：共 {memory} 个位置，画出 {drawn} 个"
    ),
    "a row that is read {mode}": "按 {mode} 读的一行",
    # maskery compare
    "Comparison": "对比实验",
    " (not finished)": "（未完成）",
    "In numbers": "数值",
    "What was equal": "控制变量",
    "Masked tokens": "掩码 token（MLM）",
    "The next token": "下一个 token",
    "{name}, accuracy % on the same held-out rows": "{name}：同一批验证样本上的准确率（%）",
    "Questions about pairs, accuracy %": "句级预训练任务，准确率（%）",
    (
        "Published: Lan et al. 2019, table 5, for far larger models trained with the same question. A model without "
        "the head has a linear one, fitted on its [CLS] states."
    ): (
        "论文数值：Lan et al. 2019 表 5，模型远大于此、预训练任务相同。"
        "没有该任务输出层的模型，在其 [CLS] 状态上拟合一个线性分类器。"
    ),
    (
        "equal for all: corpus {corpus}, tokenizer {tokenizer} ({pieces} pieces), {layers} layers of width {width}, "
        "seeds {seeds}"
    ): "相同：语料 {corpus}，分词器 {tokenizer}（词表 {pieces}），{layers} 层、隐藏维度 {width}，随机种子 {seeds}",
    "equal for all: {tokens} tokens": "相同：{tokens} 个 token",
    ", {n} in a step (the number of rows in a step makes up for their length)": (
        "，每步 {n} 个（行较短的，每步行数较多）"
    ),
    "equal for all: training with {training}": "相同：训练超参数 {training}",
    "evaluation: up to {rows} held-out rows of running text, asked for the next token; {sure}": (
        "评测：最多 {rows} 行连续的验证文本，预测下一个 token；{sure}"
    ),
    "evaluation: up to {rows} held-out rows, cut and corrupted as {recipe} does; {sure}": (
        "评测：最多 {rows} 行验证文本，按 {recipe} 的方式切分和掩码；{sure}"
    ),
    "intervals are 95 % of resampled rows and do not cover the chance of training": (
        "区间来自对行的重抽样（95%），不含训练的随机性"
    ),
    "{question}: whoever always gives the commonest answer is right in {share} % of the pairs": (
        "{question}：总是回答最常见的标签，准确率为 {share}%"
    ),
    "{label} is trained as {other} is: one run for both": "{label} 与 {other} 的训练完全相同，只训练一次",
    "left out: {label}: {why}": "未参加：{label}：{why}",
    "asked for {answers} tokens in {rows} rows": "在 {rows} 行中预测 {answers} 个 token",
    "differences are to {first}, on the same rows; where the interval holds 0, no difference was found": (
        "差值都以 {first} 为基准，行相同；区间包含 0 表示没有发现差别"
    ),
    "nats of loss": "nats（损失）",
    "points": "个百分点",
    "No variant is ahead: {best} and {second} are {apart} {unit} apart (95 % interval {low} to {high}).": (
        "没有明显领先者：{best} 与 {second} 相差 {apart} {unit}（95% 区间 {low} 到 {high}）。"
    ),
    "{best} is ahead, by {apart} {unit} of {second}, the second best (95 % interval {low} to {high}).": (
        "{best} 领先，比第二名 {second} 好 {apart} {unit}（95% 区间 {low} 到 {high}）。"
    ),
    "One seed: another might turn it round (--seeds 0,1,2).": "只有一个随机种子，换种子可能反过来（--seeds 0,1,2）。",
    "{best} is the better one in {ahead} of {seeds} seeds.": "{seeds} 个随机种子中，{best} 有 {ahead} 个更好。",
    " ": "",
    "{label} ({visits} visits)": "{label}（读 {visits} 遍）",
    (
        "warning: no mask comes back in {names}: rows are read too seldom, and these are trained as if masks were "
        "always new; give more tokens, or a smaller corpus"
    ): "警告：{names} 中没有任何掩码重复出现：每行读的遍数太少，等于每次都用新的掩码；请增加 token 数，或换更小的语料",
    "warning: whole steps do not come near the tokens in {names}; give more tokens": (
        "警告：{names} 取整步后与要求的 token 数相差较大；请增加 token 数"
    ),
    "variant": "变体",
    "batch": "batch",
    "steps": "步数",
    "tokens": "token 数",
    "visits": "遍数",
    "accuracy %": "准确率 %",
    "to {first}": "相对 {first}",
    "loss": "损失",
    "perplexity": "困惑度",
    "own masks %": "自身掩码 %",
    "accuracy by seed": "各种子的准确率",
    "not asked": "不评测",
    "not yet": "尚未训练",
    "none": "无",
    " (own head)": "（自带输出层）",
    " (fresh head)": "（新拟合）",
    "trained with": "预训练任务",
    "published": "论文数值",
    # maskery inspect: order
    "in {rows} rows like this one": "在 {rows} 行同类样本上检查",
    # maskery info, and pages about runs
    "run": "训练",
    "model": "模型",
    "fine-tuning": "微调",
    "vector training": "句向量训练",
    "started from": "初始权重",
    "last loss": "最后的损失",
    "loss by step": "各步损失",
    "held out": "验证集",
    "checkpoints": "检查点",
    "machine": "机器",
    "note": "说明",
    "task": "任务",
    "base model": "底座模型",
    "labels": "标签",
    "training rows": "训练样本数",
    "score": "指标",
    "runs inside": "包含的训练",
    "settings": "超参数",
    "family": "模型家族",
    "shape": "结构",
    "shared": "共享",
    "positions": "位置编码",
    "vocabulary": "词表",
    "heads": "输出层",
    "tokenizer": "分词器",
    "vectors": "向量",
    "word embedding": "词嵌入",
    "generator": "生成器",
    "parameters, total": "参数：合计",
    "parameters, encoder": "参数：编码器",
    "parameters, decoder": "参数：解码器",
    "parameters, pooler": "参数：池化层",
    "parameters, heads": "参数：输出层",
    "parameters, generator": "参数：生成器",
    "memory, weights": "内存：权重",
    "memory, training": "内存：训练",
    "memory, inference": "内存：推理",
    "memory, remembered": "内存：缓存的记忆",
    "operations": "运算量",
    "missing": "缺少的张量",
    "unused": "未使用的张量",
    "ignored": "忽略的张量",
    "  tokens": "  词嵌入",
    "  segments": "  段嵌入",
    "  positions": "  位置嵌入",
    "  norm": "  层归一化",
    "  attention": "  注意力",
    "  attention norm": "  注意力的层归一化",
    "  feed-forward": "  前馈网络",
    "  feed-forward norm": "  前馈网络的层归一化",
    "layers x width": "层数 × 隐藏维度",
    "time in updates": "更新用时",
    "tokens a second": "每秒 token 数",
    "best held-out loss": "验证集最低损失",
    "best held-out accuracy": "验证集最高准确率",
    "What differs in the recipes": "配方的差别",
    "Nothing: the recipes are the same.": "没有：配方相同。",
    "Run {names}": "训练 {names}",
    "Runs {names}": "训练 {names}",
    # maskery explain
    "layer": "层",
    "head": "头",
    "entropy": "熵",
    "self": "自身",
    "previous": "前一个",
    "next": "后一个",
    "first": "首位",
    "separator": "分隔符",
    "strongest links": "最强的联系",
    (
        "entropy in nats and shares, means over the tokens that read: shares that go to the token "
        "itself, the one before, "
        "the next one, the first of the row ({first}) and the ends of texts ({ends})"
    ): (
        "熵的单位为 nat；各列是注意力份额，对查询 token 取平均：给自身、"
        "前一个、后一个、行首（{first}）和文本结尾（{ends}）的份额"
    ),
    "none here": "这里没有",
    # facts of a fine-tuning, heads of its tables
    "training": "训练",
    "no answer": "无答案",
    "examples": "样本数",
    "n": "样本数",
    "seeds": "种子",
    "mean": "均值",
    "sd": "标准差",
    "each": "各次",
    "95 % from": "95% 下限",
    "to": "上限",
    "span as drawn, mean tokens": "抽取的片段，平均 token 数",
    "span as kept, mean tokens": "保留的片段，平均 token 数",
    "span as drawn, mean words": "抽取的片段，平均词数",
    "span as kept, mean words": "保留的片段，平均词数",
    # baselines
    "majority": "多数类",
    "tfidf": "TF-IDF 模型",
    "seen_spans": "训练集词典匹配",
    "overlap": "词语重合",
    "cosine": "余弦相似度",
    "copy": "照抄原文",
}
