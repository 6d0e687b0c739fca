"""The tokenizers of the families, each a recipe for the Rust `tokenizers` library."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import keras
import tokenizers as rust

from garden.rust_tokenizer import Tokenizer
from garden.vocabulary import VOCABULARY_FILES, Vocabulary, as_vocabulary, is_cased, read_folder, write_vocabulary


@keras.saving.register_keras_serializable(package="garden")
class BertTokenizer(Tokenizer):
    """WordPiece as BERT, DistilBERT, ELECTRA, MobileBERT, TinyBERT and the Chinese models use it.

    The reference is the Rust recipe behind Hugging Face's fast tokenizers, character for character: control, format and
    private-use characters go, every kind of blank splits, Chinese characters and punctuation stand alone, each word is
    cut from the left into the longest pieces that the vocabulary has, and becomes `[UNK]` where that fails.

    Args:
        vocabulary: tokens by id in a list, a `{token: id}` dict, or the path of a `vocab.txt`. None only for a
            tokenizer that will load its assets.
        lowercase: whether to lower-case the text, as uncased models need.
        strip_accents: whether to drop accents; None follows `lowercase`.
        split_on_cjk: whether to make every Chinese character a word of its own.
        max_chars_per_word: a longer word is `[UNK]`. Google's own code has 200.
        special_tokens_in_strings: whether `[MASK]` and its like in a text are the special tokens, wherever they stand
            and in this case only, or characters like any other.

    Raises:
        FileNotFoundError: there is no such vocabulary file.
        ValueError: the vocabulary is empty, not UTF-8 or lacks a special token.

    Reference: [Schuster and Nakajima, 2012](https://research.google/pubs/pub37842/),
    [Devlin et al., 2018](https://arxiv.org/abs/1810.04805).

    >>> vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "fox", "##es", "the"]
    >>> tokenizer = BertTokenizer(vocabulary, lowercase=True)
    >>> tokenizer(["The foxes", "the [MASK]!"])
    [[7, 5, 6], [7, 4, 1]]
    >>> tokenizer.detokenize([7, 5, 6])
    'the foxes'
    """

    published_as = "BertTokenizer"
    special_names = {
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "mask_token": "[MASK]",
        "unk_token": "[UNK]",
        "start_token": "[CLS]",  # what KerasHub's generic code calls it
        "end_token": "[SEP]",
    }
    alternatives = ("XlmRobertaTokenizer",)  # a multilingual MiniLM is a BERT with XLM-R's vocabulary
    backbone_cls = None  # garden.bert sets it: KerasHub finds the tokenizer of a backbone by this attribute

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        lowercase: bool = False,
        strip_accents: bool | None = None,
        split_on_cjk: bool = True,
        max_chars_per_word: int = 100,
        special_tokens_in_strings: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.split_on_cjk = split_on_cjk
        self.max_chars_per_word = max_chars_per_word
        self.special_tokens_in_strings = special_tokens_in_strings
        self.file_assets = ["vocabulary.txt"]
        self.set_vocabulary(vocabulary)

    @classmethod
    def recognises(cls, folder: Path) -> bool:
        return any((folder / name).exists() for name in VOCABULARY_FILES)

    @classmethod
    def from_files(cls, folder: str | Path, defaults: Mapping = MappingProxyType({}), **kwargs) -> "BertTokenizer":
        """The tokenizer of a published folder: its vocabulary, and the settings that its JSON files state.

        Args:
            folder: holds `vocab.txt`, `vocab_chinese.txt` or `tokenizer.json`, and maybe `tokenizer_config.json`.
            defaults: constructor arguments for what the files leave open. A lone `vocab.txt` leaves open whether text
                is lower-cased: without `lowercase` it is, unless the vocabulary has words with capitals.
            **kwargs: constructor arguments that replace those of the files.

        Raises:
            FileNotFoundError: the folder holds no vocabulary.
            ValueError: a file is malformed, or describes another kind of tokenizer.
        """
        vocabulary, settings = read_folder(folder)
        found = {"lowercase": not is_cased(vocabulary), **defaults, "vocabulary": vocabulary, **settings}
        return cls(**{**found, **kwargs})

    def set_vocabulary(self, vocabulary: Vocabulary | None) -> None:
        """Takes another vocabulary, in any form that the constructor takes."""
        if vocabulary is None:
            self.set_rust(None, None)
        else:
            tokens = as_vocabulary(vocabulary, self.special_tokens)
            self.set_rust(self._recipe(tokens), tokens)

    def save_assets(self, dir_path: str) -> None:
        write_vocabulary(Path(dir_path, self.file_assets[0]), self.get_vocabulary())

    def load_assets(self, dir_path: str) -> None:
        self.set_vocabulary(Path(dir_path, self.file_assets[0]))

    def save_published(self, folder: Path) -> dict:
        write_vocabulary(folder / "vocab.txt", self.get_vocabulary())
        return {"do_lower_case": self.lowercase, "strip_accents": self.strip_accents}

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "split_on_cjk": self.split_on_cjk,
            "max_chars_per_word": self.max_chars_per_word,
            "special_tokens_in_strings": self.special_tokens_in_strings,
        }

    def _recipe(self, tokens: list[str]) -> rust.Tokenizer:
        ids = {token: i for i, token in enumerate(tokens)}
        model = rust.models.WordPiece(ids, unk_token=self.unk_token, max_input_chars_per_word=self.max_chars_per_word)
        tokenizer = rust.Tokenizer(model)
        tokenizer.normalizer = rust.normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=self.split_on_cjk,
            strip_accents=self.strip_accents,
            lowercase=self.lowercase,
        )
        tokenizer.pre_tokenizer = rust.pre_tokenizers.BertPreTokenizer()
        tokenizer.post_processor = rust.processors.BertProcessing(
            (self.sep_token, ids[self.sep_token]), (self.cls_token, ids[self.cls_token])
        )
        tokenizer.decoder = rust.decoders.WordPiece(prefix="##")
        tokenizer.add_special_tokens(self.special_tokens)
        tokenizer.encode_special_tokens = not self.special_tokens_in_strings
        return tokenizer
