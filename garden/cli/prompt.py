"""garden prompt: classifies texts without training, by asking a language model which label word is most probable.

example: garden prompt --preset=gpt2_base_en --template="Review: {text} Sentiment:" --label=pos=" good"
    --label=neg=" bad" --text="What a lovely film."
example: garden prompt --preset=bert_base_en_uncased --template="{text} It was {mask}." --label=pos=good --label=neg=bad
    --input=reviews.csv --output=labelled.csv --demonstrations=few.csv --shots=2 --label_column=label
With --label_column the share of right answers is printed too."""

import sys

import numpy as np
from absl import flags

from .answers import answer_table, check_name, read_input
from .data import read_table
from .language_models import load
from .options import add_backend, add_columns, add_required


def define_flags(values: flags.FlagValues) -> None:
    """Which model, how it is asked, and about what."""
    add = {"flag_values": values}
    add_required(values, "preset", "preset or run folder of a language model: causal, masked or text to text")
    add_required(values, "template", "the prompt, with {text} or {first} and {second}, and {mask} for a masked model")
    flags.DEFINE_multi_string("label", [], "NAME=WORDS of a class, with the blank in front; give it for each", **add)
    flags.DEFINE_string("instruction", "", "what stands before everything, once", **add)
    flags.DEFINE_string("separator", "\n\n", "what stands between the demonstrations", **add)
    flags.DEFINE_string("demonstrations", None, "table of examples with their classes, to show some", **add)
    flags.DEFINE_integer("shots", 1, "demonstrations of each class", lower_bound=1, **add)
    flags.DEFINE_integer("seed", 0, "which demonstrations, and in which order", **add)
    flags.DEFINE_enum("calibration", None, ["content_free"], "how probabilities are calibrated", **add)
    flags.DEFINE_string("answer_context", None, "a text behind which a label's probability is divided out", **add)
    flags.DEFINE_string("text", None, "one text to classify", **add)
    flags.DEFINE_string("pair", None, "its second text", **add)
    flags.DEFINE_string("input", None, "texts: .csv, .tsv, .jsonl, or - for standard input, one a line", **add)
    flags.DEFINE_string("output", None, "where to: .csv or .jsonl; else CSV on standard output", **add)
    flags.DEFINE_string(
        "label_column", None, "column with the true class names, of --input and --demonstrations", **add
    )
    flags.DEFINE_integer("batch_size", 16, "rows per step", lower_bound=1, **add)
    add_columns(values, labels=False)
    add_backend(values)


def run(options: flags.FlagValues) -> None:
    """Classifies one text or a file."""
    if (options.text is None) == (options.input is None):
        raise ValueError("give either --text or --input")
    if options.output:
        check_name(options.output)
    labels = words(options.label)
    table = read_input(options) if options.input else None
    truth = table.labels(options.label_column) if table and options.label_column else None
    shots = demonstrations(options, labels)
    import garden

    model = load(options, ("CausalLM", "Seq2SeqLM", "MaskedLM"))
    template = garden.tasks.PromptTemplate(options.template, options.instruction, options.separator)
    settings = {"calibration": options.calibration, "answer_context": options.answer_context}
    classifier = garden.tasks.PromptClassifier(model, template, labels, shots, **settings)
    if table is None:
        return _print_one(classifier, options)
    found, probabilities = classifier.predict_labels(_examples(table, options), options.batch_size)
    added = ["predicted_label", *(f"probability_{name}" for name in labels)]
    columns = np.round(probabilities.astype("float64"), 6).T.tolist()
    answer_table(table, added, lambda: zip(found, *columns, strict=True), options.output)
    if truth:
        accuracy = np.mean(np.array(found) == np.array(truth))
        # Where the table goes to standard output, nothing else may.
        print(f"accuracy {accuracy:.4f} of {len(truth):,} texts", file=sys.stdout if options.output else sys.stderr)


def words(given: list[str]) -> dict[str, str]:
    """NAME=WORDS of each --label, as a dictionary.

    >>> from garden.cli.prompt import words
    >>> words(["pos= good", "neg= bad"])
    {'pos': ' good', 'neg': ' bad'}
    """
    wrong = next((label for label in given if "=" not in label), None)
    if wrong is not None:
        raise ValueError(f"--label={wrong} is not NAME=WORDS")
    labels = dict(label.split("=", 1) for label in given)
    if len(labels) < 2 or len(labels) < len(given):
        raise ValueError(
            f"give --label=NAME=WORDS for at least two classes, each once; got {', '.join(given) or 'none'}"
        )
    return labels


def demonstrations(options: flags.FlagValues, labels: dict[str, str]) -> list[tuple]:
    """--shots examples of each class from --demonstrations, in random order."""
    if options.demonstrations is None:
        return []
    table = read_table(options.demonstrations)
    truth = np.array(table.labels(options.label_column or "label"))
    rng, chosen = np.random.default_rng(options.seed), []
    for name in labels:
        rows = np.flatnonzero(truth == name)
        if len(rows) < options.shots:
            raise ValueError(f"{table.path} has {len(rows)} examples of {name!r}, fewer than --shots={options.shots}")
        chosen += rng.choice(rows, options.shots, replace=False).tolist()
    examples = _examples(table, options)
    return [(examples[i], str(truth[i])) for i in rng.permutation(chosen)]


def _examples(table, options):
    texts = table.texts(options.text_column)
    return texts if options.pair_column is None else list(zip(texts, table.texts(options.pair_column), strict=True))


def _print_one(classifier, options):
    example = options.text if options.pair is None else (options.text, options.pair)
    _, probabilities = classifier.predict_labels([example])
    for probability, name in sorted(zip(probabilities[0].tolist(), classifier.labels, strict=True), reverse=True):
        print(f"{probability:.4f}  {name}")
