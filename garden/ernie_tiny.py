"""ernie-tiny's tokenizer: a dictionary cuts a text into words, and SentencePiece the words into pieces."""

import json
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import keras
import tokenizers as rust

from garden.rust_tokenizer import Tokenizer
from garden.sentence_piece import read_model
from garden.tokenizers import BertTokenizer
from garden.vocabulary import Vocabulary, as_vocabulary, read_json, write_vocabulary

WINDOW = 5  # characters: the published code never tries a longer word
PUBLISHED = {"proto": "spm_cased_simp_sampled.model", "vocabulary": "vocab.txt", "words": "dict.wordseg.pickle"}


def cut(text: str, words: Set[str]) -> Iterator[tuple[int, int]]:
    """Start and end of each word of a text: from the left, the longest of at most five characters, else one character.

    >>> [(start, end) for start, end in cut("北京大学生", {"北京", "北京大学", "学生"})]
    [(0, 4), (4, 5)]
    """
    start = 0
    while start < len(text):
        lengths = range(min(WINDOW, len(text) - start), 1, -1)
        end = start + next((length for length in lengths if text[start : start + length] in words), 1)
        yield start, end
        start = end


@keras.saving.register_keras_serializable("garden")
class ErnieTinyTokenizer(Tokenizer):
    """Words by a dictionary, pieces by SentencePiece; `ErnieTokenizer.from_preset` gives it for ernie-tiny's files.

    The reference is PaddleNLP's class of this name: the text is cut into words (see `cut`), blanks go, the words are
    lower-cased and cut into pieces as SentencePiece cuts them between blanks, and a piece is the row of the vocabulary
    that has its name, `[UNK]` where none has. The pieces have other numbers in the SentencePiece model; those mean
    nothing here.

    Args:
        proto: a SentencePiece `.model` file's path or bytes. None only for a tokenizer that will load its assets.
        vocabulary: tokens by id in a list, a `{token: id}` dict, or the path of a `vocab.txt`.
        words: the words of the dictionary. `from_preset` reads them from a `dict.wordseg.pickle`.
        lowercase: whether the words are lower-cased, as the published model needs; the dictionary is asked before.
        special_tokens_in_strings: whether special tokens in a text are that, or characters like any other.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: one of the three is missing or damaged, or the vocabulary lacks a special token.

    Reference: [PaddleNLP](https://github.com/PaddlePaddle/PaddleNLP), `paddlenlp/transformers/ernie/tokenizer.py`.

    >>> import garden
    >>> garden.ErnieTinyTokenizer().lowercase
    True
    """

    published_as = "ErnieTinyTokenizer"
    has_rust_file = False
    special_names = BertTokenizer.special_names
    backbone_cls = None  # garden.ernie sets it

    def __init__(
        self,
        proto: str | Path | bytes | None = None,
        vocabulary: Vocabulary | None = None,
        words: Iterable[str] | None = None,
        lowercase: bool = True,
        special_tokens_in_strings: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.lowercase = lowercase
        self.special_tokens_in_strings = special_tokens_in_strings
        self.file_assets = ["sentencepiece.model", "vocabulary.txt", "words.json"]
        if proto is not None:
            self._take(proto, vocabulary, words)

    @classmethod
    def recognises(cls, folder: Path) -> bool:
        return any(folder.glob("*.model")) or (folder / PUBLISHED["words"]).exists()

    @classmethod
    def from_files(cls, folder: str | Path, defaults: Mapping = MappingProxyType({}), **kwargs) -> "ErnieTinyTokenizer":
        """The tokenizer of a published folder, but for the words: `from_preset` unpickles those too.

        Args:
            folder: holds a `.model` file and `vocab.txt`.
            defaults: constructor arguments for what the files leave open, the words among them.
            **kwargs: constructor arguments that replace those of the files.

        Raises:
            FileNotFoundError: the folder lacks a file.
            ValueError: a file is damaged, or there are no words.
        """
        folder = Path(folder)
        protos = [*sorted(folder.glob("*.model")), folder / PUBLISHED["proto"]]
        config = read_json(folder / "tokenizer_config.json", {})
        settings = {"lowercase": config["do_lower_case"]} if "do_lower_case" in config else {}
        files = {"proto": protos[0], "vocabulary": folder / PUBLISHED["vocabulary"], **settings}
        return cls(**{**defaults, **files, **kwargs})

    def save_assets(self, dir_path: str) -> None:
        self._ready()
        self._write(*(Path(dir_path, name) for name in self.file_assets[:2]))
        # Not a line a word: a word may hold the end of a line.
        Path(dir_path, self.file_assets[2]).write_text(json.dumps({"words": sorted(self.words)}), "utf-8")

    def load_assets(self, dir_path: str) -> None:
        proto, vocabulary, words = (Path(dir_path, name) for name in self.file_assets)
        self._take(proto, vocabulary, read_json(words).get("words"))

    def save_published(self, folder: Path) -> dict:
        self._ready()
        self._write(folder / PUBLISHED["proto"], folder / PUBLISHED["vocabulary"])
        # Written as PaddleNLP reads it; only `garden.presets` opens one, and trusts none.
        (folder / PUBLISHED["words"]).write_bytes(pickle.dumps(set(self.words), 2))
        return {"do_lower_case": self.lowercase}

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "lowercase": self.lowercase,
            "special_tokens_in_strings": self.special_tokens_in_strings,
        }

    def _take(self, proto, vocabulary, words):
        given = {"vocabulary": vocabulary, "words": words}
        if missing := " and ".join(name for name, value in given.items() if value is None):
            raise ValueError(f"{type(self).__name__} has no {missing}: it needs these beside its SentencePiece model.")
        if isinstance(words, (str, os.PathLike)):
            raise ValueError(f"words={words} is a path, not words: from_preset reads a {PUBLISHED['words']}.")
        model = read_model(proto)
        tokens = as_vocabulary(vocabulary, self.special_tokens)
        self.proto = proto if isinstance(proto, bytes) else Path(proto).read_bytes()
        # A word of one character, or of more than the window, cuts no text.
        self.words = frozenset(word for word in words if 1 < len(word) <= WINDOW)
        self.set_rust(self._recipe(model, tokens), tokens)

    def _write(self, proto: Path, vocabulary: Path):
        proto.write_bytes(self.proto)
        write_vocabulary(vocabulary, self.get_vocabulary())

    def _recipe(self, model, tokens):
        rows = {token: row for row, token in enumerate(tokens)}
        lowercase = [rust.normalizers.Lowercase()] if self.lowercase else []
        words = _Words(self.words, rust.normalizers.Sequence([*lowercase, *model.normalizers]))
        pieces = _Rows(rust.models.Unigram(model.pieces, model.unknown_id, byte_fallback=False), rows, self.unk_token)
        tokenizer = rust.Tokenizer(rust.models.WordLevel(rows, self.unk_token))
        parts, custom = rust.pre_tokenizers, rust.pre_tokenizers.PreTokenizer.custom
        steps = [custom(words), parts.WhitespaceSplit(), parts.Metaspace(), custom(pieces)]
        tokenizer.pre_tokenizer = parts.Sequence(steps)
        tokenizer.decoder = rust.decoders.Metaspace()
        tokenizer.post_processor = rust.processors.BertProcessing(
            (self.sep_token, rows[self.sep_token]), (self.cls_token, rows[self.cls_token])
        )
        tokenizer.add_special_tokens(self.special_tokens)
        tokenizer.encode_special_tokens = not self.special_tokens_in_strings
        return tokenizer


