"""The published ERNIE 1.0 to 3.0: representation through knowledge integration (Sun et al. 2019, 2020, 2021)."""

import keras
from keras import layers

from garden.encoder import Encoder, transformer_blocks
from garden.ernie_tiny import ErnieTinyTokenizer
from garden.layers import Embeddings, Pooler, truncated_normal
from garden.tokenizers import BertTokenizer


@keras.saving.register_keras_serializable("garden")
class ErnieTokenizer(BertTokenizer):
    __doc__ = BertTokenizer.__doc__.replace(
        "WordPiece as BERT, DistilBERT, ELECTRA, MobileBERT, TinyBERT and the Chinese models use it.",
        "WordPiece, as the ERNIE models use it; `from_preset` gives ernie-tiny its own.",
    )

    alternatives = ("ErnieTinyTokenizer",)

    @classmethod
    def recognises(cls, folder):
        # ernie-tiny has a vocab.txt too, and WordPiece would take it without a word and give every text other ids.
        return super().recognises(folder) and not ErnieTinyTokenizer.recognises(folder)


@keras.saving.register_keras_serializable("garden")
class TaskEmbeddings(Embeddings):
    """Embeddings with one more table, for the pretraining task that a row belongs to (Sun et al. 2020, section 4.1).

    Args:
        num_task_types: rows of the task table.
        task_type: the row that is added to every token.
        **kwargs: those of `Embeddings`.

    >>> import numpy as np
    >>> from garden.ernie import TaskEmbeddings
    >>> ids = np.array([[5, 6, 7]])
    >>> layer = TaskEmbeddings(3, vocabulary_size=10, embedding_dim=4, max_sequence_length=8, num_segments=2)
    >>> layer(ids, ids % 3, ids % 2).shape == (1, 3, 4)
    True
    """

    def __init__(self, num_task_types, task_type=0, **kwargs):
        super().__init__(**kwargs)
        self.task_type = task_type
        self.task_embedding = layers.Embedding(
            num_task_types,
            self.token_embedding.output_dim,
            embeddings_initializer=truncated_normal(),
            dtype=self.dtype_policy,
            name="task_embedding",
        )

    def build(self, token_ids_shape, position_ids_shape, segment_ids_shape=None):
        self.task_embedding.build(token_ids_shape)
        super().build(token_ids_shape, position_ids_shape, segment_ids_shape)

    def sum(self, token_ids, position_ids, segment_ids=None):
        # The task's ids hang on an input: Keras drops the variable of an embedding that is called on a constant.
        task_ids = keras.ops.zeros_like(token_ids) + self.task_type
        return super().sum(token_ids, position_ids, segment_ids) + self.task_embedding(task_ids)


@keras.saving.register_keras_serializable("garden")
class ErnieBackbone(Encoder):
    """BERT with a table of tasks, as ERNIE 2.0 and 3.0 have it; ERNIE 1.0 has none.

    Args:
        vocabulary_size: v, rows of the token table.
        num_layers: number of blocks.
        num_heads: n; it divides `hidden_dim`.
        hidden_dim: d.
        intermediate_dim: f, width of the feed-forward network.
        dropout: rate on the embeddings and on what attention and feed-forward add.
        attention_dropout: rate on the attention probabilities; None means `dropout`.
        max_sequence_length: rows of the position table.
        num_segments: rows of the segment table.
        num_task_types: rows of the task table; 0 leaves it out.
        task_type: the row of it that is used; the published fine-tuning code takes 0.
        activation: `"relu"` in the Chinese ERNIE 1.0 and 2.0, `"gelu_erf"` in the others.
        layer_norm_epsilon: epsilon of all norms; Paddle's default is 1e-5.
        dtype: dtype policy of computations and weights.

    Inputs, int32 (b, t):
        token_ids, segment_ids, and padding_mask: 0 is padding, k >= 1 the k-th sequence packed into the row.

    Outputs:
        sequence_output (b, t, d), and pooled_output (b, d) from the row's first token.

    Raises:
        ValueError: rows longer than `max_sequence_length`, `num_heads` does not divide `hidden_dim`, or `task_type` is
            not a row of the task table.

    >>> import numpy as np, garden
    >>> ernie = garden.ErnieBackbone(
    ...     50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16, num_task_types=3)
    >>> ids = np.array([[2, 7, 8, 3]])
    >>> inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    >>> ernie(inputs)["pooled_output"].shape == (1, 8)
    True
    """

    tokenizer_cls = ErnieTokenizer

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        dropout=0.1,
        attention_dropout=None,
        max_sequence_length=512,
        num_segments=2,
        num_task_types=0,
        task_type=0,
        activation="gelu_erf",
        layer_norm_epsilon=1e-5,
        dtype=None,
        **kwargs,
    ):
        if task_type not in range(max(num_task_types, 1)):
            raise ValueError(f"task_type={task_type} is not a row of a table of num_task_types={num_task_types}.")
        tables = dict(
            vocabulary_size=vocabulary_size,
            embedding_dim=hidden_dim,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
            dropout=dropout,
            layer_norm_epsilon=layer_norm_epsilon,
            dtype=dtype,
            name="embeddings",
        )
        self.embeddings = (
            TaskEmbeddings(num_task_types, task_type, **tables) if num_task_types else Embeddings(**tables)
        )
        self.blocks = transformer_blocks(
            num_layers, num_heads, intermediate_dim, activation, dropout, attention_dropout, layer_norm_epsilon, dtype
        )
        self.pooler = Pooler(hidden_dim, dtype=dtype, name="pooler")
        super().__init__(dtype, **kwargs)


ErnieTokenizer.backbone_cls = ErnieBackbone
ErnieTinyTokenizer.backbone_cls = ErnieBackbone
