"""garden convert: a checkpoint in any published format becomes a garden preset or a Hugging Face folder.

example: garden convert --source=uncased_L-12_H-768_A-12.zip --target=bert_base --format=garden"""

from absl import flags

from . import backend
from .options import add_required


def define_flags(values: flags.FlagValues) -> None:
    """Where from, where to, and as what."""
    add_required(values, "source", "a built-in name, a handle (hf://, kaggle://), a URL of an archive, or a folder")
    add_required(values, "target", "the folder to write; it must not exist")
    flags.DEFINE_enum("format", "garden", ["garden", "huggingface"], "what to write", flag_values=values)
    flags.DEFINE_enum("backend", None, backend.BACKENDS, "where Keras computes", flag_values=values)


def run(options: flags.FlagValues) -> None:
    """Converts and prints which tensors were used, missing or fresh."""
    backend.choose(options.backend)
    backend.import_keras()
    from garden import presets

    print(presets.convert(options.source, options.target, format=options.format))