class _Words:
    """The step from a text to its words, each with its place in the text, and from these to what SentencePiece sees."""

    def __init__(self, words, normalizer):
        self.words, self.normalizer = words, normalizer

    def pre_tokenize(self, text: rust.PreTokenizedString):
        text.split(self._split)
        text.normalize(self.normalizer.normalize)

    def _split(self, _, part: rust.NormalizedString):
        whole, found = part.normalized, []
        spans = list(cut(whole, self.words))
        for i in range(0, len(spans), 64):  # to find a slice Rust counts characters from the beginning: a short walk
            begin, run = spans[i][0], spans[i : i + 64]
            near = part[begin : run[-1][1]]
            found += [near[start - begin : end - begin] for start, end in run if whole[start:end] != " "]
        return found


class _Rows:
    """The step from a word to its pieces, and from their names to rows: a Rust model cannot number pieces by name."""

    def __init__(self, unigram, rows, unknown):
        self.unigram, self.rows, self.unknown = unigram, rows, rows[unknown]
        self.tokens = lru_cache(2**16)(self._tokens)  # a text's words have mostly been seen before

    def pre_tokenize(self, text: rust.PreTokenizedString):
        text.tokenize(self.tokens)

    def _tokens(self, word: str):
        pieces = self.unigram.tokenize(word)
        return [rust.Token(self.rows.get(piece.value, self.unknown), piece.value, piece.offsets) for piece in pieces]
