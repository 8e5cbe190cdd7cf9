"""The tokenizer: raw text to ids and offsets for corpora, marked text to framed ids for use, and the folder layout.

Raw text is only text: a literal `[MASK]` or `[unused5]` in it is brackets and letters. Marked text, what a user types
to `maskery fill`, is read as the Hugging Face tools read it: `[MASK]` is the mask.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder

from maskery import arguments, files, hub
from maskery.arguments import checked
from maskery.errors import ArgumentError, InputError
from maskery.text import byte_pairs, marks, numbers, piece_files, roles, wordpiece
from maskery.text.characters import character_class, readable_texts
from maskery.text.marks import Part
from maskery.text.roles import Specials as Specials
from maskery.text.stored_settings import SETTINGS, read_settings, read_text

TARGET = "target"
"""The folder inside of a tokenizer's for that of the targets, where what is written has a vocabulary of its own."""
_DEFAULT_LENGTH = 512
_HAN = character_class((0x3000, 0x303F), (0xFF00, 0xFFEF))
"""Han characters, and the signs and full-width forms that stand among them."""
_SPACE_IN_HAN = re.compile(f"(?<={_HAN}) (?={_HAN})")


class FlatTokens(NamedTuple):
    """The tokens of many texts end to end."""

    ids: NDArray[np.uint32]
    start: NDArray[np.int64]
    """Where each token begins in its text, in characters."""
    end: NDArray[np.int64]
    lengths: NDArray[np.int64]
    """Tokens of each text."""


