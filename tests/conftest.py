"""JAX compiles what many tests build alike once per run, and not once per test; and it does so in a hurry."""

import os

if os.environ.get("KERAS_BACKEND") == "jax":
    import tempfile

    # Models that run once are not worth optimising: a third of the time goes.
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")

    import jax

    jax.config.update("jax_compilation_cache_dir", tempfile.mkdtemp(prefix="garden-tests-jax-"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
