"""Repositories of the model hubs, fetched by the hubs' own clients into their own caches, and PaddleNLP's storage.

The clients are imported where they are used: most presets need none.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

from .archive import staged
from .download import download, garden_cache, short_hash

PADDLE_NLP = "https://bj.bcebos.com/paddlenlp/models/transformers"

_SMALL = ["*.json", "*.txt", "*.model", "dict.wordseg.pickle"]
_WEIGHTS = ["model*.safetensors", "*.weights.h5"]
_PICKLES = ["pytorch_model*.bin"]


def hugging_face(handle: str) -> Path:
    """Folder with the files of a Hugging Face repository that garden can use.

    PyTorch pickles are fetched only where there are no safetensors, files for other frameworks never. A private or
    gated repository needs the client's own settings, as does a mirror (`HF_TOKEN`, `HF_ENDPOINT`, `HF_HOME`).

    Args:
        handle: `ORG/NAME`, with `@REVISION` where one commit, tag or branch is meant.

    Raises:
        FileNotFoundError: the repository does not exist, is closed to you or cannot be reached, and is not cached.

    ```python
    from garden.presets.hubs import hugging_face
    folder = hugging_face("hfl/rbt3")
    ```
    """
    folder = _snapshot(handle, _SMALL + _WEIGHTS)
    found = any(file for pattern in _WEIGHTS for file in folder.glob(pattern))
    return folder if found else _snapshot(handle, _SMALL + _PICKLES)


def _snapshot(handle: str, patterns: list[str]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    name, _, revision = handle.partition("@")
    try:
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=patterns))
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        way_out = "check its name, and set HF_TOKEN where it is private or gated"
        raise FileNotFoundError(f"hf://{handle} does not exist or is closed to you: {way_out}") from error
    except Exception as error:  # errors of the HTTP library come through, and those have no common base
        raise FileNotFoundError(f"hf://{handle} cannot be fetched: {_first_line(error)}") from error


def kaggle(handle: str) -> Path:
    """Folder with the files of a Kaggle model.

    Args:
        handle: `ORG/MODEL/FRAMEWORK/VARIANT`, with `/VERSION` where not the newest is meant.

    Raises:
        FileNotFoundError: the model does not exist, is closed to you or cannot be reached, and is not cached.

    ```python
    from garden.presets.hubs import kaggle
    folder = kaggle("keras/bert/keras/bert_tiny_en_uncased")
    ```
    """
    import kagglehub

    try:
        return Path(kagglehub.model_download(handle))
    except Exception as error:  # the client's errors have no common base
        raise FileNotFoundError(f"kaggle://{handle} cannot be fetched: {_first_line(error)}") from error


def paddle_nlp(handle: str, config: Mapping) -> Path:
    """Folder with a model of PaddleNLP, which stores weights and vocabularies as single files.

    Args:
        handle: paths in its storage, with commas between them: of the weights, of the vocabulary, and of what else the
            tokenizer needs.
        config: the configuration that goes with them; PaddleNLP has it in its code.

    Raises:
        FileNotFoundError: the storage does not have a file, or cannot be reached.

    ```python
    from garden.presets.hubs import paddle_nlp
    folder = paddle_nlp("ernie_3.0/ernie_3.0_nano_zh.pdparams,ernie_3.0/ernie_3.0_nano_zh_vocab.txt", config)
    ```
    """
    text = json.dumps(config, indent=2)
    folder = garden_cache() / "paddle" / short_hash(handle, text)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.is_dir():
            paths = handle.split(",")
            names = ["model_state.pdparams", "vocab.txt", *(Path(path).name for path in paths[2:])]
            files = [download(f"{PADDLE_NLP}/{path}") for path in paths]
            with staged(folder) as stage:
                for file, name in zip(files, names, strict=False):
                    os.replace(file, stage / name)
                (stage / "config.json").write_text(text, "utf-8")
    return folder


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
