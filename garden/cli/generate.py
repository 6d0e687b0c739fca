"""garden generate: continues prompts with a language model, or writes a text from a text.

example: garden generate --preset=gpt2_base_en --prompt="The best thing about a garden is" --max_length=40
example: garden generate --preset=runs/stories --input=prompts.csv --output=stories.csv --sampler=top_p --p=0.9 --seed=1
One prompt is printed as it is written, token by token, where the sampler chooses one token at a time."""

import sys

from absl import flags

from .answers import answer_table, check_name, read_input
from .language_models import load
from .options import add_backend, add_required

# Each sampler of KerasHub, and the flags that are its arguments.
SAMPLERS = {
    "greedy": ("GreedySampler", ()),
    "beam": ("BeamSampler", ("num_beams",)),
    "top_k": ("TopKSampler", ("k", "seed")),
    "top_p": ("TopPSampler", ("p", "seed")),
    "random": ("RandomSampler", ("seed",)),
    "contrastive": ("ContrastiveSampler", ("k", "alpha", "seed")),
}


def define_flags(values: flags.FlagValues) -> None:
    """Which model on what, and how tokens are chosen."""
    add = {"flag_values": values}
    add_required(values, "preset", "preset or run folder of a language model")
    flags.DEFINE_string("prompt", None, "one prompt", **add)
    flags.DEFINE_string("input", None, "prompts: .csv, .tsv, .jsonl, or - for standard input, one a line", **add)
    flags.DEFINE_string("text_column", "text", "column with the prompts", **add)
    flags.DEFINE_string("output", None, "where to: .csv or .jsonl; else CSV on standard output", **add)
    flags.DEFINE_integer("max_length", None, "tokens of prompt and continuation; else as many as fit", 1, **add)
    flags.DEFINE_integer("batch_size", 8, "prompts per step", lower_bound=1, **add)
    flags.DEFINE_enum("sampler", "top_k", list(SAMPLERS), "how the next token is chosen", **add)
    flags.DEFINE_float("temperature", 1.0, "divides the logits; below 1 is bolder", lower_bound=1e-6, **add)
    flags.DEFINE_integer("k", 5, "top_k, contrastive: candidates", lower_bound=1, **add)
    flags.DEFINE_float("p", 0.9, "top_p: the probability that the candidates cover", 0.0, 1.0, **add)
    flags.DEFINE_float("alpha", 0.6, "contrastive: weight of the penalty for repetition", 0.0, 1.0, **add)
    flags.DEFINE_integer("num_beams", 5, "beam: rows kept", lower_bound=1, **add)
    flags.DEFINE_integer("seed", None, "makes the choice repeatable", **add)
    add_backend(values)


def run(options: flags.FlagValues) -> None:
    """Continues one prompt or a file of them."""
    if (options.prompt is None) == (options.input is None):
        raise ValueError("give either --prompt or --input")
    if options.output:
        check_name(options.output)
    table = read_input(options) if options.input else None
    model = load(options, ("CausalLM", "Seq2SeqLM"))
    model.compile(sampler=sampler(options))
    if table is None:
        return _write(model, options)
    prompts = table.texts(options.text_column)
    batches = [prompts[i : i + options.batch_size] for i in range(0, len(prompts), options.batch_size)]

    def answers():
        return ((text,) for batch in batches for text in model.generate(batch, max_length=options.max_length))

    answer_table(table, ["generated_text"], answers, options.output)


def sampler(options: flags.FlagValues):
    """The sampler that the flags describe."""
    import keras_hub

    name, settings = SAMPLERS[options.sampler]
    settings = {flag: getattr(options, flag) for flag in settings}
    return getattr(keras_hub.samplers, name)(temperature=options.temperature, **settings)


def _write(model, options):
    if options.sampler in ("beam", "contrastive"):
        print(model.generate(options.prompt, max_length=options.max_length))
        return
    if not hasattr(model.backbone, "encode"):  # what is written continues the prompt
        sys.stdout.write(options.prompt)
    for piece in model.stream(options.prompt, options.max_length):
        sys.stdout.write(piece)
        sys.stdout.flush()
    print()
