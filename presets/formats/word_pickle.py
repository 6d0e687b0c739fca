"""ernie-tiny's dictionary, `dict.wordseg.pickle`: one pickle of a collection of words."""

import os
import pickle
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any

from .reader import reading
from .torch_pickle import check_memo

FILE = "dict.wordseg.pickle"
# Builtin types only, whose attributes a pickle cannot overwrite, and that do nothing when it calls them.
COLLECTIONS = {
    "set": set,
    "frozenset": frozenset,
    "OrderedDict": OrderedDict,
    "Counter": OrderedDict,
    "defaultdict": defaultdict,
    "int": int,  # a defaultdict names what its values are
    "long": int,  # the same, of Python 2
    "float": float,
}


class WordUnpickler(pickle.Unpickler):
    """Loads one pickle of strings and numbers in Python's own collections, and refuses every other name in it."""

    def find_class(self, module: str, name: str) -> Any:
        if module not in ("builtins", "__builtin__", "collections") or name not in COLLECTIONS:
            raise ValueError(f"it asks for {module}.{name}, which is no collection of words")
        return COLLECTIONS[name]


def read_words(folder: str | os.PathLike) -> frozenset[str]:
    """The words in the `dict.wordseg.pickle` of a folder; the keys, where it holds a dictionary with counts.

    Args:
        folder: where the file is.

    Raises:
        FileNotFoundError: there is no such file.
        CheckpointError: it is truncated or damaged, holds something other than words, or asks to call a function.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / FILE).write_bytes(pickle.dumps({"北京": 7, "大学": 3}))
    >>> sorted(read_words(folder))
    ['北京', '大学']
    """
    path = Path(folder, FILE)
    if not path.is_file():
        raise FileNotFoundError(f"{folder} has no {FILE}, the words that ernie-tiny's tokenizer needs: put it there.")
    with reading(path, "dictionary of words"), open(path, "rb") as file:
        check_memo(file)
        found = WordUnpickler(file, encoding="utf-8").load()  # Python 2 may have written it
        if not isinstance(found, (set, frozenset, dict, list, tuple)):
            raise ValueError(f"it holds a pickled {type(found).__name__}")
        if not found or not all(isinstance(word, str) for word in found):
            raise ValueError(f"it holds a {type(found).__name__} of something other than words")
        return frozenset(found)
