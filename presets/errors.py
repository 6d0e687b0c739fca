"""The one exception that a checkpoint garden cannot read or explain raises."""


class CheckpointError(ValueError):
    """A checkpoint, archive or preset that is damaged, hostile, incomplete or not explained by a weight-name table.

    Its message is one sentence that names the file or the tensor and, where there is one, the way out.

    >>> from garden.presets import CheckpointError
    >>> issubclass(CheckpointError, ValueError)
    True
    """
