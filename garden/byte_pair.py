"""Byte-level byte-pair encoding, the tokenizer of GPT-2, RoBERTa and DeBERTa, and its files on disk."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import tokenizers as rust

from garden.rust_tokenizer import Tokenizer
from garden.vocabulary import Vocabulary, as_vocabulary, by_id, read_json, read_vocabulary

Merges = str | Path | Iterable[str]


class BytePairTokenizer(Tokenizer):
    """Byte-level BPE: text is cut into words by GPT-2's pattern, and the bytes of each word are merged by rank.

    The reference is the Rust recipe behind Hugging Face's fast tokenizers. Every text has ids, since every byte has
    one; a blank in front of a word is part of it, so that a word at the start of a text is another token than inside.

    Args:
        vocabulary: `{token: id}`, tokens by id in a list, or the path of a `vocab.json`. None only for a tokenizer that
            will load its assets.
        merges: the pairs in the order of their ranks, each `"left right"`, or the path of a `merges.txt`.
        add_prefix_space: whether the first word is given a blank too.
        special_tokens_in_strings: whether `<mask>` and its like in a text are the special tokens, or characters like
            any other. A blank in front of `<mask>` belongs to it.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a file is malformed, the vocabulary lacks a special token, or a merge makes a token it lacks.

    Reference: [Radford et al., 2019](https://openai.com/research/better-language-models), section 2.2.

    >>> import garden
    >>> vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "a", "b", "Ġ", "ab", "Ġab", "<mask>"]
    >>> tokenizer = garden.RobertaTokenizer(vocabulary, ["a b", "Ġ ab"])
    >>> tokenizer("ab ab <mask>"), tokenizer.detokenize([7, 8])
    ([7, 8, 9], 'ab ab')
    """

    backbone_cls = None

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        merges: Merges | None = None,
        add_prefix_space: bool = False,
        special_tokens_in_strings: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.add_prefix_space = add_prefix_space
        self.special_tokens_in_strings = special_tokens_in_strings
        self.file_assets = ["vocabulary.json", "merges.txt"]
        self.merges = None
        if vocabulary is not None:
            self.set_vocabulary_and_merges(vocabulary, merges)

    def _post_processor(self, ids: dict[str, int]):
        """The Rust part that frames a text with special tokens, given the id of every token; here no frame."""
        return rust.processors.ByteLevel(trim_offsets=False)

    @classmethod
    def from_files(cls, folder: str | Path, defaults: Mapping = MappingProxyType({}), **kwargs) -> "BytePairTokenizer":
        """The tokenizer of a published folder; see `read_byte_pairs` for its files.

        Args:
            folder: where the files are.
            defaults: constructor arguments for what the files leave open.
            **kwargs: constructor arguments that replace those of the files.

        Raises:
            FileNotFoundError: the folder holds no vocabulary, or one without its merges.
            ValueError: a file is malformed, or describes another kind of tokenizer.
        """
        vocabulary, merges, settings = read_byte_pairs(folder)
        return cls(**{**defaults, "vocabulary": vocabulary, "merges": merges, **settings, **kwargs})

    def set_vocabulary_and_merges(self, vocabulary: Vocabulary, merges: Merges) -> None:
        """Takes another vocabulary and its merges, in any form that the constructor takes."""
        if isinstance(vocabulary, (str, Path)):
            vocabulary = read_json(vocabulary)
        tokens = as_vocabulary(vocabulary, self.special_tokens)
        self.merges = read_merges(merges) if isinstance(merges, (str, Path)) else list(merges or ())
        self.set_rust(self._recipe(tokens), tokens)

    def save_assets(self, dir_path: str) -> None:
        vocabulary, merges = (Path(dir_path, name) for name in self.file_assets)
        ids = {token: i for i, token in enumerate(self.get_vocabulary())}
        vocabulary.write_text(json.dumps(ids, ensure_ascii=False), "utf-8")
        merges.write_text("".join(f"{merge}\n" for merge in ["#version: 0.2", *self.merges]), "utf-8")

    def load_assets(self, dir_path: str) -> None:
        self.set_vocabulary_and_merges(*(Path(dir_path, name) for name in self.file_assets))

    def save_published(self, folder: Path) -> dict:
        self.save_assets(str(folder))
        (folder / "vocabulary.json").replace(folder / "vocab.json")
        return {"add_prefix_space": self.add_prefix_space}

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "add_prefix_space": self.add_prefix_space,
            "special_tokens_in_strings": self.special_tokens_in_strings,
        }

    def _recipe(self, tokens: list[str]) -> rust.Tokenizer:
        tokenizer = self._byte_pairs(tokens)
        tokenizer.pre_tokenizer = rust.pre_tokenizers.ByteLevel(add_prefix_space=self.add_prefix_space)
        tokenizer.decoder = rust.decoders.ByteLevel()
        tokenizer.post_processor = self._post_processor({token: i for i, token in enumerate(tokens)})
        return tokenizer

    def _byte_pairs(self, tokens: list[str], **settings) -> rust.Tokenizer:
        """A Rust tokenizer of the vocabulary, the merges and the special tokens, which cuts no words yet."""
        ids = {token: i for i, token in enumerate(tokens)}
        pairs = [tuple(merge.split(" ")) for merge in self.merges]
        try:
            tokenizer = rust.Tokenizer(rust.models.BPE(ids, pairs, **settings))
        except Exception as error:  # Rust raises nothing narrower
            raise ValueError(f"The merges do not belong to the vocabulary of {len(tokens)} tokens: {error}.") from None
        mask = getattr(self, "mask_token", None)
        tokenizer.add_special_tokens([rust.AddedToken(t, lstrip=t == mask, special=True) for t in self.special_tokens])
        tokenizer.encode_special_tokens = not self.special_tokens_in_strings
        return tokenizer


_FILES = (
    ("vocab.json", "merges.txt"),
    ("vocabulary.json", "merges.txt"),
    ("encoder.json", "vocab.bpe"),
    ("encoder_bpe_40000.json", "vocab_40000.bpe"),
)


def read_merges(path: str | Path) -> list[str]:
    """The lines of a `merges.txt` or `vocab.bpe`, without the line that states its version.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a line does not hold two tokens.
    """
    lines = read_vocabulary(path)
    merges = [line for line in lines[lines[0].startswith("#version") :] if line]
    for merge in merges:
        if merge.count(" ") != 1:
            raise ValueError(f"{path} has the line {merge!r}, which is no pair of tokens.")
    return merges


def read_byte_pairs(folder: str | Path) -> tuple[list[str], list[str], dict]:
    """The vocabulary and the merges in a published folder, and the settings that its files state.

    Reads `vocab.json` and `merges.txt`; else fairseq's `dict.txt` with GPT-2's `encoder.json` and `vocab.bpe`; else
    those two alone, or what OpenAI called them for the first GPT; else `tokenizer.json`.

    Raises:
        FileNotFoundError: the folder has none of them, or a vocabulary without its merges.
        ValueError: a file is malformed, or `tokenizer.json` describes another kind of tokenizer.
    """
    folder = Path(folder)
    config = read_json(folder / "tokenizer_config.json", {})
    settings = {name: config[name] for name in ("add_prefix_space",) if name in config}
    if (folder / "dict.txt").exists() and not (folder / "vocab.json").exists():
        return *_fairseq(folder), settings
    for vocabulary, merges in _FILES:
        if (folder / vocabulary).exists():
            return by_id(read_json(folder / vocabulary)), read_merges(folder / merges), settings
    rust_json = read_json(folder / "tokenizer.json", {})
    if not rust_json:
        raise FileNotFoundError(f"{folder} has no vocabulary: neither vocab.json nor dict.txt nor tokenizer.json.")
    model, splitter = rust_json.get("model") or {}, rust_json.get("pre_tokenizer") or {}
    if (model.get("type"), splitter.get("type")) != ("BPE", "ByteLevel"):
        found = f"{model.get('type')} and {splitter.get('type')}"
        raise ValueError(f"{folder / 'tokenizer.json'} is no byte-level BPE: its model and splitter are {found}.")
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    return by_id(model["vocab"]), merges, {"add_prefix_space": splitter["add_prefix_space"], **settings}


def _fairseq(folder: Path) -> tuple[list[str], list[str]]:
    """fairseq's ids: four special tokens, the entries of dict.txt, `<mask>`. An entry is a GPT-2 id in decimal."""
    entries = [line.split(" ")[0] for line in read_vocabulary(folder / "dict.txt")]
    if not any(entry.isdecimal() for entry in entries):  # a model of characters, whose entries are its tokens
        return ["<s>", "<pad>", "</s>", "<unk>", *entries, "<mask>"], []
    if not (folder / "encoder.json").exists():
        raise FileNotFoundError(
            f"{folder} has a dict.txt of GPT-2 ids but no encoder.json and vocab.bpe: put GPT-2's two files beside it."
        )
    tokens = by_id(read_json(folder / "encoder.json"))
    named = [tokens[int(entry)] if entry.isdecimal() else entry for entry in entries]
    return ["<s>", "<pad>", "</s>", "<unk>", *named, "<mask>"], read_merges(folder / "vocab.bpe")
