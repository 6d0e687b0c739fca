"""Repositories of the two model hubs, fetched by the hubs' own clients into their own caches."""

from pathlib import Path

_SMALL = ["*.json", "*.txt", "*.model"]
_WEIGHTS = (["model*.safetensors", "*.weights.h5"], ["pytorch_model*.bin"])


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
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    name, _, revision = handle.partition("@")
    for weights in _WEIGHTS:
        try:
            folder = Path(snapshot_download(name, revision=revision or None, allow_patterns=_SMALL + weights))
        except (RepositoryNotFoundError, RevisionNotFoundError) as error:
            way_out = "check its name, and set HF_TOKEN where it is private or gated"
            raise FileNotFoundError(f"hf://{handle} does not exist or is closed to you: {way_out}") from error
        except Exception as error:  # the client lets errors of its HTTP library through
            raise FileNotFoundError(f"hf://{handle} cannot be fetched: {_first_line(error)}") from error
        if any(file for pattern in weights for file in folder.glob(pattern)):
            break
    return folder


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
    except Exception as error:  # the client raises ten kinds, without a common base
        raise FileNotFoundError(f"kaggle://{handle} cannot be fetched: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
