"""What `garden generate` and `garden prompt` share: finding the task under which a language model is asked."""

from pathlib import Path

from absl import flags

from . import backend


def load(options: flags.FlagValues, tasks: tuple[str, ...]):
    """The model that --preset names, as the task it was saved as or the first of `tasks` that its family has.

    Args:
        options: with `preset`, `backend` and `dtype`.
        tasks: names of tasks that will do.

    Raises:
        ValueError: the family has none of them.
    """
    backend.choose(options.backend)
    backend.import_keras()
    import garden

    from .finetune import dtype

    inside = Path(options.preset) / "preset"
    preset = str(inside) if inside.is_dir() else options.preset
    saved = garden.presets.published_task(preset)[0]
    for name in (saved,) if saved in tasks else tasks:
        try:
            return getattr(garden.tasks, name).from_preset(preset, **dtype(options))
        except TypeError as error:  # how a task says that a family does not have it
            reason = error
    raise ValueError(f"{options.preset} is no language model for this: {reason}")
