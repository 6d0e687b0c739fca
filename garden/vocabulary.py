"""WordPiece vocabularies on disk: `vocab.txt`, and the settings in a Hugging Face folder that say how to use it."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

Vocabulary = str | Path | Mapping[str, int] | Iterable[str]

VOCABULARY_FILES = ("vocab.txt", "vocab_chinese.txt", "vocabulary.txt")


def read_vocabulary(path: str | Path) -> list[str]:
    """The tokens of a vocabulary file, one a line; the line number from 0 is the id.

    Only "\\n" and "\\r\\n" end a line: bert-base-chinese holds the line separator U+2028 as a token, and a reader that
    splits there shifts every id behind it. A newline at the end of the file adds no token; an empty line inside is one.
    ERNIE's files state the id after a tab; it is the line number again, and dropped.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is empty or not UTF-8.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "vocab.txt")
    >>> write_vocabulary(path, ["[UNK]", "the", "fox"])
    >>> read_vocabulary(path)
    ['[UNK]', 'the', 'fox']
    """
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no vocabulary file {path}.") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"The vocabulary file {path} is not UTF-8 at byte {error.start}: save it as UTF-8.") from None
    if not text:
        raise ValueError(f"The vocabulary file {path} is empty.")
    return [re.sub(r"\t\d+$", "", line.removesuffix("\r")) for line in text.removesuffix("\n").split("\n")]


def write_vocabulary(path: str | Path, vocabulary: list[str]) -> None:
    """Writes the file that `read_vocabulary` reads back, under a temporary name beside it first."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    part.write_bytes("".join(f"{token}\n" for token in vocabulary).encode("utf-8"))
    os.replace(part, path)


def as_vocabulary(vocabulary: Vocabulary, special_tokens: Iterable[str]) -> list[str]:
    """The checked tokens, by id, of a list, a `{token: id}` dict or a file.

    A token that occurs twice keeps both ids; text is given the later one, as by Google's and Hugging Face's readers.

    Raises:
        ValueError: the ids of a dict have a gap, a special token is missing, or a token holds the end of a line.

    >>> as_vocabulary({"fox": 1, "[UNK]": 0}, ["[UNK]"])
    ['[UNK]', 'fox']
    """
    if isinstance(vocabulary, (str, Path)):
        vocabulary = read_vocabulary(vocabulary)
    tokens = by_id(vocabulary) if isinstance(vocabulary, Mapping) else list(vocabulary)
    missing = ", ".join(sorted(set(special_tokens).difference(tokens)))
    if missing:
        raise ValueError(f"The vocabulary of {len(tokens)} tokens lacks {missing}: give each special token its entry.")
    for i, token in enumerate(tokens):
        if not isinstance(token, str) or "\n" in token or token.endswith("\r"):
            raise ValueError(f"Entry {i} of the vocabulary is {token!r}: it has to be a string without an end of line.")
    return tokens


def is_cased(tokens: Iterable[str]) -> bool:
    """Whether a vocabulary has words with capitals, so that text must not be lower-cased.

    >>> is_cased(["[CLS]", "<S>", "the"]), is_cased(["[CLS]", "The"])
    (False, True)
    """
    return any(token.isalpha() and token != token.lower() for token in tokens)


def read_folder(folder: str | Path) -> tuple[list[str], dict]:
    """The vocabulary in a published WordPiece folder, and the settings that its files state.

    Reads `vocab.txt` or `vocab_chinese.txt`, else the vocabulary inside `tokenizer.json`. The settings, under the names
    that `BertTokenizer` gives them, come from `tokenizer_config.json`, else from `tokenizer.json`, else are absent.

    Raises:
        FileNotFoundError: the folder has no vocabulary.
        ValueError: a file is malformed, or `tokenizer.json` describes another kind of tokenizer.
    """
    folder = Path(folder)
    rust = read_json(folder / "tokenizer.json", {})
    settings = _rust_settings(rust, folder / "tokenizer.json") if rust else {}
    settings |= _config_settings(read_json(folder / "tokenizer_config.json", {}))
    for name in VOCABULARY_FILES:
        if (folder / name).exists():
            return read_vocabulary(folder / name), settings
    if not rust:
        raise FileNotFoundError(f"{folder} has no vocabulary: none of {', '.join(VOCABULARY_FILES)}, tokenizer.json.")
    return by_id(rust["model"]["vocab"]), settings


def by_id(ids: Mapping[str, int]) -> list[str]:
    """The tokens of a `{token: id}` dict in the order of their ids, or a ValueError that names the id without one."""
    tokens = {i: token for token, i in ids.items()}
    gap = next((i for i in range(len(ids)) if i not in tokens), None)
    if gap is not None:
        raise ValueError(
            f"The ids of a vocabulary of {len(ids)} tokens run from 0 to {len(ids) - 1}, but {gap} is free."
        )
    return [tokens[i] for i in range(len(ids))]


def read_json(path: str | Path, absent: dict | None = None) -> dict:
    """The object in a JSON file, or a ValueError; without the file `absent`, or a FileNotFoundError."""
    path = Path(path)
    if absent is not None and not path.exists():
        return absent
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}.") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no JSON object.")
    return content


def _config_settings(config: dict) -> dict:
    names = {"do_lower_case": "lowercase", "strip_accents": "strip_accents", "tokenize_chinese_chars": "split_on_cjk"}
    return {ours: config[theirs] for theirs, ours in names.items() if theirs in config}


def _rust_settings(rust: dict, path: Path) -> dict:
    model, normalizer = rust.get("model") or {}, rust.get("normalizer") or {}
    kinds = (model.get("type"), normalizer.get("type"))
    if kinds != ("WordPiece", "BertNormalizer"):
        raise ValueError(f"{path} is no BERT tokenizer: its model and its normalizer are {kinds[0]} and {kinds[1]}.")
    added = [token["content"] for token in rust.get("added_tokens") or [] if token["content"] not in model["vocab"]]
    if added:
        raise ValueError(f"{path} adds tokens that its vocabulary lacks, which garden cannot: {', '.join(added)}.")
    return {
        "lowercase": normalizer["lowercase"],
        "strip_accents": normalizer["strip_accents"],
        "split_on_cjk": normalizer["handle_chinese_chars"],
        "max_chars_per_word": model["max_input_chars_per_word"],
    }
