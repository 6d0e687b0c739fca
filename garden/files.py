"""Folders that are written whole or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp


@contextmanager
def whole_folder(folder: str | os.PathLike) -> Iterator[Path]:
    """A draft folder whose files move into `folder` when the block succeeds; when it fails nothing is left of it.

    Moving is renaming, which needs no space: a disk that fills up while the draft is written leaves `folder` as it was.
    Files already in `folder` stay unless the draft has one of their name.

    >>> import tempfile
    >>> from garden.files import whole_folder
    >>> target = Path(tempfile.mkdtemp()) / "made"
    >>> with whole_folder(target) as draft:
    ...     _ = (draft / "a.txt").write_text("a")
    >>> [file.name for file in target.iterdir()]
    ['a.txt']
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file, so nothing can be saved under that name as a folder.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield draft
        for file in sorted(path for path in draft.rglob("*") if path.is_file()):
            target = folder / file.relative_to(draft)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(file, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
