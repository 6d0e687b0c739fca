"""Published checkpoints: their table, where they are, how to read and to write them.

The face is lazy: listing the presets imports neither Keras nor a backend.
"""

if __name__ != "garden.presets":
    raise ImportError(f"import garden.presets, not {__name__}: a second copy would register every Keras class twice")

import importlib

_FACE = {
    "CheckpointError": "errors",
    "Preset": "table",
    "Report": "weight_names",
    "convert": "conversion",
    "export_to_transformers": "conversion",
    "find": "table",
    "load_backbone": "load",
    "load_task": "load",
    "load_tokenizer": "load",
    "locate": "location",
    "names": "table",
    "presets": "table",
    "published_task": "conversion",
}

__all__ = [*_FACE]


def __getattr__(name: str):
    if name not in _FACE:
        raise AttributeError(f"garden.presets has no {name!r}; it has {', '.join(_FACE)}")
    value = getattr(importlib.import_module(f".{_FACE[name]}", __name__), name)
    globals()[name] = value  # a name wins over a submodule of that name
    return value


def __dir__() -> list[str]:
    return sorted(_FACE)
