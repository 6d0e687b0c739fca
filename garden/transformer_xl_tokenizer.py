"""Words as tokens, most frequent first: Transformer-XL's vocabularies and the rules of WikiText-103."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import keras
import tokenizers as rust

from garden.pickled_words import PICKLES, read_pickled_words
from garden.rust_tokenizer import Tokenizer
from garden.vocabulary import Vocabulary, as_vocabulary, by_id, read_json, read_vocabulary, write_vocabulary

# In front of these a full stop is part of the word: Moses's list for English, as far as it is common.
_ABBREVIATIONS = (
    "Adj Adm Adv Asst Bart Bldg Brig Bros Capt Cmdr Col Comdr Con Corp Cpl DR Dr Drs Ens Gen Gov Hon Hosp Insp Lt MM MR"
    " MRS MS Maj Messrs Mlle Mme Mr Mrs Ms Msgr Op Ord Pfc Ph Prof Pvt Rep Reps Res Rev Rt Sen Sens Sfc Sgt Sr St"
    " Supt Surg Jr Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec v vs rev i.e e.g"
).split()
# Marks that text of other makes has for those of WikiText.
_MARKS = {
    "''|``|[\u201c\u201d\u00ab\u00bb]": '"',
    "[`\u00b4\u2018\u2019]": "'",
    "\u2026": "...",
    "\u2013": "-",
    "\u2014": " - ",
}
_WORD = r"[\p{L}\p{M}\p{Nd}]+(?:\.[\p{L}\p{M}\p{Nd}]+)*"
_TOKEN = "|".join(
    [
        r"<\w+>",
        r"@[-,.]@",
        r"\.\.+",
        r"(?:[\p{L}\p{Nd}]+\.)+\p{L}+\.(?![\p{L}\p{Nd}])",  # U.S.
        rf"(?:\p{{Lu}}|{'|'.join(map(str, _ABBREVIATIONS))})\.(?=\s+\S)",
        r"(?:Nos?|Art|pp)\.(?=\s+\d)",
        rf"{_WORD}\.(?=\s+\p{{Ll}})",
        r"(?<=\p{L})'\p{L}[\p{L}\p{M}\p{Nd}]*|(?<=\p{Nd})'s",  # 's
        _WORD,
        r"\S",
    ]
).replace("i.e|e.g", r"i\.e|e\.g")


@keras.saving.register_keras_serializable("garden")
class TransformerXlTokenizer(Tokenizer):
    """Words of a closed vocabulary, one token each; every other word is `<unk>`.

    Text is split by the rules under which WikiText-103 was made, Moses's for English: punctuation stands alone, "it's"
    is `it 's`, and hyphens, commas and full stops inside of words and numbers are `@-@`, `@,@` and `@.@`. Text in which
    blanks already stand between all tokens, such as the files of WikiText-103, needs `pretokenized`.

    A text is framed as a line of the training text is: `<eos>` stands before and behind it.

    Args:
        vocabulary: words by id in a list, a `{word: id}` dict, or the path of a file with a word a line. An adaptive
            softmax wants them sorted by frequency. None only for a tokenizer that will load its assets.
        pretokenized: whether blanks alone separate tokens.
        lowercase: whether to lower-case the text.
        special_tokens_in_strings: whether `<eos>` and `<unk>` in a text are the special tokens.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a file is malformed, or the vocabulary lacks a special token.

    Reference: [Dai et al., 2019](https://arxiv.org/abs/1901.02860), section 4; [Merity et al.,
    2016](https://arxiv.org/abs/1609.07843), section 4.3.

    >>> import garden
    >>> tokenizer = garden.TransformerXlTokenizer(["<eos>", "<unk>", "it", "'s", "12", "@,@", "000", "."])
    >>> tokenizer("it's 12,000 feet."), tokenizer.detokenize([2, 3, 4, 5, 6])
    ([2, 3, 4, 5, 6, 1, 7], "it 's 12,000")
    """

    published_as = "PreTrainedTokenizerFast"
    special_names = {
        "eos_token": "<eos>",
        "unk_token": "<unk>",
        "start_token": "<eos>",
        "end_token": "<eos>",
        "pad_token": "<eos>",
    }
    numbers_segments = False
    backbone_cls = None

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        pretokenized: bool = False,
        lowercase: bool = False,
        special_tokens_in_strings: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.pretokenized = pretokenized
        self.lowercase = lowercase
        self.special_tokens_in_strings = special_tokens_in_strings
        self.file_assets = ["vocabulary.txt"]
        self.set_vocabulary(vocabulary)

    @classmethod
    def from_text(cls, lines: Iterable[str], max_size: int | None = None, min_count: int = 1, **kwargs):
        """A tokenizer of the words of a text.

        Args:
            lines: the text.
            max_size: the most ids; None means no limit.
            min_count: how often a word has to occur.
            **kwargs: further constructor arguments.

        Returns:
            A tokenizer whose ids are `<eos>`, the words, most frequent first, and `<unk>` unless it is one of them.

        >>> import garden
        >>> tokenizer = garden.TransformerXlTokenizer.from_text(["a b a", "a c"])
        >>> tokenizer.get_vocabulary()
        ['<eos>', 'a', 'b', 'c', '<unk>']
        """
        splitter = cls(["<eos>", "<unk>"], **kwargs)
        counts = Counter(word for line in lines for word in splitter.split(line))
        counts.pop("<eos>", None)
        room = None if max_size is None else max_size - 1 - ("<unk>" not in counts)
        words = [word for word, count in counts.most_common(room) if count >= min_count]
        return cls(["<eos>", *words, *([] if "<unk>" in words else ["<unk>"])], **kwargs)

    @classmethod
    def from_files(cls, folder: str | Path, defaults: Mapping = MappingProxyType({}), **kwargs):
        """The tokenizer of a published folder: `vocab.txt`, `vocab.pkl`, `vocab.bin` or `tokenizer.json`.

        The pickles are read by an unpickler that calls nothing that they name.

        Args:
            folder: where the files are.
            defaults: constructor arguments for what the files leave open.
            **kwargs: constructor arguments that replace those of the files.

        Raises:
            FileNotFoundError: the folder holds no vocabulary.
            ValueError: a file is malformed, or describes another kind of tokenizer.
        """
        folder = Path(folder)
        config = read_json(folder / "tokenizer_config.json", {})
        settings = {name: config[name] for name in ("pretokenized", "lowercase") if name in config}
        return cls(**{**defaults, "vocabulary": _published(folder), **settings, **kwargs})

    def set_vocabulary(self, vocabulary: Vocabulary | None) -> None:
        """Takes another vocabulary, in any form that the constructor takes."""
        if vocabulary is None:
            self.set_rust(None, None)
        else:
            tokens = as_vocabulary(vocabulary, self.special_tokens)
            self.set_rust(self._recipe(tokens), tokens)

    def split(self, text: str) -> list[str]:
        """The words of a text as its rules split it, whether the vocabulary has them or not."""
        rust_tokenizer = self._ready()
        text = rust_tokenizer.normalizer.normalize_str(text)
        return [word for word, _ in rust_tokenizer.pre_tokenizer.pre_tokenize_str(text)]

    def save_assets(self, dir_path: str) -> None:
        write_vocabulary(Path(dir_path, self.file_assets[0]), self.get_vocabulary())

    def load_assets(self, dir_path: str) -> None:
        self.set_vocabulary(Path(dir_path, self.file_assets[0]))

    def save_published(self, folder: Path) -> dict:
        write_vocabulary(folder / "vocab.txt", self.get_vocabulary())
        tokens = {name: self.special_names[name] for name in ("eos_token", "unk_token", "pad_token")}
        return {"pretokenized": self.pretokenized, "lowercase": self.lowercase, **tokens}

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "pretokenized": self.pretokenized,
            "lowercase": self.lowercase,
            "special_tokens_in_strings": self.special_tokens_in_strings,
        }

    def _recipe(self, tokens: list[str]) -> rust.Tokenizer:
        ids = {token: i for i, token in enumerate(tokens)}
        tokenizer = rust.Tokenizer(rust.models.WordLevel(ids, unk_token=self.unk_token))
        tokenizer.normalizer = rust.normalizers.Sequence(self._normalizers())
        splitter = rust.pre_tokenizers.WhitespaceSplit()
        if not self.pretokenized:
            splitter = rust.pre_tokenizers.Split(rust.Regex(_TOKEN), "removed", invert=True)
        tokenizer.pre_tokenizer = splitter
        tokenizer.post_processor = rust.processors.TemplateProcessing(
            single="<eos> $A <eos>",
            pair="<eos> $A <eos> $B <eos>",
            special_tokens=[("<eos>", ids["<eos>"])],
        )
        tokenizer.decoder = rust.decoders.Sequence(
            [
                rust.decoders.WordPiece(prefix="\0", cleanup=False),  # blanks between words
                rust.decoders.Fuse(),
                *(rust.decoders.Replace(f" @{mark}@ ", mark) for mark in "-,."),
            ]
        )
        tokenizer.add_special_tokens([self.eos_token, self.unk_token])
        tokenizer.encode_special_tokens = not self.special_tokens_in_strings
        return tokenizer

    def _normalizers(self):
        rules = [rust.normalizers.Lowercase()] if self.lowercase else []
        if self.pretokenized:
            return rules
        inside = {"-": r"(?<=[\p{L}\p{Nd}])-(?=[\p{L}\p{Nd}])", ",": r"(?<=\d),(?=\d)", ".": r"(?<=\d)\.(?=\d)"}
        rules += [rust.normalizers.Replace(rust.Regex(marks), plain) for marks, plain in _MARKS.items()]
        return rules + [rust.normalizers.Replace(rust.Regex(rule), f" @{mark}@ ") for mark, rule in inside.items()]


def _published(folder: Path) -> list[str]:
    for name in ("vocab.txt", "vocabulary.txt"):
        if (folder / name).exists():
            return read_vocabulary(folder / name)
    for name in PICKLES:
        if (folder / name).exists():
            return read_pickled_words(folder / name)
    rust_json = read_json(folder / "tokenizer.json", {})
    if not rust_json:
        names = ", ".join(("vocab.txt", *PICKLES, "tokenizer.json"))
        raise FileNotFoundError(f"{folder} has no vocabulary: none of {names}.")
    model = rust_json.get("model") or {}
    if model.get("type") != "WordLevel":
        raise ValueError(f"{folder / 'tokenizer.json'} is no tokenizer of words: its model is {model.get('type')}.")
    return by_id(model["vocab"])
