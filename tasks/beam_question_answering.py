"""Extractive question answering in which the end of an answer depends on its start (XLNet, Yang et al. 2019)."""

import keras
import numpy as np

from garden.kept import FunctionalModel
from garden.layers import AnswerHead

from .beam_decoding import Beams, decode_beams
from .packing import padded_rows
from .passage_task import PassageTask
from .question_answering_preprocessor import PassagePreprocessor, QuestionAnsweringPreprocessor


@keras.saving.register_keras_serializable(package="garden")
class BeamQuestionAnsweringPreprocessor(PassagePreprocessor):
    __doc__ = (
        "As `QuestionAnsweringPreprocessor`, and says which tokens may be answers.\n\n"
        "    The array `answer_mask` (b, t) is 1 for those of the passage and the one that stands for no answer.\n\n"
        "    Args:" + QuestionAnsweringPreprocessor.__doc__.split("    Args:", 1)[1].split("    >>>")[0]
    )

    def pack_windows(self, windows):
        packed = super().pack_windows(windows)
        masks = [np.zeros(len(window.token_ids), "int32") for window in windows]
        for mask, window in zip(masks, windows, strict=True):
            mask[window.first : window.first + len(window.offsets)] = mask[window.null] = 1
        return {**packed, "answer_mask": padded_rows(masks, 0, self.sequence_length, self.pad_to_multiple_of)}

    def packed_spec(self):
        spec = super().packed_spec()
        return {**spec, "answer_mask": spec["padding_mask"]}


class BeamQuestionAnswering(PassageTask):
    """A start, then its end, and whether there is an answer at all: the head of XLNet's own fine-tuning on SQuAD.

    `fit`, `evaluate` and `predict_answers` take what `QuestionAnswering` takes, text and examples. Training tells the
    head the true start; an answer comes from the best starts, each with its own ends. The loss is half of that of the
    start, the end, and of there being no answer, each.

    Args:
        backbone: a garden backbone.
        preprocessor: a `BeamQuestionAnsweringPreprocessor`; None to feed token ids.
        num_starts: how many starts are tried for an answer.
        dropout: rate before the logit of no answer; None means the backbone's `dropout`, as in the original.

    Inputs beside the backbone's:
        answer_mask: int (b, t), 1 where an answer may be.
        start_positions: int (b,), the true starts.

    Returns:
        `start` and `end`, logits (b, t), and `null`, the logit (b,) of no answer.

    ```python
    model = garden.tasks.BeamQuestionAnswering.from_preset("xlnet_base_en", sequence_length=384)
    model.fit("train-v2.0.json", batch_size=16, epochs=2)
    model.predict_answers(["Who wrote it?"], ["It was written by Ada Lovelace."], null_threshold=0.0)[0].text
    ```
    """

    decode = staticmethod(decode_beams)

    def __init__(self, backbone, preprocessor=None, num_starts=5, dropout=None, **kwargs):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.num_starts = num_starts
        self.dropout = backbone.dropout if dropout is None else dropout
        token = (backbone.classifier_pooler or {}).get("token", "first")
        epsilon, dtype = backbone.layer_norm_epsilon, backbone.dtype_policy
        self.head = AnswerHead(num_starts, token, epsilon, self.dropout, dtype=dtype, name="answers")
        inputs = {**backbone.input, "answer_mask": keras.Input((None,), dtype="int32", name="answer_mask")}
        sequence = backbone(backbone.input)[self.reads]
        given = keras.Input((), dtype="int32", name="start_positions")
        masks = (inputs["padding_mask"], inputs["answer_mask"])
        start, _, end, null = self.head(sequence, *masks, keras.ops.expand_dims(given, 1))
        outputs = {"start": start, "end": end[:, 0], "null": null}
        super().__init__(inputs={**inputs, "start_positions": given}, outputs=outputs, **kwargs)
        # Not an attribute that Keras tracks: the weights are those of the task already.
        object.__setattr__(self, "beams", FunctionalModel(inputs, self.head(sequence, *masks), name="beams"))

    def compile(self, optimizer="auto", loss="auto", *, metrics="auto", loss_weights="auto", **kwargs):
        """Keras's `compile`; `"auto"` is Adam at 5e-5, and the loss of the three outputs."""
        position = keras.losses.SparseCategoricalCrossentropy
        losses = {
            "start": position(from_logits=True),
            "end": position(from_logits=True),
            "null": keras.losses.BinaryCrossentropy(from_logits=True),
        }
        own = loss == "auto"
        super().compile(
            optimizer=keras.optimizers.Adam(5e-5) if optimizer == "auto" else optimizer,
            loss=losses if own else loss,
            metrics=None if metrics == "auto" else metrics,
            loss_weights=(dict.fromkeys(losses, 0.5) if own else None) if loss_weights == "auto" else loss_weights,
            **kwargs,
        )

    def check_targets(self, y):
        return y  # a dictionary of three, made of examples

    def _batches(self, examples, batch_size, shuffle):
        return super()._batches(examples, batch_size, shuffle).map(self._with_starts)

    def _with_starts(self, x, positions):
        """A batch and the positions (b, 2) of its answers, as the model takes them: only "no answer" ends at it."""
        import tensorflow as tf

        start, end = positions[:, 0], positions[:, 1]
        last = tf.reduce_sum(x["padding_mask"], axis=1) - 1  # rows of windows are padded on the right
        null = last if self.preprocessor.tokenizer.suffix_ids else tf.zeros_like(last)
        return {**x, "start_positions": start}, {"start": start, "end": end, "null": tf.cast(start == null, "float32")}

    def _said(self, packed):
        return [Beams(*row) for row in zip(*self.beams.predict_on_batch(packed), strict=True)]

    def get_config(self):
        return {**super().get_config(), "num_starts": self.num_starts, "dropout": self.dropout}
