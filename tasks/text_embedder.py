"""Embeddings of texts, for search, clustering and deduplication."""

import keras
import keras_hub
import numpy as np

from garden.layers import Pooling
from garden.strings import as_strings

from .batching import predict_sorted
from .checks import check_numbers
from .embedding_losses import CosineSimilarityLoss, MultipleNegativesRankingLoss
from .neighbours import nearest, similarity
from .task import Task
from .text_packer import TextPacker, run


@keras.saving.register_keras_serializable(package="garden")
class TextEmbedderPreprocessor(TextPacker, keras_hub.models.TextEmbedderPreprocessor):
    """Strings to the inputs of an encoder, a row a text: a pair of columns gives rows a0, b0, a1, b1, ...

    Args:
        tokenizer, sequence_length, truncate, pad_to_multiple_of: as in `TextClassifierPreprocessor`; no row holds two
            texts, so `truncate` has no effect.

    Call arguments:
        x: a batch (b,) of strings, or a tuple of two for pairs to train on.
        y, sample_weight: passed on as they are.

    Returns:
        A dict of int32 arrays (b, t), or (2 * b, t) for pairs.

    >>> from garden.tokenizers import BertTokenizer
    >>> tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "film"])
    >>> preprocessor = TextEmbedderPreprocessor(tokenizer, sequence_length=4)
    >>> preprocessor((["good", "film"], ["film", "film"]))["token_ids"][:, 1].tolist()
    [5, 6, 6, 6]
    """

    pairs_share_a_row = False

    def call(self, x, y=None, sample_weight=None):
        rows = (None,) if isinstance(x, tuple) else None
        packed = run(self.pack_texts, x, self.packed_spec(), rows)
        return keras.utils.pack_x_y_sample_weight(packed, y, sample_weight)

    def pack_texts(self, *columns) -> dict[str, np.ndarray]:
        """`pack_strings` with a row for every text, those of a pair one below the other."""
        if len(columns) == 1:
            return self.pack_strings(*columns)
        columns = [as_strings(column)[0] for column in columns]
        return self.pack_strings([text for pair in zip(*columns, strict=True) for text in pair])


class TextEmbedder(Task, keras_hub.models.TextEmbedder):
    """A text's embedding from its tokens (Reimers and Gurevych 2019, section 3).

    `fit` and `evaluate` take pairs of texts. Without targets the texts of a pair belong together, and every other
    text of the batch is a wrong partner. To learn the scores of pairs, `compile(loss=CosineSimilarityLoss())` first and
    give the scores, from -1 to 1.

    Args:
        backbone: a garden backbone.
        preprocessor: from strings to inputs; None to feed token ids.
        pooling_mode: `"mean"`, `"cls"` for the first token, or `"max"`. `from_preset` of a sentence-transformers folder
            takes what its `modules.json` says.
        normalize: whether embeddings have length 1, likewise.

    Returns:
        float32 (b, d).

    Raises:
        ValueError: an unknown `pooling_mode`, or samples to train on that are no pairs.

    ```python
    embedder = garden.tasks.TextEmbedder.from_preset("all_minilm_l6_v2_en")
    corpus = embedder.embed(["a man eats", "stocks fell"])
    rows, cosines = embedder.nearest(embedder.embed(["someone has a meal"]), corpus, top_k=1)
    ```
    """

    similarity = staticmethod(similarity)
    nearest = staticmethod(nearest)

    def __init__(self, backbone, preprocessor=None, pooling_mode="mean", normalize=True, **kwargs):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.pooling_mode = pooling_mode
        self.normalize = normalize
        self.pooling = Pooling(pooling_mode, normalize, name="pooling")
        sequence = backbone(backbone.input)[self.reads]
        super().__init__(
            inputs=backbone.input, outputs=self.pooling(sequence, backbone.input["padding_mask"]), **kwargs
        )

    def embed(self, texts, batch_size: int = 32) -> np.ndarray:
        """The embedding of each text.

        Args:
            texts: list of strings.
            batch_size: texts a step; texts of similar length share one.

        Returns:
            float32 (len(texts), d), in the order of `texts`.

        Raises:
            ValueError: one string instead of a list, or something in it is no string.
        """
        texts, batched = as_strings(texts)
        if not batched:
            raise ValueError("embed takes a list of texts: put the one text into a list.")
        return predict_sorted(self, texts, batch_size)

    def compile(self, optimizer="auto", loss="auto", **kwargs):
        """Keras's `compile`; `"auto"` is Adam at 5e-5 and `MultipleNegativesRankingLoss`."""
        super().compile(optimizer, MultipleNegativesRankingLoss() if loss == "auto" else loss, **kwargs)

    def training_samples(self, x, y=None):
        if not isinstance(x, tuple) or len(x) != 2 or self.preprocessor is None:
            raise ValueError("A TextEmbedder learns from pairs of texts: give a tuple of two lists of strings.")
        ranking = isinstance(self.loss, MultipleNegativesRankingLoss)
        if ranking and y is not None:
            raise ValueError("MultipleNegativesRankingLoss takes no targets: compile(loss=CosineSimilarityLoss()).")
        if y is None and not ranking:
            raise ValueError("This loss needs a target for every pair, and there are none.")
        # Keras computes no loss without targets.
        return super().training_samples(x, np.zeros(len(x[0]), "float32") if ranking else y)

    def check_targets(self, y):
        if y is None or not isinstance(self.loss, CosineSimilarityLoss):
            return y
        rule = "scores must be from -1 to 1, as cosines are (divide STS-B's by 5)"
        return check_numbers(y, 1, rule, lambda y: (y >= -1) & (y <= 1))

    @classmethod
    def complete(cls, arguments, checkpoint):
        # One width for each multiple: a batch of short texts costs little, and few programs are compiled.
        return {"pad_to_multiple_of": 64, **checkpoint.embedder_arguments, **arguments}

    def get_config(self):
        return {**super().get_config(), "pooling_mode": self.pooling_mode, "normalize": self.normalize}