class Tokenizer:
    """Text to ids and back, with offsets; of every kind that the families read: WordPiece, BPE, unigram.

    tokenizer = maskery.Tokenizer.load("my-model")        # a folder, tokenizer.json or vocab.txt
    ids, segments = tokenizer.encode("The cat sat.")      # framed by [CLS] and [SEP]
    tokenizer.tokens(ids), tokenizer.decode(ids)
    """

    @checked
    def __init__(
        self, rust: RustTokenizer, *, settings: dict[str, Any] | None = None, note: str = "", where: str | Path = ""
    ) -> None:
        rust.no_truncation()
        rust.no_padding()
        rust.encode_special_tokens = False
        self._marked = rust
        self._settings = dict(settings or {})
        self.names, self.specials, stands = roles.find(rust, self._settings, where)
        self.note = "; ".join(filter(None, (note, stands)))
        """What was decided when the tokenizer was opened or made, and why."""
        self.target: Tokenizer | None = None
        """What targets are written with, in a corpus of pairs that has two vocabularies and in models trained on it."""
        if rust.post_processor is None:
            wordpiece.frame(rust, self.names["cls"], self.names["sep"])
        if rust.decoder is None and self._byte_level:
            rust.decoder = ByteLevelDecoder()
        self.vocabulary = numbers.size(rust, where)
        numbers.require_unknown(rust, where)

    def __repr__(self) -> str:
        return f"Tokenizer({self.kind}, {self.vocabulary:,} pieces)"

    @classmethod
    @checked
    def from_json(cls, text: str, *, settings: dict[str, Any] | None = None, where: str | Path = "") -> Tokenizer:
        """From the text of a tokenizer.json."""
        with _readable(where):
            rust = RustTokenizer.from_str(text)
            told = wordpiece.obey(rust, settings or {})
        note = "as written in tokenizer.json" + (f", but {', '.join(told)} as {SETTINGS} says" if told else "")
        made = cls(rust, settings=settings, note=note, where=where)
        with _readable(where):
            for pair in (None, "b"):
                rust.encode("a", pair)  # a damaged frame of specials shows itself only in use
        return made

    @classmethod
    @checked
    def from_pieces(
        cls,
        pieces: Sequence[str],
        *,
        lowercase: bool | None = None,
        note: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> Tokenizer:
        """A WordPiece tokenizer; `lowercase=None` looks at the pieces. `settings` (tokenizer_config.json) may say
        `strip_accents` and `tokenize_chinese_chars`."""
        if not len(pieces):
            raise ArgumentError("pieces is an empty list", repair="give pieces as a list of strings, [UNK] among them")
        if lowercase is None:
            capitals = wordpiece.upper_case_pieces(pieces)
            lowercase = capitals == 0
            why = f"{capitals} pieces with a capital letter" if capitals else "no piece has a capital letter"
            note = f"{'uncased' if lowercase else 'cased'}: {why}"
        rust, told = wordpiece.assemble(pieces, lowercase), {**wordpiece.settled(settings), "do_lower_case": lowercase}
        wordpiece.obey(rust, told)
        return cls(rust, settings=told, note=note)

    @classmethod
    @checked
    def from_sentencepiece(cls, path: Path, settings: dict[str, Any]) -> Tokenizer:
        """From the file of a SentencePiece model; `settings` as tokenizer_config.json has them."""
        with _readable(path):
            read = piece_files.read(path, settings)
        return cls(read.rust, settings=read.settings, note=read.note, where=path)

    @classmethod
    @checked
    def load(cls, path: str | Path) -> Tokenizer:
        """From a folder with tokenizer.json, vocab.txt, vocab.json and merges.txt, spiece.model,
        sentencepiece.bpe.model or spm.model; from a tokenizer.json, a bare vocab.txt, or the .model file of
        SentencePiece; by the name of a model in the Hugging Face cache. A folder that holds another one for targets
        gives both."""
        folder = arguments.path("path", path, "the path of a folder or file with a tokenizer")
        if not folder.exists():
            folder = hub.in_cache(str(path), hub.TOKENIZERS) or folder
        made = cls._load(folder)
        if (folder / TARGET / "tokenizer.json").is_file():
            made.target = cls._load(folder / TARGET)
        return made

    @classmethod
    def _load(cls, path: Path) -> Tokenizer:
        folder = path if path.is_dir() else path.parent
        file = path
        if path.is_dir():
            file = next((path / n for n in ("tokenizer.json", "vocab.txt") if (path / n).is_file()), path)
        if file is path and byte_pairs.is_here(path):
            rust, note = byte_pairs.read(path), f"made of {byte_pairs.VOCABULARY} and {byte_pairs.MERGES}"
            return cls(rust, settings=read_settings(path), note=note, where=path)
        if file is path and (pieces := piece_files.in_folder(path)) is not None:
            return cls.from_sentencepiece(pieces, read_settings(path))
        if not file.is_file():
            raise InputError(
                "no tokenizer here" if path.is_dir() else "no such file",
                where=path,
                repair=f"give a folder with tokenizer.json, vocab.txt, vocab.json and merges.txt, or "
                f"{', '.join(piece_files.FILES)}; a tokenizer.json, a vocab.txt or a .model file of SentencePiece; or "
                "the word train",
            )
        if file.suffix == ".model":
            return cls.from_sentencepiece(file, read_settings(folder))
        settings = read_settings(folder) if path.is_dir() or file.suffix == ".json" else {}
        if file.suffix == ".json":
            return cls.from_json(read_text(file), settings=settings, where=file)
        listed = wordpiece.read_vocabulary(file)
        stated = settings.get("do_lower_case")
        if not isinstance(stated, bool):
            return cls.from_pieces(listed, settings=settings)
        note = f"{'uncased' if stated else 'cased'}: do_lower_case in {SETTINGS}"
        return cls.from_pieces(listed, lowercase=stated, note=note, settings=settings)

    @cached_property
    def json(self) -> str:
        """The whole tokenizer as text, keys sorted: equal tokenizers give equal text."""
        return json.dumps(json.loads(self._marked.to_str()), ensure_ascii=False, sort_keys=True)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of `json`: equal tokenizers have the same."""
        return sha256(self.json.encode()).hexdigest()

    @cached_property
    def _raw(self) -> RustTokenizer:
        return marks.without_marks(self._marked, self.names.values())

    @checked
    def encode_flat(self, texts: Sequence[str]) -> FlatTokens:
        """Raw text to one run of tokens. `Encoding.offsets` makes a tuple a token; flattening them as iterators is
        the quickest way out that the binding leaves."""
        with readable_texts(texts):
            encodings = self._raw.encode_batch(list(texts), add_special_tokens=False)
        lengths = np.fromiter(map(len, encodings), dtype=np.int64, count=len(encodings))
        total = int(lengths.sum())
        ids = np.fromiter(chain.from_iterable([e.ids for e in encodings]), dtype=np.uint32, count=total)
        pairs = chain.from_iterable([e.offsets for e in encodings])
        places = np.fromiter(chain.from_iterable(pairs), dtype=np.int64, count=2 * total).reshape(-1, 2)
        return FlatTokens(ids, places[:, 0], places[:, 1], lengths)

    @checked
    def encode_ids(self, texts: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Raw text to one run of ids, and how many each text has; quicker than `encode_flat`."""
        with readable_texts(texts):
            encodings = self._raw.encode_batch_fast(list(texts), add_special_tokens=False)
        lengths = np.fromiter(map(len, encodings), dtype=np.int64, count=len(encodings))
        ids = np.fromiter(chain.from_iterable([e.ids for e in encodings]), dtype=np.uint32, count=int(lengths.sum()))
        return ids, lengths

    @checked
    def beginning(self, text: str, tokens: int, characters: int) -> str:
        """A beginning of raw text, `characters` long or longer, whose first `tokens` tokens are those of the whole; the
        text itself where none is sure to be. What follows can change the last word and the one before, no others."""
        while characters < len(text):
            part = text[:characters]
            with readable_texts((part,)):
                found = self._raw.encode(part, add_special_tokens=False).word_ids
            words = [word for word in found if word is not None]
            if len(words) > tokens > 0 and words[tokens - 1] + 1 < words[-1]:
                return part
            characters *= 4
        return text

    @checked
    def encode_raw(self, texts: Sequence[str]) -> list[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
        """For each raw text its ids (n,) and character offsets (n, 2); no specials are added, none is recognised."""
        flat = self.encode_flat(texts)
        cuts = np.cumsum(flat.lengths)[:-1]
        offsets = np.stack([flat.start, flat.end], axis=1)
        return list(zip(np.split(flat.ids, cuts), np.split(offsets, cuts), strict=True)) if len(texts) else []

    @checked
    def encode(self, text: str, pair: str | None = None) -> tuple[list[int], list[int]]:
        """Ids and segments of marked text in the tokenizer's frame ([CLS] a [SEP] b [SEP]); `[MASK]` is the mask."""
        with readable_texts((text, pair or "")):
            encoding = self._marked.encode(text, pair, add_special_tokens=True)
        return list(encoding.ids), list(encoding.type_ids)

    @checked
    def encode_marked(self, text: str) -> list[int]:
        """Ids of marked text as it stands, without a frame; `[MASK]` is the mask."""
        with readable_texts((text,)):
            return list(self._marked.encode(text, add_special_tokens=False).ids)

    @property
    def frames_as_rows(self) -> bool:
        """Whether `encode` frames a pair as rows of training are: [CLS] a [SEP] b [SEP], segments 0 and 1."""
        cls, sep = self.specials.cls, self.specials.sep
        (a, _), (b, _) = self.encode_raw(["a", "b"])
        whole = [cls, *a.tolist(), sep, *b.tolist(), sep]
        return self.encode("a", "b") == (whole, [0] * (a.size + 2) + [1] * (b.size + 1))

    def decode(self, ids: ArrayLike, *, specials: bool = False) -> str:
        """Text of ids. WordPiece puts a space between any two words; between Han characters it is taken out again."""
        text = str(self._marked.decode(_plain(ids), skip_special_tokens=not specials))
        return _SPACE_IN_HAN.sub("", text) if self.kind == "WordPiece" else text

    def tokens(self, ids: ArrayLike) -> list[str]:
        """The piece of each id; ids beyond the vocabulary (padded embeddings) read as the unknown token."""
        return [self._marked.id_to_token(number) or self.names["unk"] for number in _plain(ids)]

    def shown(self, ids: ArrayLike) -> list[str]:
        """The piece of each id for the eye: letters that stand for bytes are read, a space is ▁, half a character is
        written as its bytes (<E4>)."""
        return [p if p in self._added else marks.readable(p, self._byte_level) for p in self.tokens(ids)]

    @cached_property
    def _byte_level(self) -> bool:
        return marks.is_byte_level(self._marked)

    @cached_property
    def _added(self) -> set[str]:
        """Pieces beside the model's own, which are written as they are: marks and a user's terms."""
        found = self._marked.get_added_tokens_decoder().values()
        return {*self.names.values(), *(token.content for token in found)}

    @checked
    def id(self, piece: str) -> int | None:
        """The number of a piece; None: the vocabulary does not have it."""
        return self._marked.token_to_id(piece)

    @property
    def kind(self) -> str:
        """WordPiece, BPE, Unigram or WordLevel."""
        return type(self._marked.model).__name__

    @cached_property
    def pieces(self) -> list[str]:
        """Every piece by its number; a number without a piece is an empty string."""
        pieces = [""] * self.vocabulary
        for piece, number in self._marked.get_vocab(with_added_tokens=True).items():
            if number < len(pieces):
                pieces[number] = piece
        return pieces

    @cached_property
    def ordinary(self) -> NDArray[np.int64]:
        """The numbers of pieces that stand for text: no specials, no [unusedN], no other marks.

        Learnt pieces of BPE and unigram may look like a mark (<=>); there only added tokens are.
        """
        learnt = self.kind in ("BPE", "Unigram")
        mark = {p for p in (self._added if learnt else self.pieces) if marks.CONTROL_MARK.fullmatch(p)}
        kept = [n for n, piece in enumerate(self.pieces) if piece and piece not in mark]
        return np.array([n for n in kept if n not in self.specials.ids], dtype=np.int64)

    @checked
    def with_names(self, names: Mapping[str, str]) -> Tokenizer:
        """The same tokenizer, some pieces of which have other names; marked text that holds these means the pieces."""
        made = Tokenizer(marks.with_names(self._marked, names), settings=self._settings, note=self.note)
        made.target = self.target
        return made

    def lowercased(self) -> Tokenizer:
        """The same tokenizer that puts text in lower case first."""
        # A class that knows its own normaliser would not look at this one.
        settings = self._settings | {"tokenizer_class": "PreTrainedTokenizerFast"}
        made = Tokenizer(marks.lowercased(self._marked), settings=settings, note=self.note)
        made.target = self.target
        return made

    def framed(self, single: Sequence[Part], pair: Sequence[Part], *, left: bool, segments: bool) -> Tokenizer:
        """The same tokenizer that puts texts between other marks, for other tools as well: `left`, they pad on that
        side; `segments`, they hand the segments on."""
        names = ["input_ids", *(["token_type_ids"] if segments else []), "attention_mask"]
        # A class that knows its own frame, such as BertTokenizer, would not look at this one.
        told = {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": names}
        settings = self._settings | told | ({"padding_side": "left"} if left else {})
        made = Tokenizer(marks.framed(self._marked, single, pair), settings=settings, note=self.note)
        made.target = self.target
        return made

    @checked
    def save(self, folder: str | Path, *, max_length: int | None = None, segments: bool = True) -> list[str]:
        """Write the files that `transformers.AutoTokenizer` opens; their names are returned.

        `max_length` is the longest row of the model beside it; by default what the tokenizer was opened with, or 512.
        `segments` = False: the model tells no segments apart, and is to be given none.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        told = roles.told(self.names)
        kind = "PreTrainedTokenizerFast"
        if self.kind == "WordPiece":
            kind = "MPNetTokenizer" if wordpiece.is_mpnet(self.pieces) else "BertTokenizer"
        # Without being asked for, Hugging Face gives no segments of a tokenizer that it does not know by name.
        inputs = {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]} if self.frames_as_rows else {}
        settings = {"tokenizer_class": kind, "model_max_length": _DEFAULT_LENGTH, **inputs, **self._settings, **told}
        settings |= wordpiece.stated(self._marked)
        if max_length is not None:
            settings["model_max_length"] = max_length
        if not segments:
            settings["model_input_names"] = ["input_ids", "attention_mask"]
        files.write_text(folder / "tokenizer.json", self.json + "\n")
        files.write_json(folder / SETTINGS, dict(sorted(settings.items())))
        files.write_json(folder / "special_tokens_map.json", told)
        written = ["tokenizer.json", SETTINGS, "special_tokens_map.json"]
        if self.kind == "WordPiece" and all(self.pieces):
            files.write_text(folder / "vocab.txt", "".join(f"{piece}\n" for piece in self.pieces))
            written.append("vocab.txt")
        if self.target is not None:
            written += [f"{TARGET}/{name}" for name in self.target.save(folder / TARGET, max_length=max_length)]
        return written

    @property
    def of_targets(self) -> Tokenizer:
        """What is written is written with: the targets' own, where there is one."""
        return self if self.target is None else self.target


@contextmanager
def _readable(where: str | Path) -> Iterator[None]:
    """The binding raises bare `Exception`, and a panic of the library is not even that."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, InputError):
        raise
    except BaseException as error:
        raise InputError(
            f"cannot be read as a tokenizer: {error}", where=where, repair="give a tokenizer.json or a vocab.txt"
        ) from None


def _plain(ids: Any) -> list[int]:
    return arguments.whole_numbers("ids", ids)
