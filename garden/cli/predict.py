"""garden predict: answers with a trained model: classes, numbers, entities, answers, choices.

example: garden predict --preset=runs/reviews --text="A lovely film"
example: garden predict --preset=runs/reviews --input=new.csv --output=labelled.csv
example: garden predict --preset=runs/squad --text="Who wrote it?" --pair="It was written by Ada Lovelace."
A table comes back with further columns; a JSON file of questions becomes a folder with predictions.json, and questions
with choices a table. The task is that of the preset."""

from pathlib import Path

from absl import flags

from . import backend
from .answers import check_name
from .jobs import Job, job_of
from .options import add_answering, add_columns, add_required


def define_flags(values: flags.FlagValues) -> None:
    """Which model on what, and where to."""
    add = {"flag_values": values}
    add_required(values, "preset", "run folder or preset of a trained model")
    flags.DEFINE_string("text", None, "one text, or question, to answer", **add)
    flags.DEFINE_string("pair", None, "its second text; for a question the passage", **add)
    flags.DEFINE_multi_string("choice", None, "multiple_choice: one of its choices; give it for each", **add)
    flags.DEFINE_string(
        "input", None, "what to answer: .csv, .tsv, .jsonl, - for standard input, a text a line, or a task's own", **add
    )
    flags.DEFINE_string(
        "output", None, "where to: .csv or .jsonl, for .json a folder; else CSV on standard output", **add
    )
    add_columns(values, labels=False)
    add_answering(values)


def run(options: flags.FlagValues) -> None:
    """Answers one text or a file."""
    if (options.text is None) == (options.input is None):
        raise ValueError("give either --text or --input")
    if options.pair is not None and options.text is None:
        raise ValueError("--pair goes with --text; the second texts of a table are named by --pair_column")
    in_json = options.input is not None and Path(options.input).suffix.lower() == ".json"
    if options.output and not in_json:  # to a JSON file some jobs answer with a folder
        check_name(options.output)
    backend.choose(options.backend)
    job = find(options)
    if options.input:
        job.answer_file(load(job, options), options)
    else:
        job.answer_one(load(job, options), options)


def find(options: flags.FlagValues) -> Job:
    """The job of the model that --preset names."""
    backend.import_keras()
    return job_of(_preset(options))


def load(job: Job, options: flags.FlagValues):
    """The model of a run folder or preset."""
    import garden

    from .finetune import dtype

    return getattr(garden.tasks, job.task).from_preset(_preset(options), **dtype(options))


def _preset(options: flags.FlagValues) -> str:
    inside = Path(options.preset) / "preset"
    return str(inside) if inside.is_dir() else options.preset
