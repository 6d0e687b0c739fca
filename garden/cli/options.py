"""The flags of one command: absl flags in a set of their own, since one name may mean two things in two commands."""

import textwrap
from collections.abc import Callable

from absl import flags

from .backend import BACKENDS

Error = flags.Error
_INDENT = 24


def parse(define: Callable[[flags.FlagValues], None], arguments: list[str]) -> flags.FlagValues:
    """Reads `arguments` with the flags that `define` adds; raises `absl.flags.Error` or ValueError for a wrong one."""
    values = _flags_of(define)
    _, *stray = values(["garden", *arguments])
    if stray:
        raise ValueError(f"unexpected argument {stray[0]!r}: a value follows its flag, as in --text_column={stray[0]}")
    missing = [f"--{name}" for name in values if isinstance(values[name], _Required) and values[name].value is None]
    if missing:
        raise ValueError(f"{', '.join(missing)} must be given; --help shows the flags")
    return values


def describe(define: Callable[[flags.FlagValues], None]) -> str:
    """The help text: one entry per flag, with its meaning and default."""
    values = _flags_of(define)
    return "\n".join(_describe_one(values[name]) for name in values)


def as_dict(values: flags.FlagValues, without: tuple[str, ...] = ()) -> dict:
    """The value of every flag by name."""
    return {name: values[name].value for name in values if name not in without}


def add_required(values: flags.FlagValues, name: str, meaning: str) -> None:
    """A string flag that must be given."""
    flags.DEFINE_flag(_Required(flags.ArgumentParser(), flags.ArgumentSerializer(), name, None, meaning), values)


def add_columns(values: flags.FlagValues, labels: bool = True) -> None:
    """The flags that say which columns of a table hold what."""
    flags.DEFINE_string("text_column", "text", "column with the text", flag_values=values)
    flags.DEFINE_string("pair_column", None, "column with the second text of a pair", flag_values=values)
    if labels:
        flags.DEFINE_string("label_column", "label", "column with the class name", flag_values=values)


def add_answering(values: flags.FlagValues) -> None:
    """The flags of every command that answers with a trained model."""
    flags.DEFINE_integer("batch_size", 32, "examples per step", lower_bound=1, flag_values=values)
    flags.DEFINE_float(
        "null_threshold",
        None,
        "qa: how much better than the best text 'no answer' has to score to be given; else 0 where a file has "
        "questions without an answer, and otherwise there always is one",
        flag_values=values,
    )
    add_backend(values)


def add_backend(values: flags.FlagValues) -> None:
    """The flags of every command that computes: where and in which precision."""
    flags.DEFINE_enum(
        "backend", None, BACKENDS, "where Keras computes; else KERAS_BACKEND, else jax if installed", flag_values=values
    )
    flags.DEFINE_string(
        "dtype", None, "precision, as float32, mixed_bfloat16 or bfloat16; else Keras's default", flag_values=values
    )


def add_training(
    values: flags.FlagValues,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    length: int | None = None,
    overwrite: bool = False,
) -> None:
    """The flags of a training run, with the command's own defaults."""
    add = {"flag_values": values}
    flags.DEFINE_integer("epochs", epochs, "passes over the training texts", lower_bound=1, **add)
    flags.DEFINE_integer("batch_size", batch_size, "texts per step", lower_bound=1, **add)
    flags.DEFINE_float("learning_rate", learning_rate, "highest learning rate", lower_bound=0.0, **add)
    flags.DEFINE_float("warmup", 0.1, "share of the steps in which the rate rises to it", 0.0, 1.0, **add)
    flags.DEFINE_float("weight_decay", 0.01, "AdamW's decay of all but biases and norms", lower_bound=0.0, **add)
    meaning = "tokens per row; the rest is cut" + ("" if length else "; else 128, for questions and answers 384")
    flags.DEFINE_integer("sequence_length", length, meaning, lower_bound=3, **add)
    flags.DEFINE_integer("seed", 0, "of the split, the order, the new head and dropout", lower_bound=0, **add)
    flags.DEFINE_integer("backup_steps", 0, "also back up every so many steps; 0: every epoch", lower_bound=0, **add)
    flags.DEFINE_bool("overwrite", overwrite, "replace a finished run, or one with other settings, in --output", **add)


class _Required(flags.Flag):
    """A flag without which a command does not run."""


def _flags_of(define: Callable[[flags.FlagValues], None]) -> flags.FlagValues:
    values = flags.FlagValues()
    define(values)
    flags.DEFINE_bool("debug", False, "show the traceback of an error", flag_values=values)
    return values


def _describe_one(flag: flags.Flag) -> str:
    note = " (required)" if isinstance(flag, _Required) else f" (default: {flag.default})"
    body = textwrap.wrap(flag.help + ("" if note.endswith(("None)", "False)")) else note), width=100 - _INDENT)
    lines = [f"  --{flag.name:<{_INDENT - 4}}{body[0]}", *(" " * _INDENT + line for line in body[1:])]
    return "\n".join(lines)
