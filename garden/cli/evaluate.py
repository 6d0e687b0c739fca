"""garden evaluate: measures a trained model on a file of its kind.

example: garden evaluate --preset=runs/reviews --input=test.csv --output=runs/reviews/test"""

from pathlib import Path

from absl import flags

from . import backend
from .options import add_answering, add_columns, add_required
from .run_folder import write_json


def define_flags(values: flags.FlagValues) -> None:
    """Which model on which examples."""
    add_required(values, "preset", "run folder or preset of a trained model")
    add_required(values, "input", "what to measure on, in the layout that garden finetune reads")
    flags.DEFINE_string("output", None, "folder for metrics.json and pictures", flag_values=values)
    add_columns(values)
    add_answering(values)


def run(options: flags.FlagValues) -> None:
    """Prints the figures of the model's task; writes them where --output says."""
    from .predict import find, load

    backend.choose(options.backend)
    folder = _new_folder(options.output) if options.output else None
    job = find(options)
    examples = job.read(options.input, options)
    model = load(job, options)
    figures = job.figures(model, examples, options)
    print(job.as_text(figures))
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        job.draw(figures, folder)
        write_json(folder / "metrics.json", figures)


def _new_folder(path: str) -> Path:
    if (Path(path) / "metrics.json").exists():
        raise ValueError(f"{path} holds a metrics.json already: choose another --output")
    return Path(path)
