"""What `--task` may be: one file a job, which reads its files, draws its batches, measures and shows its answers."""

import importlib

from .job import Job

JOBS = {
    "classification": "Classification",
    "regression": "Regression",
    "tagging": "Tagging",
    "qa": "QuestionAnswering",
    "multiple_choice": "MultipleChoice",
}


def find_job(name: str) -> Job:
    """The job of a `--task`.

    >>> from garden.cli.jobs import find_job
    >>> find_job("qa").task
    'QuestionAnswering'
    """
    return getattr(importlib.import_module(f"{__name__}.{name}"), JOBS[name])()


def job_of(preset) -> Job:
    """The job whose task a preset holds; classification where it does not say."""
    from garden.presets import published_task

    jobs = [find_job(name) for name in JOBS]
    task, config = published_task(preset)
    held = task or "TextClassifier"
    found = next((job for job in jobs if job.task == held and job.fits(config)), None)
    if found is None:
        known = ", ".join(dict.fromkeys(job.task for job in jobs))
        raise ValueError(f"{preset} holds a {held}, with which this command can do nothing: it takes {known}")
    return found
