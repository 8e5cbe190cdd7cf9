"""Questions 3 and 4, who may see whom and what is the network? The `[visibility]` and `[model]` tables of a recipe."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from maskery.config import Config, divisor
from maskery.errors import InputError, Unfit
from maskery.registry import Registry

if TYPE_CHECKING:
    from maskery.model.positions import PositionScheme
    from maskery.model.visibility import Visibility

POSITIONS: Registry[type[PositionScheme]] = Registry(
    "position scheme",
    {
        "learned": "maskery.model.positions:Learned",
        "sinusoidal": "maskery.model.positions:Sinusoidal",
        "none": "maskery.model.positions:NoPositions",
        "nezha": "maskery.model.relative:Nezha",
        "shaw": "maskery.model.relative:Shaw",
        "t5": "maskery.model.relative:T5",
        "mpnet": "maskery.model.relative:MPNet",
        "xl": "maskery.model.xl:XL",
        "xlnet": "maskery.model.xl:XLNet",
        "rotary": "maskery.model.rotary:Rotary",
        "disentangled": "maskery.model.disentangled:Disentangled",
    },
)
RELATIVE = ("nezha", "shaw", "t5", "xl", "xlnet", "rotary", "disentangled")
"""Position schemes that tell attention how far apart two slots are, and add nothing at the input."""
BUCKETED = ("t5", "mpnet")
"""Position schemes that tell distances apart by buckets."""
COUNTED = ("learned", "mpnet")
"""Position schemes with a trained vector for each position: rows end where these do."""
VISIBILITIES: Registry[type[Visibility]] = Registry(
    "visibility",
    {
        "full": "maskery.model.visibility:Full",
        "causal": "maskery.model.visibility:Causal",
        "reverse": "maskery.model.visibility:Reverse",
        "prefix": "maskery.model.visibility:Prefix",
        "packed": "maskery.model.visibility:Packed",
        "packed_causal": "maskery.model.visibility:PackedCausal",
        "permuted": "maskery.model.visibility:Permuted",
    },
)

SIZES: dict[str, dict[str, int]] = {
    "tiny": {"layers": 2, "width": 128, "heads": 2},
    "mini": {"layers": 4, "width": 256, "heads": 4},
    "small": {"layers": 4, "width": 512, "heads": 8},
    "medium": {"layers": 8, "width": 512, "heads": 8},
    "base": {"layers": 12, "width": 768, "heads": 12},
    "large": {"layers": 24, "width": 1024, "heads": 16},
}


class Mode(IntEnum):
    """How a row is read, where rows of one run differ in it: the numbers of `slots["mode"]`."""

    FULL = 0
    PREFIX = 1
    CAUSAL = 2
    REVERSE = 3

    @property
    def kind(self) -> str:
        """The visibility of the same name."""
        return self.name.lower()


_ROUNDING = 0.005
"""Shares such as 0.333 need not sum to one more exactly than this; what is drawn is each share of their sum."""


class MixtureConfig(Config):
    """Shares of rows that are read with each visibility; all 0: every row is read with `visibility.kind`."""

    full: float = Field(0.0, ge=0, le=1)
    prefix: float = Field(0.0, ge=0, le=1)
    causal: float = Field(0.0, ge=0, le=1)
    reverse: float = Field(0.0, ge=0, le=1)

    @model_validator(mode="after")
    def _sum(self) -> MixtureConfig:
        shares = {name: share for name, share in self.plain().items() if share}
        total = sum(shares.values())
        if shares and abs(total - 1) > _ROUNDING:
            given = " + ".join(f"{name} {share:g}" for name, share in shares.items())
            instead = ", ".join(f"{name} = {share / total:.4g}" for name, share in shares.items())
            raise Unfit(f"shares sum to {total:g}, not to 1: {given}", f"set {{ {instead} }}")
        return self


class VisibilityConfig(Config):
    kind: Annotated[str, AfterValidator(VISIBILITIES.validator())] = "full"
    """How rows are read; with a mixture, how the trained model reads when nothing else is said."""
    mixture: MixtureConfig = MixtureConfig()

    @property
    def mixed(self) -> bool:
        """Whether every row draws how it is read."""
        return any(self.mixture.plain().values())

    @property
    def plain_kind(self) -> bool:
        """Whether the network's own reading says all that a row's mode would. A source and its target are also asked by
        their mode."""
        return not self.mixed and self.kind != "prefix"

    @property
    def shares(self) -> dict[str, float]:
        """The visibilities that rows are read with in training, and the part of the rows that each has."""
        shares = {name: share for name, share in self.mixture.plain().items() if share}
        total = sum(shares.values())
        return {name: share / total for name, share in shares.items()} or {self.kind: 1.0}


class GeneratorConfig(Config):
    """A smaller network that fills the masked slots for the model to find (ELECTRA)."""

    width: float = Field(0.0, ge=0, le=1)
    """Its width as a share of the model's; 0: there is no generator."""
    layers: int = Field(0, ge=0)
    """0 = as many as the model has."""
    heads: int = Field(0, ge=0)
    """0 = one for every 64 numbers of its width, at least one; fewer where the width cannot be shared by so many."""
    feedforward: int = Field(0, ge=0)
    """0 = four times its width."""


