"""What `maskery info` says of models and runs; names of its lines stand in `chinese`."""

from __future__ import annotations

MODELS: dict[str, str] = {
    "{n1} of {n2}": "{n1} / {n2}",
    "{n1} of {n2} (unfinished)": "{n1} / {n2}（未完成）",
    "{n1} of {n2}, finished": "{n1} / {n2}，已完成",
    "{n1} of {n2}, not finished (going on, or waiting for --resume)": (
        "{n1} / {n2}，未完成（正在训练，或等待 --resume）"
    ),
    "{w} {n1} layers, width {n2}, {n3} heads": "{w} {n1} 层，隐藏维度 {n2}，{n3} 个头",
    "{n1} layers, width {n2}, {n3} heads, feed-forward {n4}, {w}-norm, {activation}": (
        "{n1} 层，隐藏维度 {n2}，{n3} 个头，前馈 {n4}，{w}-norm，{activation}"
    ),
    "{n1} layer, width {n2}, {n3} heads, feed-forward {n4}, {w}-norm, {activation}": (
        "{n1} 层，隐藏维度 {n2}，{n3} 个头，前馈 {n4}，{w}-norm，{activation}"
    ),
    "{n1} in {time} of updates, {n2} a second": "{n1}，更新用时 {time}，每秒 {n2}",
    "{n1} in {time} of updates": "{n1}，更新用时 {time}",
    "best loss {n1} at step {n2}, last {n3}": "最低损失 {n1}（第 {n2} 步），最后 {n3}",
    "best accuracy {n1} % at step {n2}, last {n3} %": "最高准确率 {n1}%（第 {n2} 步），最后 {n3}%",
    "{n1} at step {n2}": "{n1}（第 {n2} 步）",
    "{n1} % at step {n2}": "{n1}%（第 {n2} 步）",
    "at step {steps}": "第 {steps} 步",
    "none yet": "还没有",
    "no evaluation": "没有评测",
    "not a number": "NaN",
    "not measured: no development set": "未评测：没有验证集",
    "{w} ({cpu}, {n} threads), {rest}": "{w}（{cpu}，{n} 个线程），{rest}",
    "{w} ({cpu}, {n} thread), {rest}": "{w}（{cpu}，{n} 个线程），{rest}",
    "learned, rows up to {n} slots": "可学习的绝对位置，行长最多 {n}",
    "{w}, distances up to {n} told apart, rows of any length": "{w} 相对位置，区分 {n} 以内的距离，行长不限",
    "{w}, rows of any length": "{w}，行长不限",
    "{w}, {n} pieces": "{w}，词表 {n}",
    "{n1} x {n2} layers": "{n1} × {n2} 层",
    "{n1}  {n2} x {n3} layers": "{n1}  {n2} × {n3} 层",
    "{n1}  {n2} x {n3}, each shared by {n4} layers": "{n1}  {n2} × {n3}，每份由 {n4} 层共享",
    "{n1}  shared by {n2} layers: once": "{n1}  由 {n2} 层共享，只计一次",
    "{size} in training, with gradients and the optimiser's averages": "训练时 {size}，含梯度和优化器状态",
    "about {size} for {n1} rows of {n2} at once": "同时处理 {n1} 行、行长 {n2} 时约 {size}",
    "about {size} for {n1} rows of {n2} at once, without a head": "同时处理 {n1} 行、行长 {n2} 时约 {size}，不含输出层",
    "about {size} for 1 row of {n2} at once": "处理 1 行、行长 {n2} 时约 {size}",
    "about {size} for 1 row of {n2} at once, without a head": "处理 1 行、行长 {n2} 时约 {size}，不含输出层",
    "{size} for each row of a step, in checkpoints too": "每步的每一行 {size}，检查点中也有",
    "{n1} in training, {n2} in inference, of {n3} slots": "训练 {n1} 行，推理 {n2} 行，行长 {n3}",
    "{n1} million a token in rows of {n2}": "行长 {n2} 时每个 token {n1} 百万次",
    "{n} in training": "训练时 {n}",
    "{figures}, of {n} development rows": "{figures}，{n} 个验证样本",
    "{n} labels": "{n} 个标签",
    "{pool} of at most {n1} slots{steps}; {n2} dimensions, compared by {w}": (
        "{pool}，最多 {n1} 个 token{steps}；{n2} 维，用 {w} 比较"
    ),
    ", then {steps}": "，再经 {steps}",
}
