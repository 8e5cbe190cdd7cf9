"""What is said of files and texts: columns, labels, lengths, unknown characters."""

from __future__ import annotations

READING: dict[str, str] = {
    # files, columns, labels
    "{file}: {n} examples": "{file}：{n} 个样本",
    "{file}: 1 example": "{file}：1 个样本",
    "{file}: task = {w} (by the columns; --task says another)": "{file}：任务 = {w}（由列推断，可用 --task 指定）",
    "{file}: task = {w} (by the form of the data; --task says another)": (
        "{file}：任务 = {w}（由数据形式推断，可用 --task 指定）"
    ),
    "{file}: label map: {source} -> {target} ({n} labels)": "{file}：标签映射：{source} -> {target}（{n} 个标签）",
    "{file}: label map: {source} -> {target} (1 label)": "{file}：标签映射：{source} -> {target}（1 个标签）",
    "{file}: label map: {names} never occurs; the labels are {shown}": (
        "{file}：标签映射：{names} 从未出现；已有标签：{shown}"
    ),
    "{file}: label map: {n} labels after it: {shown}": "{file}：标签映射：映射后有 {n} 个标签：{shown}",
    "classes of the model are merged: {shown}; it now answers {labels}": (
        "合并模型的类别：{shown}；现在的类别为 {labels}"
    ),
    "{file}: read as {name}: {said}": "{file}：按 {name} 的形式读取：{said}",
    "{file} is taken ({why}); left out: {others}": "采用 {file}（{why}）；未读：{others}",
    "test: {n1} of {n2} rows have a label that is not one of those to learn ({shown}): they are taken as unlabelled": (
        "test：{n2} 行中有 {n1} 行的标签不在训练标签之内（{shown}）：按无标签处理"
    ),
    "{w}: of {n} rows {found}: scores on them measure memory; {repair}": (
        "{w}：{n} 行中{found}：在这些行上的分数衡量的是记忆；{repair}"
    ),
    "{n1} ({share1}) are exact copies of train rows and {n2} ({share2}) near copies": (
        "有 {n1} 行（{share1}）与训练集完全相同，{n2} 行（{share2}）近似相同"
    ),
    (
        "{n1} ({share1}) are exact copies of train rows, {n3} of them with another label than there and "
        "{n2} ({share2}) near copies"
    ): "有 {n1} 行（{share1}）与训练集完全相同（其中 {n3} 行标签不同），{n2} 行（{share2}）近似相同",
    "{n} ({share}) are exact copies of train rows": "有 {n} 行（{share}）与训练集完全相同",
    "{n1} ({share}) are exact copies of train rows, {n2} of them with another label than there": (
        "有 {n1} 行（{share}）与训练集完全相同，其中 {n2} 行标签不同"
    ),
    "{n} ({share}) are near copies of train rows": "有 {n} 行（{share}）与训练集近似相同",
    "remove them from {w}": "请从 {w} 中删除",
    "remove them from {w}, copies.tsv in the run's folder lists them": (
        "请从 {w} 中删除，运行文件夹中的 copies.tsv 列出了它们"
    ),
    "train: {n1} of {n2} rows ({share}) are copies of an earlier row": (
        "train：{n2} 行中有 {n1} 行（{share}）与前面的行重复"
    ),
    "train: {n1} of {n2} rows ({share}) are copies of an earlier row, {n3} of them with another label": (
        "train：{n2} 行中有 {n1} 行（{share}）与前面的行重复，其中 {n3} 行标签不同"
    ),
    "{file}: task = {w} (by what the examples hold)": "{file}：任务 = {w}（由样本内容推断）",
    "{file}: the first line is a header ({why})": "{file}：第一行是表头（{why}）",
    "{file}: the first line is no header ({why})": "{file}：第一行不是表头（{why}）",
    "it has {what}": "含有 {what}",
    "{what} stands in other lines too": "{what} 在别的行里也出现",
    "there are only numbers under {what}": "{what} 之下全是数字",
    "{file}: label = {column} (by its name)": "{file}：标签列 = {column}（由列名推断）",
    "{file}: label = {column} (by its values)": "{file}：标签列 = {column}（由取值推断）",
    "{file}: text = {columns} (by its name)": "{file}：文本列 = {columns}（由列名推断）",
    "{file}: text = {columns} (by their names)": "{file}：文本列 = {columns}（由列名推断）",
    "{file}: text = {columns} (by its values)": "{file}：文本列 = {columns}（由取值推断）",
    "{file}: text = {columns} (by their values)": "{file}：文本列 = {columns}（由取值推断）",
    "{file}: text = {columns} (as in the training data)": "{file}：文本列 = {columns}（与训练数据相同）",
    "{file}: text = {column}, tags = {tags}": "{file}：文本列 = {column}，标签列 = {tags}",
    "{file}: source = {column}": "{file}：源文本列 = {column}",
    "{file}: target = {column}": "{file}：目标文本列 = {column}",
    "{file}: texts as in the training data": "{file}：文本列与训练数据相同",
    "{file}: {n} labels: {shown}": "{file}：{n} 个标签：{shown}",
    "{file}: 1 label: {shown}": "{file}：1 个标签：{shown}",
    "{file}: {n} spans: {shown}": "{file}：{n} 个片段：{shown}",
    "{file}: scores from {n1} to {n2}": "{file}：分数从 {n1} 到 {n2}",
    "{file}: there is no label": "{file}：没有标签列",
    "{file}: labels are not read": "{file}：不读标签",
    "{file}: not read: {columns}": "{file}：未读的列：{columns}",
    "{file}: {sign} parts the labels of an example": "{file}：同一样本的多个标签以 {sign} 分隔",
    "{file}: beside the text: {column} (numbers)": "{file}：文本之外的特征：{column}（数值）",
    "{file}: beside the text: {column} (names)": "{file}：文本之外的特征：{column}（类别）",
    "{file}: {n} empty texts, kept": "{file}：{n} 条空文本，保留",
    "{file}: {n} blank lines passed over": "{file}：跳过 {n} 个空行",
    "{file}: 1 blank line passed over": "{file}：跳过 1 个空行",
    "{file}: {n} bytes that are no UTF-8 became U+FFFD": "{file}：{n} 个非 UTF-8 字节换成 U+FFFD",
    "{file}: read as plain text: the name tells no format; --format would ({formats})": (
        "{file}：按纯文本读取，因为文件名看不出格式；可用 --format 指定（{formats}）"
    ),
    "{file}: there is no dev file (dev.tsv, valid.tsv or val.tsv)": (
        "{file}：没有验证集文件（dev.tsv、valid.tsv 或 val.tsv）"
    ),
    "{file}: the code of this file was run": "{file}：已运行该文件中的代码",
    "{file}: {n1} of {n2} answers stood elsewhere than said: moved to the nearest place": (
        "{file}：{n2} 个答案中有 {n1} 个位置与标注不符，已移到最近的位置"
    ),
    "{file}: {n1} of {n2} answers stand nowhere in their context: left out": (
        "{file}：{n2} 个答案中有 {n1} 个不在上下文里，已去掉"
    ),
    "{file}: {n} questions left out, their answers stand nowhere: {shown}": (
        "{file}：去掉 {n} 个问题，其答案不在上下文里：{shown}"
    ),
    "{file}: {n} questions with an empty text, kept": "{file}：{n} 个问题的文本为空，保留",
    "{file}: {n} questions with {many} choices": "{file}：{n} 个问题，每题 {many} 个选项",
    "{file}: tokens are joined without spaces, being Chinese or Japanese": "{file}：中文或日文，字之间不加空格",
    "{file}: tokens are joined by spaces": "{file}：token 之间以空格连接",
    "{file}: the tags are {w}": "{file}：标注体系为 {w}",
    "{file}: of {n1} columns the tag is column {n2}": "{file}：共 {n1} 列，标签是第 {n2} 列",
    "{file}: {n} spans that no B- opens: read as if one did": "{file}：{n} 个片段没有 B- 开头，按有处理",
    "{file}: {n} spans that no E- closes: read as ending with the last tag": (
        "{file}：{n} 个片段没有 E- 结尾，在最后一个标签处结束"
    ),
    "{file}: {n} lines": "{file}：{n} 行",
    "{file}: {n} rows": "{file}：{n} 行",
    "{file}: {n1} texts, {n2} of them distinct and not empty": "{file}：{n1} 条文本，其中 {n2} 条不重复且非空",
    "{file}: {n} labels have one text only": "{file}：{n} 个标签只有一条文本",
    "--data {file}: the folder's dev file": "--data {file}：文件夹中的验证集",
    "--data {file}: the folder's test file": "--data {file}：文件夹中的测试集",
    "{n} empty lines left out": "去掉 {n} 个空行",
    "1 empty line left out": "去掉 1 个空行",
    "there is no development set: the last model is kept, and nothing is measured (--dev FILE)": (
        "没有验证集：保留最后的模型，不做评测（--dev FILE）"
    ),
    "there is no development set: the last encoder is kept, and nothing is measured (--dev FILE)": (
        "没有验证集：保留最后的编码器，不做评测（--dev FILE）"
    ),
    # tokens, lengths, truncation
    "dev: {note}": "验证集：{note}",
    "test: {note}": "测试集：{note}",
    "{n1} of {n2} tokens ({share}) are unknown to the vocabulary": "{n2} 个 token 中有 {n1} 个（{share}）不在词表里",
    "{n1} of {n2} tokens ({share}) are unknown to the vocabulary: is this a model for another language?": (
        "{n2} 个 token 中有 {n1} 个（{share}）不在词表里：是不是用了另一种语言的模型？"
    ),
    "unknown: {listed}; {remedy}": "词表外的字符：{listed}；{remedy}",
    "{listed}, and {n} others": "{listed}，另有 {n} 个",
    "take a model whose vocabulary has them": "请换词表包含它们的模型",
    "{n1} of {n2} texts hold no token": "{n2} 条文本中有 {n1} 条没有任何 token",
    "slots{a}rows{b}mean{c}longest{d}over {n1}  over {n2}  over {n3}": (
        "位置 {a}行数{b}平均{c}   最长{d}超过 {n1}  超过 {n2}  超过 {n3}"
    ),
    "rows of {n} slots: {why}": "序列长度 {n}：{why}",
    "rows of {n} slots, as asked for": "序列长度 {n}，按指定",
    "{n1} % of the rows have at most {n2} slots": "{n1}% 的行不超过 {n2} 个 token",
    "the model reads no more": "模型的上限",
    "none is longer": "没有更长的行",
    "{n1} of {n2} rows are longer, the longest would have {n3}": "{n2} 行中有 {n1} 行更长，最长 {n3}",
    "{n1} of {n2} rows is longer, the longest has {n3}": "{n2} 行中有 {n1} 行更长，长 {n3}",
    (
        "{n1} of {n2} rows ({share}) are cut to {n3} slots or to a field's limit and keep {end}: {n4} of {n5} tokens "
        "({lost}) are lost"
    ): "{n2} 行中有 {n1} 行（{share}）截断到 {n3} 个 token 或字段上限，{end}：{n5} 个 token 中丢失 {n4} 个（{lost}）",
    "their head": "保留开头",
    "their tail": "保留结尾",
    "both ends": "保留首尾",
    "tokens lost by field: {each}": "各字段丢失的 token：{each}",
    "{n1} of {n2} rows are read in {n3} windows of {n4} slots": (
        "{n2} 行中有 {n1} 行用滑动窗口读取，共 {n3} 个长 {n4} 的窗口"
    ),
    "windows overlap by {n} tokens": "相邻窗口重叠 {n} 个 token",
    "{n} answers stand whole in no window: there the answer is none": (
        "{n} 个答案没有完整落在任何窗口内：这些窗口按无答案处理"
    ),
    "{n} tokens of the text are not in the vocabulary": "文本中有 {n} 个 token 不在词表里",
    "1 token of the text is not in the vocabulary": "文本中有 1 个 token 不在词表里",
    "learn the vocabulary from this text (--tokenizer train), or take one that has them": (
        "请从这份文本学词表（--tokenizer train），或换词表包含它们的分词器"
    ),
}
