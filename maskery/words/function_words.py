"""Words that say how others belong together: no phrase begins or ends with them. And signs that join names."""

from __future__ import annotations

_CHINESE = (
    "的地得了着过吗呢吧啊嘛么是有在和与及或而但且并则却若因故即也都就才又还再很更最太已曾将会能可应须要不没未无非"
    "被把给对从到由为以于向往自至比跟同随按据除当让使令等之其者所这那此该各每某哪何谁我你他她它您们一个些种次只另"
    "上下中内外里前后间时年月日号来去出成作约占较便亦均仅第"
    " 一个 一种 一些 一次 这个 那个 这些 那些 这种 这样 那样 这部 这段 这件 这张 这是 什么 怎么 如何 自己 他们 我们"
    " 她们 它们 其他 其它 其中 其后 之后 之前 之间 以后 以前 以来 以及 以上 以下 或者 并且 而且 但是 不过 然而 因为"
    " 所以 由于 因此 如果 虽然 即使 对于 关于 作为 通过 根据 按照 除了 为了 成为 称为 认为 进行 没有 不是 可以 可能"
    " 能够 必须 应该 已经 曾经 正在 开始 非常 十分 任何 许多 很多 大量 多个 各种 不同 所有 全部 有些 只有 还有 就是"
    " 也是 都是 仍然 甚至 例如 包括 当时 后来 同时 此后 目前 现在"
)
_ENGLISH = (
    "a an the of in on at by for from to with without into onto over under between among through during before after "
    "about against as than that this these those which who whom whose what when where why how and or but nor so if "
    "because while although though until unless since is are was were be been being am has have had having do does did "
    "will would shall should can could may might must not no it its he him his she her hers they them their theirs we "
    "us our ours you your yours i me my mine there here also very s t"
)
_SINGLE, *_LONGER = _CHINESE.split()
FUNCTION_WORDS = frozenset((*_SINGLE, *_LONGER, *_ENGLISH.split()))
JOINERS = frozenset("·・•-‐–&'’")
"""They may stand inside a phrase or a name, as in 阿尔伯特·爱因斯坦."""
