"""What is said of pretraining, its settings and its end, and of rows that are inspected."""

from __future__ import annotations

PRETRAINING: dict[str, str] = {
    # chosen settings
    (
        "--size {w}: {n1} layers of width {n2}, as published, would read too little text in this run "
        "(choose with --size)"
    ): ("--size {w}：论文的 {n1} 层、隐藏维度 {n2} 在这次训练中读到的文本太少（可用 --size 指定）"),
    "these are the recipe's own rows; pretrain would choose {rest}": "以上是配方自己的行；pretrain 会选择 {rest}",
    (
        "--length {n1}: rows of {n2}, as published, take too long on a CPU, and most steps read {n3} rows of {n4}, "
        "which teaches sooner (choose with --length)"
    ): (
        "--length {n1}：论文的行长 {n2} 在 CPU 上太慢；大多数步读 {n3} 行、每行 {n4} 个 token，学得更快"
        "（可用 --length 指定）"
    ),
    "--length {n1}: rows of {n2}, as published, take too long on a CPU (choose with --length)": (
        "--length {n1}：论文的行长 {n2} 在 CPU 上太慢（可用 --length 指定）"
    ),
    "--batch {n1}: with {n2} rows a step, as published, a CPU makes too few steps (choose with --batch)": (
        "--batch {n1}：论文每步 {n2} 行，在 CPU 上步数太少（可用 --batch 指定）"
    ),
    (
        "--lr {n1} with AdamW and {share} warm-up: the run reads {many} tokens; {w} at {n2} is for "
        "{n3} billion tokens, "
        "as published (keep with --as-published)"
    ): (
        "--lr {n1}，AdamW，预热 {share}：这次训练读 {many} 个 token；论文的 {w}、{n2} 用于 {n3} 十亿 token"
        "（用 --as-published 保留论文设置）"
    ),
    "{n} million": "{n} 百万",
    "--set model.init_std={n1}: weights of {n2}, as published, start a narrow network with flat attention": (
        "--set model.init_std={n1}：论文的初始标准差 {n2} 会使窄网络的注意力一开始过于平坦"
    ),
    "--set model.dropout={n1}: the run reads the text {n2} times, too few to learn it by heart": (
        "--set model.dropout={n1}：文本只读 {n2} 遍，不会过拟合"
    ),
    "--set model.dropout={n1}: the run reads the text {n2} times, so many that it could be learnt by heart": (
        "--set model.dropout={n1}：文本读 {n2} 遍，可能过拟合"
    ),
    "warning: the only update has rate 0 (decay {w}): no weight moves; give more --steps": (
        "警告：唯一的一次更新学习率为 0（衰减 {w}），权重不会改变；请增加 --steps"
    ),
    "warning: the only update has rate 0 (decay {w}): no weight moves; give a longer --budget, or a smaller --size": (
        "警告：唯一的一次更新学习率为 0（衰减 {w}），权重不会改变；请增加 --budget，或减小 --size"
    ),
    "--save-every {n1}: the run is shorter than {n2} steps": "--save-every {n1}：这次训练不足 {n2} 步",
    "--budget {w}: {n} steps; measured for one update: {each}": "--budget {w}：{n} 步；实测每步 {each}",
    "--budget {w}: {n} steps, as published, take days on a CPU (choose with --steps, --tokens or --budget)": (
        "--budget {w}：论文的 {n} 步在 CPU 上要好几天（可用 --steps、--tokens 或 --budget 指定）"
    ),
    "--tokens {n1}: {n2} steps of {n3} positions in the mean": "--tokens {n1}：{n2} 步，平均每步 {n3} 个位置",
    "--tokens {w}: short, so that it ends on a CPU (choose with --tokens or --steps)": (
        "--tokens {w}：较短，以便在 CPU 上完成（可用 --tokens 或 --steps 指定）"
    ),
    "precision: {w} ({why})": "精度：{w}（{why}）",
    "precision: {w} ({why}); heads and losses in float32": "精度：{w}（{why}）；输出层和损失用 float32",
    "this CPU computes in it": "这块 CPU 支持",
    "as asked": "按指定",
    "as the run was started": "与训练开始时相同",
    "{n} rows at length {n1}": "{n} 行，行长 {n1}",
    "about {n} MiB at the peak": "峰值约 {n} MiB",
    "{n} steps": "{n} 步",
    "started from {path}; heads taken: {taken}; new: {fresh}": (
        "从 {path} 的权重开始；沿用的输出层：{taken}；新建：{fresh}"
    ),
    "no checkpoint yet: starting from the first step": "还没有检查点：从第一步开始",
    "micro-batches of {n} rows, as the run was started": "micro-batch {n} 行，与训练开始时相同",
    "nothing is held out in this corpus: no evaluation": "这份语料没有验证集：不做评测",
    # the end
    "{path}: a model of {n} steps": "{path}：训练 {n} 步的模型",
    "{path}: a model of {n} steps, in {time}": "{path}：训练 {n} 步的模型，用时 {time}",
    "held-out loss {n1}; token frequencies alone {n2} ({gap})": "验证集损失 {n1}；只用词频为 {n2}（{gap}）",
    (
        "warning: held-out loss {n1}; token frequencies alone {n2} ({gap}): the model has learnt token frequencies, no "
        "context; train longer (--budget, --steps), on more text, or with a smaller --size"
    ): (
        "警告：验证集损失 {n1}，只用词频为 {n2}（{gap}）：模型只学到词频，没有学到上下文；"
        "请训练更久（--budget、--steps）、增加文本，或减小 --size"
    ),
    (
        "warning: held-out loss {n1}; token frequencies alone {n2} ({gap}): the model has learnt not even token "
        "frequencies yet; train longer (--budget, --steps), on more text, or with a smaller --size"
    ): (
        "警告：验证集损失 {n1}，只用词频为 {n2}（{gap}）：模型连词频都还没有学到；"
        "请训练更久（--budget、--steps）、增加文本，或减小 --size"
    ),
    '{program} fill {run} "a text with {mask} in it"        {name} info {path}': (
        '{program} fill {run} "带有 {mask} 的文本"        {name} info {path}'
    ),
    '{program} generate {run} "a beginning"        {name} info {path}': (
        '{program} generate {run} "开头"        {name} info {path}'
    ),
    "run {n1} of {n2}: {name}: {n3} steps of {n4} rows": "第 {n1}/{n2} 次训练：{name}：{n3} 步，每步 {n4} 行",
    "run {n1} of {n2} ({name}): {text}": "第 {n1}/{n2} 次训练（{name}）：{text}",
    "all runs: about {left} left": "全部训练约剩 {left}",
    "asking {name}": "评测 {name}",
    "{name}: already trained": "{name}：已经训练过",
    # inspect
    (
        "a made-up row; --text shows a text of yours, --corpus DIR rows of text and measures them, "
        "--flow what every layer knows"
    ): ("这是一行示意样本；--text 显示你自己的文本，--corpus DIR 显示并统计语料的样本，--flow 显示每一层能知道什么"),
    "no --corpus: the vocabulary is the words of the text, Chinese by characters": (
        "没有 --corpus：词表就是文本中的词，中文按字"
    ),
    "rows of {n1} slots, over the whole plan: {n2} {what}": "行长 {n1}，整个计划：{n2} {what}",
    "tokens cut off, because their rows were too long": "个 token 因行太长被截断",
    "token cut off, because its row was too long": "个 token 因行太长被截断",
    "rows of which something was cut off": "行被截断",
    "row of which something was cut off": "行被截断",
    "chunks of a single sentence": "段只有一句话",
    "chunk of a single sentence": "段只有一句话",
    "documents cut into shorter rows on purpose (rows.short)": "篇文档有意切成较短的行（rows.short）",
    "document cut into shorter rows on purpose (rows.short)": "篇文档有意切成较短的行（rows.short）",
    "rows made shorter on purpose (rows.short)": "行有意缩短（rows.short）",
    "row made shorter on purpose (rows.short)": "行有意缩短（rows.short）",
    "slots left at the end, which fill no row": "个位置在末尾剩下，不足一行",
    "slot left at the end, which fills no row": "个位置在末尾剩下，不足一行",
    "sentences without a second one for their pairs, left out": "个句子没有配对的下一句，已略去",
    "sentence without a second one for its pair, left out": "个句子没有配对的下一句，已略去",
    "second segments from elsewhere in the text": "个第二段取自文本的其他位置",
    "second segment from elsewhere in the text": "个第二段取自文本的其他位置",
    "sentences without a token, left out": "个句子没有任何 token，已略去",
    "sentence without a token, left out": "个句子没有任何 token，已略去",
    "documents without a token, left out": "篇文档没有任何 token，已略去",
    "document without a token, left out": "篇文档没有任何 token，已略去",
    "sentences that no row can hold whole": "个句子比一行还长",
    "sentence that no row can hold whole": "个句子比一行还长",
    "rows too short for a pair": "行太短，不成句对",
    "row too short for a pair": "行太短，不成句对",
    "{n1} of the rows came again: there are {n2} different ones in the plan": (
        "其中 {n1} 行重复出现：计划中共有 {n2} 个不同的行"
    ),
    "{n1} rows measured, not {n2}: then another stage begins": "只统计 {n1} 行，而不是 {n2} 行：之后进入另一阶段",
    "{n1} ms at length {n2}, {rest}": "{n1} 毫秒（行长 {n2}），{rest}",
    "{n1} ms at length {n2}": "{n1} 毫秒（行长 {n2}）",
    "look at its rows: {command}": "查看训练样本：{command}",
    "{n} tokens are unknown to the tokenizer ({share})": "{n} 个 token 不在分词器的词表里（{share}）",
    "{n} tokens reach over two words, which they join": "{n} 个 token 跨越两个词，这两个词合为一个",
    "{name}: {n} % of {n1} {of}; the recipe asks for {share}": "{name}：{n1} {of}中占 {n}%；配方要求 {share}",
    "pair labels of {n} pairs: {shares}; the recipe asks for {share} each": (
        "{n} 个句对的标签：{shares}；配方要求各占 {share}"
    ),
    (
        "pair labels of {n} pairs: {shares}; the recipe asks for {share} each. {n1} of the {n2} rows of the plan begin "
        "with a chunk of one sentence, whose second segment always comes from another document"
    ): (
        "{n} 个句对的标签：{shares}；配方要求各占 {share}。计划的 {n2} 行中有 {n1} 行以只有一句的段开头，"
        "其第二段总是来自另一篇文档"
    ),
}
