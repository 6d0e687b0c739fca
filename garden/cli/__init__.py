"""The command line: `garden COMMAND --flags`, one file per command.

A command's file has `define_flags(values)` and `run(options)`; it imports Keras only inside `run`, after the backend is
chosen, so that a wrong flag or a wrong column costs no seconds.
"""

import importlib
import os
import sys
from types import ModuleType

from . import allocator, options

COMMANDS = {
    "presets": "list the built-in presets",
    "convert": "turn a checkpoint into a garden preset or a Hugging Face folder",
    "finetune": "train on a file: classes, numbers, tags, answers or choices",
    "predict": "answer with a trained model",
    "evaluate": "measure a trained model on a file",
    "generate": "continue prompts with a language model",
    "prompt": "classify without training, by prompting a language model",
    "quickstart": "fine-tune a small BERT on film reviews, from nothing to a trained model",
}
_HELP = ("--help", "-h", "-help")


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns the process's exit code: 0 done, 1 a one-line error was printed, 130 interrupted.

    >>> from garden.cli import main
    >>> main(["presets", "--preset", "bert_tiny_en_uncased"]) == 0  # doctest: +ELLIPSIS
    name ...
    True
    """
    if argv is None:
        allocator.use_large_pages()
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        _dispatch(arguments)
    except KeyboardInterrupt:
        print("garden: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `garden presets | head`: the reader left, and Python's own flush at exit would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if "--debug" in arguments:
            raise
        print(f"garden: error: {_one_line(error)}", file=sys.stderr)
        return 1
    return 0


def _dispatch(arguments: list[str]) -> None:
    name, *rest = arguments or ["help"]
    if name in ("help", *_HELP):
        print(_help_of(_command(rest[0])) if rest else _help())
    elif name == "--version":
        print(importlib.import_module("garden").__version__)
    elif set(rest) & set(_HELP):
        print(_help_of(_command(name)))
    else:
        command = _command(name)
        command.run(options.parse(command.define_flags, rest))


def _command(name: str) -> ModuleType:
    if name not in COMMANDS:
        raise ValueError(f"there is no command {name!r}; the commands are {', '.join(COMMANDS)}")
    return importlib.import_module(f"{__name__}.{name}")


def _help() -> str:
    lines = [f"  {name:<12}{meaning}" for name, meaning in COMMANDS.items()]
    return "\n".join(["usage: garden COMMAND [--flags]", "", *lines, "", "garden COMMAND --help shows its flags."])


def _help_of(command: ModuleType) -> str:
    return f"{command.__doc__.strip()}\n\n{options.describe(command.define_flags)}"


def _one_line(error: Exception) -> str:
    """The message without line breaks; an unexpected kind of error also says its name and how to see where it arose."""
    if isinstance(error, OSError) and error.strerror:
        message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        message = " ".join(str(part) for part in error.args) or type(error).__name__
    if not isinstance(error, (ValueError, OSError, KeyError, ImportError, options.Error)):
        message = f"{type(error).__name__}: {message} (--debug shows where)"
    return " ".join(message.split())
