"""JAX compiles what many tests build alike once per run, and not once per test."""

import os

if os.environ.get("KERAS_BACKEND") == "jax":
    import tempfile

    import jax

    jax.config.update("jax_compilation_cache_dir", tempfile.mkdtemp(prefix="garden-tests-jax-"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
