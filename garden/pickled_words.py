"""The words in a pickled vocabulary of Transformer-XL, read without running anything that the pickle names."""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

from garden.vocabulary import by_id

PICKLES = ("vocab.pkl", "vocab.bin")
_TORCH_NUMBER = 0x1950A86A20F9469CFC6C  # what torch.save wrote in front before 1.6
_PLAIN_DATA = {("collections", "Counter"), ("collections", "OrderedDict"), ("collections", "defaultdict")}


def read_pickled_words(path: str | Path) -> list[str]:
    """The words, by id, of a pickled dictionary that has them under `sym2idx` or `idx2sym`.

    Args:
        path: `vocab.pkl` (pickle) or `vocab.bin` (`torch.save`, of either generation).

    Raises:
        ValueError: the file is damaged, holds something else, or names a function.

    >>> import pickle, tempfile
    >>> from pathlib import Path
    >>> from garden.pickled_words import read_pickled_words
    >>> path = Path(tempfile.mkdtemp(), "vocab.pkl")
    >>> _ = path.write_bytes(pickle.dumps({"sym2idx": {"the": 1, "<eos>": 0}}))
    >>> read_pickled_words(path)
    ['<eos>', 'the']
    """
    path = Path(path)
    try:
        content = _content(path)
    except (pickle.UnpicklingError, zipfile.BadZipFile, EOFError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"The vocabulary {path} is damaged: {error or type(error).__name__}.") from None
    found = content if isinstance(content, dict) else {}
    words = found.get("sym2idx") or found.get("idx2sym")
    if isinstance(words, dict):
        words = by_id(words)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{path} holds no words under sym2idx or idx2sym: save the vocabulary's own dictionary.")
    return words


def _content(path: Path) -> Any:
    with open(path, "rb") as file:
        if zipfile.is_zipfile(file):
            archive = zipfile.ZipFile(file)
            name = next((name for name in archive.namelist() if name.endswith("/data.pkl")), "data.pkl")
            return _Unpickler(io.BytesIO(archive.read(name))).load()
        file.seek(0)
        content = _Unpickler(file).load()
        if content == _TORCH_NUMBER:  # its version, the machine's number sizes, and then what was saved
            content = [_Unpickler(file).load() for _ in range(3)][-1]
        return content


class _Unpickler(pickle._Unpickler):
    """Python's own unpickler in Python: its memo is a dictionary, so that no number in the file makes it large."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _PLAIN_DATA:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is no plain data")
        return lambda *args: dict(*args[-1:])
