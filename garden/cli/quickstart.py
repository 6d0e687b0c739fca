"""garden quickstart: fine-tunes a small BERT to tell whether a sentence likes or dislikes a film.

The model is all_minilm_l6_v2_en (6 layers, 22 million weights). The 10,605 sentences of film reviews, each rated by
people from -4 to 4, come with the package vaderSentiment (Hutto & Gilbert, ICWSM 2014): the label is the rating's sign,
2,000 sentences are held out."""

import io
import tarfile

import numpy as np
from absl import flags

from . import backend
from .examples import Examples
from .finetune import config, finetune
from .jobs.classification import Classification
from .options import add_backend, add_training
from .run_folder import open_run

_PACKAGE = "vaderSentiment==3.3.2"
_SHA256 = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
_MEMBERS = (
    "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz",
    "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt",
)
_HELD_OUT = 2000
_TRIALS = (
    "A warm, funny film that never loses sight of its people.",
    "Two hours of dull jokes and wooden acting.",
    "The plot is thin, but the two leads make up for it.",
)


def define_flags(values: flags.FlagValues) -> None:
    """Those of a training run, with defaults that suit this data."""
    flags.DEFINE_string("preset", "all_minilm_l6_v2_en", "what to start from", flag_values=values)
    flags.DEFINE_string("output", "runs/quickstart", "folder of this run", flag_values=values)
    flags.DEFINE_integer("limit", None, "use so many sentences of each part only", lower_bound=2, flag_values=values)
    add_training(values, epochs=1, batch_size=32, learning_rate=1e-4, length=64, overwrite=True)
    add_backend(values)


def run(options: flags.FlagValues) -> None:
    """Trains, measures, tries three sentences and says what to do next."""
    chosen = backend.choose(options.backend)
    training, held_out = split(film_sentences(), options.limit)
    run = open_run(options.output, config(options, chosen, {"archive_sha256": _SHA256}), options.overwrite)
    classifier, figures = finetune(Classification(), options, training, held_out, run)
    print(f"\ntrained in {figures['seconds']['training']:.0f} s; three new sentences:")
    for text, label, shares in zip(_TRIALS, *classifier.predict_labels(list(_TRIALS)), strict=True):
        print(f"  {label} {shares.max():6.1%}  {text}")
    print(f"\npictures:  {run.learning_curve}  {run.path / 'confusion_matrix.png'}")
    print(f"in Python: garden.tasks.TextClassifier.from_preset({str(run.preset)!r})")
    print(f"in shell:  garden predict --preset={run.path} --text='What a film!'")


def film_sentences() -> Examples:
    """The sentences whose rating is not zero, labelled "negative" or "positive", in the order of the file."""
    from garden.presets.packages import source_archive

    content = source_archive(_PACKAGE, _SHA256).read_bytes()
    for member in _MEMBERS:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            content = archive.extractfile(member).read()
    rows = [line.split("\t") for line in content.decode("utf-8").split("\n") if line]
    rated = [(sentence.strip(), float(rating)) for _, rating, sentence in rows if float(rating) != 0]
    texts, ratings = zip(*rated, strict=True)
    return Examples(list(texts), ["positive" if rating > 0 else "negative" for rating in ratings])


def split(examples: Examples, limit: int | None = None) -> tuple[Examples, Examples]:
    """All but 2,000 sentences to train on and the 2,000, always the same ones; the first `limit` of each, if given."""
    order = np.random.default_rng(0).permutation(len(examples))
    return examples.take(order[_HELD_OUT:][:limit]), examples.take(order[:_HELD_OUT][:limit])
