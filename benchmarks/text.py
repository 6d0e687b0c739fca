"""Raw text: sentences to class probabilities, and sentences to rows of token ids."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from .measure import alternate
from .records import Request, Sample

LENGTH, BATCH = 64, 32  # the longest sentence has 62 word pieces


def sentences(request: Request) -> Iterator[Sample]:
    """Seconds to classify the quickstart's sentences with MiniLM, strings in and probabilities out."""
    texts, folder = film_sentences(20 if request.small else 1000), Path(request.folder, "minilm")
    readers = {peer: _READERS[peer](folder) for peer in request.peers}
    calls = {peer: lambda read=read: read(texts) for peer, read in readers.items()}
    for peer, seconds in alternate(calls, 2).items():
        yield Sample("sentences", request.backend, peer, "s", seconds, (len(texts), "sentences"))


def tokenization(request: Request) -> Iterator[Sample]:
    """Seconds to turn sentences into padded rows of ids: eagerly, in one call and in calls of 32, and in `tf.data`."""
    texts, folder = film_sentences(64 if request.small else 2048), Path(request.folder, "minilm")
    batches = [texts[i : i + BATCH] for i in range(0, len(texts), BATCH)]
    eager = {peer: _TOKENIZERS[peer](folder) for peer in request.peers}
    piped = {peer: _pipeline(eager[peer], texts) for peer in request.peers if peer in ("garden", "KerasHub")}
    whole = {peer: lambda run=run: run(texts) for peer, run in eager.items()}
    calls = {peer: lambda run=run: [run(batch) for batch in batches] for peer, run in eager.items()}
    tokens = int(sum(np.sum(rows["padding_mask"]) for rows in map(eager["garden"], batches)))
    ways = {"tokenization, eager": whole, "tokenization, eager, by 32": calls, "tokenization, tf.data": piped}
    for metric, runs in ways.items():
        for peer, seconds in alternate(runs, 5).items():
            yield Sample(metric, request.backend, peer, "s", seconds, (tokens, "tokens"))


def film_sentences(count: int) -> list[str]:
    """The first `count` sentences of the quickstart."""
    from garden.cli.quickstart import film_sentences

    return list(film_sentences().texts[:count])


def _pipeline(preprocess, texts) -> Callable:
    import tensorflow as tf

    data = tf.data.Dataset.from_tensor_slices(texts).batch(BATCH)
    data = data.map(preprocess, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    return lambda: sum(1 for _ in data)


def _garden_preprocessor(folder, **padding):
    import garden

    tokenizer = garden.BertTokenizer.from_preset(folder)
    return garden.tasks.BertTextClassifierPreprocessor(tokenizer, sequence_length=LENGTH, **padding)


def _keras_hub_preprocessor(folder):
    from keras_hub.models import BertTextClassifierPreprocessor, BertTokenizer

    tokenizer = BertTokenizer(str(folder / "vocab.txt"), lowercase=True)
    return BertTextClassifierPreprocessor(tokenizer, sequence_length=LENGTH)


def _transformers_tokenizer(folder):
    from transformers import BertTokenizerFast

    tokenizer = BertTokenizerFast.from_pretrained(folder)
    return lambda texts: tokenizer(texts, padding=True, truncation=True, max_length=LENGTH, return_tensors="np")


def _rust_tokenizer(folder):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(LENGTH)
    tokenizer.enable_padding()
    return tokenizer.encode_batch


def _garden_reader(folder):
    from garden.tasks import TextClassifier

    classifier = TextClassifier.from_preset(folder, sequence_length=LENGTH, pad_to_multiple_of=8)
    return lambda texts: classifier.predict_labels(texts, batch_size=BATCH)[1]


def _keras_hub_reader(folder):
    from keras_hub.models import BertBackbone, BertTextClassifier

    backbone, preprocessor = BertBackbone.from_preset(str(folder)), _keras_hub_preprocessor(folder)
    classifier = BertTextClassifier(backbone, num_classes=2, preprocessor=preprocessor, activation="softmax")
    return lambda texts: classifier.predict(texts, batch_size=BATCH, verbose=0)


def _transformers_reader(folder):
    import torch
    from transformers import BertForSequenceClassification, BertTokenizerFast

    tokenizer = BertTokenizerFast.from_pretrained(folder)
    model = BertForSequenceClassification.from_pretrained(folder).eval()

    def read(texts):
        found = []
        for i in range(0, len(texts), BATCH):
            inputs = tokenizer(texts[i : i + BATCH], padding=True, truncation=True, return_tensors="pt")
            with torch.no_grad():
                found.append(model(**inputs).logits.softmax(-1).numpy())
        return np.concatenate(found)

    return read


_READERS = {"garden": _garden_reader, "KerasHub": _keras_hub_reader, "transformers": _transformers_reader}
_TOKENIZERS = {
    "garden": _garden_preprocessor,
    "KerasHub": _keras_hub_preprocessor,
    "transformers": _transformers_tokenizer,
    "tokenizers": _rust_tokenizer,
}
