"""Question 2, how is a row corrupted? The `[corruption]` table of a recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from maskery.config import Config
from maskery.errors import Unfit
from maskery.registry import Registry

if TYPE_CHECKING:
    from maskery.corruption.laws import Law

UNITS: Registry[Any] = Registry(
    "corruption unit",
    {name: f"maskery.corruption.units:{name}" for name in ("token", "word", "phrase", "entity")},
)
LAWS: Registry[Law] = Registry(
    "span law",
    {
        "single": "maskery.corruption.laws:single",
        "weights": "maskery.corruption.laws:weights",
        "geometric": "maskery.corruption.laws:geometric",
        "poisson": "maskery.corruption.laws:poisson",
        "fragment": "maskery.corruption.laws:fragment",
    },
)
SOURCES: Registry[Any] = Registry(
    "source of random tokens",
    {
        "vocabulary": "maskery.corruption.replace:from_vocabulary",
        "ordinary": "maskery.corruption.replace:from_ordinary",
        "corpus": "maskery.corruption.replace:from_corpus",
    },
)
_NUMBERS: dict[str, tuple[str, ...]] = {
    "weights": ("weights",),
    "geometric": ("p", "longest"),
    "poisson": ("mean",),
    "fragment": ("ends",),
}
"""The numbers that a law reads, where there are any."""


class SpanConfig(Config):
    """How many units are taken at once. A number that the law does not read is refused."""

    law: Annotated[str, AfterValidator(LAWS.validator())] = "single"
    weights: tuple[float, ...] = ()
    """weights: shares of spans of 1, 2, 3, ... units; they need not sum to one."""
    p: float = Field(0.2, gt=0, lt=1)
    """geometric: chance to stop after each unit."""
    longest: int = Field(10, ge=1, le=512)
    mean: float = Field(3.0, gt=0, le=100)
    """poisson."""
    place: Literal["anywhere", "apart"] = "anywhere"
    """apart: each span lies within a context of its own, 1 / rate as long as itself (XLNet)."""
    ends: float = Field(0.0, ge=0, le=0.5)
    """fragment: chance to begin at the front of the text, and as great a one to stop at its end; otherwise every place
    is as likely (MASS: 0.2)."""

    @model_validator(mode="after")
    def _numbers_of_the_law(self) -> SpanConfig:
        read = ("law", *_NUMBERS.get(self.law, ()))
        for name, field in SpanConfig.model_fields.items():
            if name not in (*read, "place") and getattr(self, name) != field.default:
                known = f"; it reads {' and '.join(read[1:])}" if read[1:] else ""
                raise Unfit(f"law {self.law!r} does not read {name!r}{known}", self._laws_that_read(name))
        if self.law == "weights" and (not any(self.weights) or min(self.weights) < 0):
            raise Unfit(
                f"law 'weights' needs weights that are not negative, one of them above 0, and has {list(self.weights)}",
                "for example weights = [0.4, 0.3, 0.2, 0.1]",
            )
        if self.place == "apart" and self.law in ("poisson", "fragment"):
            raise Unfit(
                f"place 'apart' lays out spans of one unit or more, and law {self.law!r} has "
                f"{'spans of none' if self.law == 'poisson' else 'a single span'}",
                "leave place out, or take another law",
            )
        return self

    def _laws_that_read(self, name: str) -> str:
        """The repair. A table given as a whole replaces the recipe's own, and with it the other law's numbers."""
        whole = ", ".join(f"{each} = ..." for each in _NUMBERS.get(self.law, ()))
        laws = " or ".join(f'law = "{law}"' for law, numbers in _NUMBERS.items() if name in numbers)
        table = f'{{ law = "{self.law}"{", " if whole else ""}{whole} }}'
        return f"{laws}, which reads {name!r}; or the whole table, which replaces this one: corruption.span = {table}"


class ReplaceConfig(Config):
    """Shares of the chosen by what happens to them; they sum to one."""

    mask: float = Field(0.8, ge=0, le=1)
    random: float = Field(0.1, ge=0, le=1)
    keep: float = Field(0.1, ge=0, le=1)
    similar: float = Field(0.0, ge=0, le=1)
    """Another word of like meaning with as many tokens."""
    infill: float = Field(0.0, ge=0, le=1)
    """One mask for the whole span."""
    delete: float = Field(0.0, ge=0, le=1)

    @model_validator(mode="after")
    def _sum(self) -> ReplaceConfig:
        shares = self.plain()
        total = sum(shares.values())
        if abs(total - 1) > 1e-6:
            given = " + ".join(f"{name} {share:g}" for name, share in shares.items() if share)
            raise Unfit(
                f"shares sum to {total:g}, not to 1: {given or 'all are 0'}",
                "shares that you do not give count as well: set them, to 0 where need be",
            )
        return self


class ShuffleConfig(Config):
    """Short runs of tokens that were not chosen, put in another order."""

    rate: float = Field(0.0, ge=0, le=1)
    """Share of the runs of `size` neighbouring slots, as far as they do not overlap."""
    size: int = Field(3, ge=2, le=16)


class OrderConfig(Config):
    """The order of whole stretches of text, before anything is chosen."""

    sentences: bool = False
    """Put the sentences of a segment in random order."""
    rotate: float = Field(0.0, ge=0, le=1)
    """Chance that a segment begins at a random token and its front follows its end."""


class NgramConfig(Config):
    """One run of neighbouring words of each row, masked whole apart from what is chosen otherwise (InfoWord)."""

    shortest: int = Field(2, ge=2)
    longest: int = Field(0, ge=0, le=64)
    """Words; every length from the shortest to this is as likely. 0 = no such run."""

    @model_validator(mode="after")
    def _some_length(self) -> NgramConfig:
        if 0 < self.longest < self.shortest:
            raise Unfit(
                f"longest = {self.longest} is below shortest = {self.shortest}", f"set longest = {self.shortest}"
            )
        return self


class StageConfig(Config):
    """A part of training with a unit of its own."""

    unit: Annotated[str, AfterValidator(UNITS.validator())]
    share: float = Field(1.0, gt=0)
    """How long, in proportion to the other stages."""


class CorruptionConfig(Config):
    rate: float = Field(0.15, ge=0, lt=1)
    of: Literal["tokens", "words"] = "tokens"
    """What the rate counts."""
    unit: Annotated[str, AfterValidator(UNITS.validator())] = "token"
    when: Literal["static", "dynamic"] = "dynamic"
    """static: a row of the plan has one corruption for ever; dynamic: a new one in every epoch."""
    masks: int = Field(1, ge=1)
    """static: how many corruptions a row has; epochs take them in turn."""
    segment: Literal["all", "second"] = "all"
    """Where: in the whole row, or in what follows its first segment, whose tokens the rate then counts (UniLM's
    fine-tuning)."""
    end: bool = False
    """Whether the [SEP] that ends the row may be chosen like a word, so that a writer learns where to stop."""
    decide: Literal["token", "word", "span"] = "token"
    """What one draw of mask / random / keep / similar covers."""
    random_from: Annotated[str, AfterValidator(SOURCES.validator())] = "vocabulary"
    span: SpanConfig = SpanConfig()
    replace: ReplaceConfig = ReplaceConfig()
    shuffle: ShuffleConfig = ShuffleConfig()
    order: OrderConfig = OrderConfig()
    ngram: NgramConfig = NgramConfig()
    stages: tuple[StageConfig, ...] = ()
    """Units that follow each other as training goes on (ERNIE: token, phrase, entity), in the place of `unit`."""

    @property
    def units(self) -> tuple[str, ...]:
        """Every unit that is taken at some time, the last one last."""
        return tuple(stage.unit for stage in self.stages) or (self.unit,)

    @property
    def about_words(self) -> str:
        """The key, with its value, that asks where words begin: "" if none does."""
        units = [unit for unit in self.units if unit != "token"]
        if self.rate > 0 and units:
            return f"stages, of which one has unit = {units[0]!r}" if self.stages else f"unit = {units[0]!r}"
        if self.rate > 0 and self.decide == "word":
            return "decide = 'word'"
        return f"ngram.longest = {self.ngram.longest}" if self.ngram.longest else ""

    def at(self, done: float) -> CorruptionConfig:
        """The corruption when this part of training is done, 0 to 1: without stages, with the unit of its stage."""
        if not self.stages:
            return self
        return self.model_copy(update={"unit": self.stages[self.stage_at(done)].unit, "stages": ()})

    def stage_at(self, done: float) -> int:
        """The number of the stage when this part of training is done."""
        whole, upto = sum(stage.share for stage in self.stages), 0.0
        for number, stage in enumerate(self.stages):
            upto += stage.share
            if done * whole < upto:
                return number
        return len(self.stages) - 1

    @model_validator(mode="after")
    def _parts_fit(self) -> CorruptionConfig:
        if self.masks > 1 and self.when == "dynamic":
            raise Unfit(
                "masks counts the corruptions of a static row, but when = 'dynamic' draws a new one always",
                "set when = 'static'",
            )
        if self.stages and self.unit != "token":
            raise Unfit("stages name the units", "leave out unit")
        if self.of == "words" and "token" in self.units:
            raise Unfit("of = 'words' counts words, but the unit is a token", "set unit = 'word'")
        if self.replace.similar and ("token" in self.units or self.decide == "token"):
            raise Unfit("replace.similar takes whole words", "set unit = 'word' and decide = 'word' or 'span'")
        if self.replace.infill and self.decide != "span":
            raise Unfit("replace.infill puts one mask for a span", "set decide = 'span'")
        if self.end and (self.replace.infill or self.replace.delete):
            raise Unfit(
                "end = true lets the last [SEP] be chosen, which replace.infill and delete would take out",
                "set end = false, or replace.infill and replace.delete = 0",
            )
        if self.segment == "second" and self.ngram.longest:
            raise Unfit("ngram hides a run of words anywhere in the row", "set segment = 'all', or ngram.longest = 0")
        if self.span.law == "poisson" and self.replace.infill < 1:
            raise Unfit(
                "law 'poisson' has spans of no unit, which only replace.infill = 1 can show",
                "set decide = 'span' and replace = { mask = 0.0, random = 0.0, keep = 0.0, infill = 1.0 }",
            )
        return self
