"""garden finetune: trains on a file and keeps all of it in one folder.

example: garden finetune --preset=all_minilm_l6_v2_en --train=reviews.csv --output=runs/reviews
example: garden finetune --task=tagging --preset=bert_base_zh --train=train.conll --output=runs/names
The folder then holds preset/ (load it with the from_preset of its task), metrics.json, config.json and pictures. The
same command again, after a kill, goes on where the last backup was made."""

import hashlib
import time
import warnings
from pathlib import Path

from absl import flags

from . import backend, pictures
from .examples import Examples
from .jobs import JOBS, Job, find_job
from .options import add_backend, add_columns, add_required, add_training, as_dict
from .run_folder import RunFolder, open_run, replacing, require_space

RECIPE = ("epochs", "batch_size", "learning_rate", "warmup", "weight_decay", "seed", "backup_steps")
_NO_SETTING = ("output", "overwrite", "debug")


def define_flags(values: flags.FlagValues) -> None:
    """What to train on what, and how."""
    add = {"flag_values": values}
    add_required(values, "preset", "what to start from: a built-in name, a handle, a URL, or a folder")
    flags.DEFINE_enum("task", "classification", list(JOBS), "what to learn", **add)
    layouts = "; ".join(f"{name}: {find_job(name).files}" for name in JOBS)
    add_required(values, "train", f"what to train on. {layouts}")
    flags.DEFINE_string("validation", None, "the same to measure on; else a part of --train", **add)
    flags.DEFINE_float(
        "validation_split", None, "share of --train, of each class alike, to measure on; else 0.1", **add
    )
    add_required(values, "output", "folder of this run")
    add_columns(values)
    flags.DEFINE_bool("crf", False, "tagging: score whole sequences of labels", **add)
    flags.DEFINE_float("null_threshold", None, "qa: as in garden predict, for the figures", **add)
    add_training(values, epochs=3, batch_size=32, learning_rate=5e-5)
    add_backend(values)


def run(options: flags.FlagValues) -> None:
    """Trains, measures and writes the run folder."""
    chosen = backend.choose(options.backend)
    job = find_job(options.task)
    for name in ("crf", "null_threshold"):
        if options[name].present and name not in job.flags:
            raise ValueError(f"--{name} is no flag of --task={options.task}: leave it out")
    training, validation = _examples(job, options)
    data = {f"{name}_sha256": _sha256(options[name].value) for name in ("train", "validation")}
    folder = open_run(options.output, config(options, chosen, data), options.overwrite)
    finetune(job, options, training, validation, folder)
    drawn = ", ".join([folder.learning_curve.name, *job.pictures])
    print(f"\nwrote {folder.path}: preset/, metrics.json, {drawn}")


def config(options: flags.FlagValues, chosen: str, data: dict) -> dict:
    """What config.json records; a run goes on only with the same "flags" and "data"."""
    settings = {**as_dict(options, without=_NO_SETTING), "backend": chosen}
    return {"flags": settings, "data": data, "versions": backend.versions(chosen), "output": options.output}


def finetune(job: Job, options: flags.FlagValues, training: Examples, validation: Examples, run: RunFolder) -> tuple:
    """From examples to a finished run folder; returns the model and what metrics.json holds.

    Args:
        job: what to learn.
        options: needs preset, sequence_length, dtype and the flags of `RECIPE`.
        training, validation: the examples.
        run: where to write.
    """
    keras = backend.import_keras()
    import garden

    from .training import Recipe, train

    began = time.perf_counter()
    recipe = Recipe(**{name: options[name].value for name in RECIPE})
    keras.utils.set_random_seed(recipe.seed)
    length = options.sequence_length or job.sequence_length
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Not in the checkpoint")  # a fresh head is what is to be trained
        model = getattr(garden.tasks, job.task).from_preset(
            options.preset,
            **{
                "sequence_length": length,
                "pad_to_multiple_of": max(8, length // 4),  # each width is a program to compile: four at most
                **job.arguments(training, options),
                **dtype(options),
            },
        )
    print(job.about(training, validation), flush=True)
    run.begin()
    epochs = train(job, model, training, validation, recipe, run)
    figures = job.figures(model, validation, options)
    print("\n" + job.as_text(figures))
    examples = {"training": len(training), "validation": len(validation)}
    return model, _write(job, run, model, epochs, {**figures, "examples": examples}, time.perf_counter() - began)


def dtype(options: flags.FlagValues) -> dict:
    """--dtype as an argument of `from_preset`; nothing where the flag was not given."""
    return {"dtype": options.dtype} if options.dtype else {}


def _write(job: Job, run: RunFolder, model, epochs: list[dict], figures: dict, seconds: float) -> dict:
    require_space(run.path, model.variables)
    with replacing(run.preset) as temporary:
        model.save_to_preset(str(temporary))
    pictures.learning_curve(epochs, run.learning_curve, job.metric, figures.get("majority_baseline"))
    job.draw(figures, run.path)
    result = {
        **figures,
        "epochs": epochs,
        "seconds": {"training": round(sum(row["seconds"] for row in epochs), 1), "this_process": round(seconds, 1)},
    }
    run.finish(result)
    return result


def _examples(job: Job, options: flags.FlagValues) -> tuple[Examples, Examples]:
    if options.validation and options.validation_split is not None:
        raise ValueError("--validation and --validation_split exclude each other: give the one or the other")
    fraction = 0.1 if options.validation_split is None else options.validation_split
    if not 0 < fraction < 1:
        raise ValueError(f"--validation_split={fraction} must lie between 0 and 1")
    training = job.read(options.train, options)
    job.check(training, training)
    if options.validation:
        validation = job.read(options.validation, options)
    else:
        kept, held_out = job.split(training, fraction, options.seed)
        training, validation = training.take(kept), training.take(held_out)
    job.check(training, validation)
    return training, validation


def _sha256(path: str | None) -> str | None:
    """Of a file, or of all files below a folder with their names."""
    if path is None:
        return None
    digest = hashlib.sha256()
    for file in sorted(Path(path).rglob("*")) if Path(path).is_dir() else [Path(path)]:
        if file.is_file():
            digest.update(str(file.relative_to(path)).encode() if Path(path).is_dir() else b"")
            digest.update(file.read_bytes())
    return digest.hexdigest()
