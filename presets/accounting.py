"""Fills a model from a checkpoint and explains what is left over on both sides, or refuses."""

import re

import numpy as np

from garden.layers import truncated_normal

from . import weight_names
from .checkpoint import Checkpoint
from .errors import CheckpointError


def fill(model, checkpoint: Checkpoint, task: str | None = None, untrained=()) -> weight_names.Report:
    """Loads every weight of a backbone or task.

    Args:
        model: a backbone, or a task whose `backbone` it is.
        checkpoint: where from.
        task: name of the task in the family's table of heads, for its rows.
        untrained: names of tasks whose head this checkpoint holds untrained; it is left, and ours stays fresh.

    Returns:
        The report.

    Raises:
        CheckpointError: a weight of the backbone has no tensor, a tensor no explanation, or a shape does not fit.

    ```python
    checkpoint = read_checkpoint(locate("bert-base-uncased"))
    report = fill(garden.BertBackbone(**checkpoint.arguments), checkpoint)
    ```
    """
    family, tensors = checkpoint.family, checkpoint.tensors
    usable = task not in untrained and _head_fits(model, checkpoint, task)
    report = weight_names.load(model.weights, tensors, checkpoint.rows(task if usable else None), checkpoint.dialect)
    own = {variable.path for variable in getattr(model, "backbone", model).weights}
    missing = [path for path in report.fresh if path in own and not path.startswith(family.optional)]
    if missing:
        raise CheckpointError(
            f"{checkpoint.path} is no whole {family.backbone}: it has no tensor for {_some(missing)}."
        )
    for variable in model.weights:
        if variable.path in report.fresh and variable.path.endswith(("kernel", "embeddings")):
            variable.assign(truncated_normal()(variable.shape))  # it was made in `weights_to_be_loaded`
    left = tensors.keys() - set(report.loaded.values())
    report.ignored = {name: _reason(name, checkpoint) for name in sorted(left)}
    unexplained = [name for name, reason in report.ignored.items() if not reason]
    if unexplained:
        raise CheckpointError(
            f"{checkpoint.path} holds tensors that a {family.backbone} does not explain: {_some(unexplained)}."
        )
    return report


def _head_fits(model, checkpoint, task):
    """False when the checkpoint has the task's head for another number of classes."""
    rows = [row for row in checkpoint.rows(task) if row not in checkpoint.rows()]
    for variable in model.weights:
        for name in weight_names.foreign_names(variable.path, rows, checkpoint.dialect):
            if name in checkpoint.tensors and np.prod(checkpoint.tensors.shape(name)) != np.prod(variable.shape):
                return False
    return True


def _reason(name, checkpoint):
    """Why a tensor that nothing used may be there; empty when there is no reason."""
    family, tensors, bare = checkpoint.family, checkpoint.tensors, name.removeprefix(checkpoint.prefix)
    if bare in family.tied:
        twin = next(
            scope + family.tied[bare] for scope in (checkpoint.prefix, "") if scope + family.tied[bare] in tensors
        )
        return f"a copy of {twin}" if np.array_equal(tensors[twin], tensors[name]) else ""
    for pattern, reason in family.ignored.items():
        if re.search(pattern, bare):
            return reason
    # Where the backbone has a scope of its own, what stands beside it are heads.
    return "outside the backbone's scope" if checkpoint.prefix and bare == name else ""


def _some(paths, shown=6):
    more = f" and {len(paths) - shown} more" if len(paths) > shown else ""
    return ", ".join(paths[:shown]) + more
