"""Extractive question answering: the piece of a passage that answers a question."""

import keras
import numpy as np

from garden.layers import ClassificationHead

from .passage_task import PassageTask
from .problems import SingleLabel
from .span_decoding import decode


class QuestionAnswering(PassageTask):
    """A dense layer that scores every token as the first and as the last of the answer (Devlin et al. 2018, 4.2).

    `fit` and `evaluate` take a list of `Example`, or the path of a file that `read_squad` reads; a passage that is
    longer than a row becomes several rows. What Keras takes works too: a tuple of questions and passages, with the
    positions of the first and the last token as targets, int (b, 2).

    Args:
        backbone: a garden backbone.
        preprocessor: a `QuestionAnsweringPreprocessor`; None to feed token ids.
        dropout: rate before the logits; None means the backbone's `question_answering_dropout`.

    Returns:
        Logits (b, 2, t), of starts and of ends. Those of question, padding and special tokens are as the dense layer
        gives them, like the published heads': the loss sees them, and `predict_answers` leaves them out.

    ```python
    model = garden.tasks.QuestionAnswering.from_preset("all_minilm_l6_v2_en", sequence_length=384)
    model.fit("train-v1.1.json", batch_size=16, epochs=2)
    answer = model.predict_answers(["Who wrote it?"], ["It was written by Ada Lovelace in 1843."])[0]
    answer.text, answer.start, answer.end
    ```
    """

    decode = staticmethod(decode)

    def __init__(self, backbone, preprocessor=None, dropout=None, **kwargs):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.dropout = backbone.question_answering_dropout if dropout is None else dropout
        self.head = ClassificationHead(2, self.dropout, dtype=backbone.dtype_policy, name="question_answering")
        logits = self.head(backbone(backbone.input)[self.reads])
        super().__init__(inputs=backbone.input, outputs=keras.ops.transpose(logits, (0, 2, 1)), **kwargs)

    @property
    def num_outputs(self):
        length = self.preprocessor.sequence_length if self.preprocessor else self.backbone.max_sequence_length
        return length or np.iinfo("int32").max  # where no table limits a row

    def compile(self, optimizer="auto", loss="auto", *, metrics="auto", **kwargs):
        """Keras's `compile`; `"auto"` is Adam at 5e-5, cross-entropy from logits, and accuracy.

        The loss is the mean of that of the starts and that of the ends, each over all tokens of the row.
        """
        super().compile(**SingleLabel().settings(optimizer, loss, metrics), **kwargs)

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout}
