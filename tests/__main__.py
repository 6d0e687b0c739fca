"""Runs the test suite once per backend: `python -m tests [pytest arguments]`.

A backend is chosen when Keras is imported, so each needs its own processes: two, since most of the time is spent on
building and compiling small models, one after the other.
"""

import os
import subprocess
import sys
from pathlib import Path

# Models of a few thousand weights: threads of two processes would only wait for each other.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
BACKENDS = ("jax", "tensorflow", "torch")

if __name__ == "__main__":
    root, failed = Path(__file__).parent.parent, []
    for backend in BACKENDS:
        print(f"== {backend}", flush=True)
        environment = {**os.environ, **ONE_THREAD, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, "-m", "pytest", "--numprocesses=2", "--dist=worksteal", *sys.argv[1:]]
        if subprocess.run(command, cwd=root, env=environment).returncode:
            failed.append(backend)
    sys.exit(f"failed on {', '.join(failed)}" if failed else 0)
