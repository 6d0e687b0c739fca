"""Chooses Keras's backend, which must happen before the first import of Keras, and imports it quietly."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from types import ModuleType

BACKENDS = ("jax", "tensorflow", "torch")


def choose(name: str | None = None) -> str:
    """Fixes the backend of this process and returns its name: `name`, else KERAS_BACKEND, else jax if it is installed.

    Raises ValueError for a backend that is unknown, not installed, or not the one that Keras already runs on.
    """
    running = sys.modules["keras"].config.backend() if "keras" in sys.modules else None
    chosen = name or running or os.environ.get("KERAS_BACKEND") or _default()
    if chosen not in BACKENDS:
        raise ValueError(f"KERAS_BACKEND={chosen} is not a backend of garden; choose one of {', '.join(BACKENDS)}")
    if running and chosen != running:
        raise ValueError(f"--backend={chosen} comes too late: Keras runs on {running} in this process")
    if importlib.util.find_spec(chosen) is None:
        raise ValueError(f"the backend {chosen} is not installed; run pip install {chosen}")
    os.environ["KERAS_BACKEND"] = chosen
    _keep_compiled_programs()
    return chosen


def import_keras() -> ModuleType:
    """Keras, imported without the lines about processors and CUDA that say nothing about the user's task."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _silent_stderr():  # TensorFlow 2.21 prints some before it reads that variable
        import tensorflow  # noqa: F401  KerasHub's pipelines need it on every backend
    import keras
    from absl import logging

    logging.set_verbosity(logging.ERROR)
    return keras


def versions(backend: str) -> dict[str, str]:
    """The versions that a run depends on, by distribution name."""
    import garden

    names = dict.fromkeys(["keras", "keras-hub", "tensorflow", backend, "numpy"])
    return {"python": sys.version.split()[0], "garden": garden.__version__, **{name: version(name) for name in names}}


def _default() -> str:
    return "jax" if importlib.util.find_spec("jax") else "tensorflow"


def _keep_compiled_programs() -> None:
    """JAX keeps compiled programs on disk, so that a second run starts in seconds; the user's own setting wins."""
    from garden.presets.download import garden_cache

    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(garden_cache() / "jax"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Also for what C++ code writes, past Python's sys.stderr."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
