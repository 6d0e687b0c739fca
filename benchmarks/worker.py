"""One worker process: `python -m benchmarks.worker REQUEST`, a JSON object in, one JSON object a sample out."""

import json
import os
import sys
from dataclasses import asdict
from importlib import import_module

from .plan import JOBS, PREPARATIONS
from .records import Request


def main() -> None:
    request = json.loads(sys.argv[1])
    request = Request(**{**request, "peers": tuple(request["peers"])})
    os.environ["KERAS_BACKEND"] = request.backend
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    results, sys.stdout = sys.stdout, sys.stderr  # the libraries print what they like
    module, function = {**JOBS, **PREPARATIONS}[request.job].function.split(":")
    for sample in getattr(import_module(f"benchmarks.{module}"), function)(request):
        print(json.dumps(asdict(sample)), file=results, flush=True)


if __name__ == "__main__":
    main()