def _listed(given: Any) -> Any:
    """JSON has lists, and a folder's shape is read strictly."""
    return tuple(given) if isinstance(given, list) else given


class Architecture(Config):
    """What a recipe's `[model]` and a network's shape have in common."""

    layers: int = Field(12, ge=1)
    width: int = Field(768, ge=1)
    heads: int = Field(12, ge=1)
    feedforward: int = Field(0, ge=0)
    """Width of the feed-forward layer; 0 = four times the width."""
    gated: bool = False
    """Whether the feed-forward layer has a second product, by which the activated one is multiplied (GeGLU)."""
    embedding: int = Field(0, ge=0)
    """Width of the embeddings; 0 = the width of the layers."""
    positions: Annotated[str, AfterValidator(POSITIONS.validator())] = "learned"
    max_length: int = Field(512, ge=1)
    position_offset: int = Field(0, ge=0)
    """The number of the first position (Hugging Face's RoBERTa counts from 2)."""
    clip: int = Field(64, ge=1)
    """Relative positions: distances beyond it count as it. For t5, mpnet and disentangled, from where on the last
    bucket of a side holds everything; T5's own is 128, DeBERTa's 512."""
    buckets: int = Field(32, ge=4)
    """t5 and mpnet: how many distances are told apart; disentangled: how many of each side (DeBERTa's 256)."""
    theta: float = Field(10_000.0, gt=1)
    """rotary: the base of the wavelengths, 2 pi to 2 pi theta."""
    local: int = Field(0, ge=0)
    """Width of the window of local attention: a slot attends to half of it on either side; 0 = to the whole row."""
    global_every: int = Field(3, ge=1)
    """With local attention: every so many layers, from the first on, attend to the whole row (ModernBERT)."""
    local_theta: float = Field(0.0, ge=0)
    """rotary: the base in layers of local attention; 0 = theta."""
    segments: int = Field(2, ge=0)
    decoder: int = Field(0, ge=0)
    """Layers of a decoder, which writes while it looks at what the other layers have read; 0 = none."""
    memory: int = Field(0, ge=0)
    """Slots of the rows before that every layer sees in front of its own (Transformer-XL)."""
    streams: Literal[1, 2] = 1
    """2: slots that are asked for have a second stream of states, which knows the place but not the token (XLNet)."""
    tasks: int = Field(0, ge=0)
    """Vectors for the task that a row is part of (ERNIE 2.0); 0 = none."""
    share: Literal["none", "all", "attention", "feedforward"] = "none"
    """Which weights the layers of a group have in common (ALBERT)."""
    groups: int = Field(1, ge=1)
    """Groups of layers that share weights; each has its own."""
    norm: Literal["post", "pre"] = "post"
    first_norm: bool = True
    """pre: whether the first layer normalises before its attention; ModernBERT leaves it to the embeddings' norm."""
    norm_bias: bool = True
    """Whether norms have a bias."""
    embedding_norm: Literal["auto", "yes", "no"] = "auto"
    """Whether the embeddings are normalised; auto: with post-norm they are (BERT), with pre-norm not (GPT-2)."""
    embedding_scale: bool = False
    """Whether token vectors are multiplied by the square root of their width (Vaswani et al.)."""
    attention_bias: bool = True
    """Whether the products of attention have a bias."""
    feedforward_bias: bool = True
    """Whether the products of the feed-forward layer have a bias."""
    token_head: Literal["transform", "bias", "plain"] = "transform"
    """From states to tokens: a dense layer with norm before the token vectors (BERT), these and a bias alone (XLNet),
    or these alone (GPT-2)."""
    head_bias: bool = True
    """Whether the dense layer of the token head has a bias."""
    cutoffs: Annotated[tuple[int, ...], BeforeValidator(_listed)] = ()
    """Ids at which bands of the vocabulary begin: tokens from the first on are found by their band, then within it
    (adaptive softmax). For vocabularies that go by frequency."""
    activation: Literal["gelu", "gelu_tanh", "relu"] = "gelu"
    eps: float = Field(1e-12, gt=0)
    init_std: float = Field(0.02, gt=0)
    position_std: float = Field(0.0, ge=0)
    """Of the learned positions; 0 = as all else."""
    residual_init: bool = False
    """Whether the last product of each half layer begins smaller, by the square root of their number (GPT-2)."""
    dropout: float = Field(0.1, ge=0, lt=1)
    attention_dropout: float = Field(0.1, ge=0, lt=1)

    @model_validator(mode="after")
    def _whole_heads(self) -> Architecture:
        if self.width % self.heads:
            wider = -(-self.width // self.heads) * self.heads
            raise Unfit(
                f"width {self.width} is not a multiple of heads {self.heads}",
                f"set heads = {divisor(self.width, self.heads)}, or width = {wider}",
            )
        return self

    @model_validator(mode="after")
    def _rising_cutoffs(self) -> Architecture:
        rising = tuple(sorted({each for each in self.cutoffs if each > 0}))
        if self.cutoffs != rising:
            raise Unfit(f"cutoffs {list(self.cutoffs)} do not rise from above 0", f"set cutoffs = {list(rising)}")
        return self

    @property
    def reach(self) -> int:
        """How far layers of local attention see to either side, in slots."""
        return self.local // 2

    def is_local(self, layer: int) -> bool:
        """Whether a layer, counted from 0, attends to a window."""
        return self.local > 0 and layer % self.global_every > 0

    @property
    def windowed(self) -> bool:
        """Whether some layer attends to a window."""
        return self.layers > 1 and self.is_local(1)

    @model_validator(mode="after")
    def _first_norm_of_its_own(self) -> Architecture:
        if self.first_norm:
            return self
        if self.norm == "post":
            raise Unfit("first_norm = false, and post-norm layers normalise after attention", "set norm = 'pre'")
        if self.share in ("all", "attention"):
            raise Unfit("first_norm = false, and layers share the first one's norm", "set first_norm = true")
        return self

    @model_validator(mode="after")
    def _even_heads(self) -> Architecture:
        if self.positions == "rotary" and self.width % self.heads == 0 and self.width // self.heads % 2:
            raise Unfit(
                f"rotary positions turn pairs of numbers, and a head has {self.width // self.heads}",
                f"set width = {self.width + self.heads}",
            )
        return self

    @model_validator(mode="after")
    def _buckets_below_clip(self) -> Architecture:
        if self.positions == "disentangled" and self.clip - 1 <= self.buckets // 2:
            raise Unfit(
                f"clip {self.clip} leaves no room for buckets that grow: {self.buckets} of a side tell the distances "
                f"up to {self.buckets // 2} exactly",
                f"set clip = {2 * self.buckets}",
            )
        if self.positions in BUCKETED and self.clip <= self.buckets // 4:
            raise Unfit(
                f"clip {self.clip} leaves no room for buckets that grow: {self.buckets} buckets tell the distances "
                f"below {self.buckets // 4} exactly",
                f"set clip = {max(128, 2 * self.buckets)}",
            )
        return self

    @model_validator(mode="after")
    def _whole_groups(self) -> Architecture:
        if self.layers % self.groups:
            raise Unfit(
                f"layers {self.layers} is not a multiple of groups {self.groups}",
                f"set groups = {divisor(self.layers, self.groups)}",
            )
        if self.decoder % self.groups:
            raise Unfit(
                f"the decoder's layers {self.decoder} are not a multiple of groups {self.groups}",
                f"set groups = {divisor(self.decoder, self.groups)}",
            )
        if self.groups > 1 and self.share == "none":
            raise Unfit(f"groups {self.groups} share nothing while share is 'none'", "set share = 'all', or groups = 1")
        return self


def _beyond(cutoffs: tuple[int, ...], vocabulary: int) -> str:
    return f"the last band begins at token {cutoffs[-1]:,}, and the vocabulary has {vocabulary:,}"


class Shape(Architecture):
    """Everything that fixes the tensors of a network and what it computes."""

    vocabulary: int = Field(ge=1)
    target_vocabulary: int = Field(0, ge=0)
    """Of the decoder; 0: both write with the same tokens."""
    visibility: str = "full"

    @model_validator(mode="after")
    def _bands_hold_tokens(self) -> Shape:
        if self.cutoffs and self.cutoffs[-1] >= (self.target_vocabulary or self.vocabulary):
            raise ValueError(_beyond(self.cutoffs, self.target_vocabulary or self.vocabulary))
        return self

    @model_validator(mode="before")
    @classmethod
    def _settle_embedding_norm(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("embedding_norm", "auto") == "auto":
            return values | {"embedding_norm": "no" if values.get("norm") == "pre" else "yes"}
        return values


MOST = {"layers": 10_000, "decoder": 10_000, "generator.layers": 10_000, "feedforward": 1 << 22}
USUAL_MOST = 1 << 20
"""Sizes that a recipe may have: what is larger is a slip of the hand, and even to count its weights takes hours."""


class ModelConfig(Architecture):
    generator: GeneratorConfig = GeneratorConfig()

    @model_validator(mode="after")
    def _no_slip(self) -> ModelConfig:
        sizes = {**dict(self), **{f"generator.{name}": each for name, each in self.generator}}
        for name, value in sizes.items():
            most = MOST.get(name, USUAL_MOST)
            if isinstance(value, int) and value > most:
                raise Unfit(f"{name} = {value:,} is beyond every network", f"set {name} to {most:,} at most")
        return self

    @model_validator(mode="after")
    def _generator_fits(self) -> ModelConfig:
        asked = self.generator
        if not asked.width and any((asked.layers, asked.heads, asked.feedforward)):
            raise Unfit("generator.width = 0 means that there is no generator", "set it, for example to 0.25")
        if asked.heads and self.generator_width % asked.heads:
            raise Unfit(
                f"the generator's width {self.generator_width} is not a multiple of its heads {asked.heads}",
                f"set generator.heads = {divisor(self.generator_width, asked.heads)}, or 0 for as many as are usual",
            )
        if asked.width and self.positions == "rotary" and self.generator_width // self.generator_heads % 2:
            repair = f"set generator.width = {(self.generator_width + 1) / self.width:.4g}"
            raise Unfit(f"rotary positions turn pairs, and the generator's width is {self.generator_width}", repair)
        if asked.layers % self.groups:
            more = -(-asked.layers // self.groups) * self.groups
            raise Unfit(
                f"the generator's layers {asked.layers} are not a multiple of groups {self.groups}",
                f"set generator.layers = {more}, or 0 for as many as the model has",
            )
        return self

    @property
    def generator_width(self) -> int:
        return max(1, round(self.generator.width * self.width))

    @property
    def generator_heads(self) -> int:
        """As asked for, or one for every 64 numbers; fewer where these do not share the width, or its pairs."""
        pairs = max(1, self.generator_width // (2 if self.positions == "rotary" else 1))
        return self.generator.heads or divisor(pairs, max(1, self.generator_width // 64))

    def shape(self, vocabulary: int, visibility: str = "full", target_vocabulary: int = 0) -> Shape:
        """The same answers with every automatic number worked out, the vocabularies' sizes and who sees whom."""
        written = target_vocabulary or vocabulary
        if self.cutoffs and self.cutoffs[-1] >= written:
            repair = f"numbers below {written:,}, or leave it out"
            raise InputError(_beyond(self.cutoffs, written), where="model.cutoffs", repair=repair)
        plain = self.model_dump(mode="json", exclude={"generator"})
        plain["feedforward"] = self.feedforward or 4 * self.width
        plain["embedding"] = self.embedding or self.width
        if self.local and self.positions == "rotary":
            plain["local_theta"] = self.local_theta or self.theta
        return Shape(vocabulary=vocabulary, target_vocabulary=target_vocabulary, visibility=visibility, **plain)

    def generator_shape(self, vocabulary: int, visibility: str = "full") -> Shape | None:
        """The generator's, whose embeddings are the model's own; None where there is no generator."""
        asked = self.generator
        if not asked.width:
            return None
        width = self.generator_width
        changes = {
            "width": width,
            "layers": asked.layers or self.layers,
            "heads": self.generator_heads,
            "feedforward": asked.feedforward or 4 * width,
            "embedding": self.embedding or self.width,
            "decoder": 0,
        }
        return Shape(**(self.shape(vocabulary, visibility).plain() | changes))
