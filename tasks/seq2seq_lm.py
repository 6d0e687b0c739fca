"""Sequence to sequence: train on pairs of texts, write the second from the first."""

from collections.abc import Iterator

import keras_hub
from keras import ops

from .decoding import without_left_padding
from .generation import Generation
from .inputs import check_samples


class Seq2SeqLM(Generation, keras_hub.models.Seq2SeqLM):
    """A model that reads one text and writes another (Raffel et al. 2020, section 2.1).

    `fit` and `evaluate` take pairs of raw strings, a tuple of two lists or a dictionary of `encoder_text` and
    `decoder_text`: the decoder is given the second text shifted by one token and learns the next one. Padding does not
    count. `compile(loss=garden.tasks.SmoothedCrossentropy(0.1))` smooths labels. `generate` is
    KerasHub's, with its samplers, as in `CausalLM`.

    Args:
        backbone: a garden backbone with an encoder and a decoder, a `garden.Seq2Seq`.
        preprocessor: from strings to inputs; None to feed token ids.

    Returns:
        Logits (b, t, v) of the token behind each place of the decoder.

    ```python
    t5 = garden.tasks.Seq2SeqLM.from_preset("t5_small_multi")
    t5.compile(sampler="greedy")
    t5.generate("translate English to German: The house is wonderful.", max_length=40)
    ```
    """

    reads = "decoder_sequence_output"
    needs = "an encoder and a decoder"
    preprocessor_settings = ("encoder_sequence_length", "decoder_sequence_length")

    def __init__(self, backbone, preprocessor=None, **kwargs):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head = backbone.language_model_head()
        super().__init__(inputs=backbone.input, outputs=self.head(self.states(backbone.input)), **kwargs)

    def states(self, inputs):
        """The states float (b, t, d) that the head stands on."""
        return self.backbone(inputs)[self.reads]

    @classmethod
    def fits(cls, backbone_cls):
        return hasattr(backbone_cls, "cached") and hasattr(backbone_cls, "encode")

    def generate(self, inputs, max_length=None, stop_token_ids="auto"):
        """Writes a text for each text; rows of different length give what each would alone.

        Args:
            inputs: a string, a list of strings, a dict of `encoder_text` and `decoder_text`, the latter the beginning
                of what is to be written, or a dataset of such; without a preprocessor the dict of the model's inputs,
                the decoder's padded on either side to the length that is wanted.
            max_length: the tokens to write, the one that starts included; None means the preprocessor's length.
            stop_token_ids: ids that end a row; `"auto"` is the end token, None goes on until `max_length`.

        Returns:
            A string or a list of strings; without a preprocessor a dict of `decoder_token_ids` and
            `decoder_padding_mask`.

        Raises:
            ValueError: a beginning that leaves no room, no text, or `"auto"` without a preprocessor.
        """
        if self.preprocessor is None and isinstance(inputs, dict):
            names = {"decoder_token_ids": "token_ids", "decoder_padding_mask": "padding_mask"}
            tidied = without_left_padding({bare: inputs[name] for name, bare in names.items()})
            inputs = {**inputs, **{name: tidied[bare] for name, bare in names.items()}}
        self._check_length(max_length)
        inputs = dict(inputs) if isinstance(inputs, dict) else inputs  # KerasHub changes it
        return super().generate(inputs, max_length, self._stop_token_ids(stop_token_ids))

    def stream(self, text: str, max_length: int | None = None, stop_token_ids="auto") -> Iterator[str]:
        """Writes a text for one text and yields it piece by piece, as soon as a token completes it.

        Args:
            text: a string.
            max_length, stop_token_ids: as in `generate`.

        Raises:
            ValueError: as in `generate`, or a sampler that needs whole rows (beam, contrastive).
        """
        self.check_streaming()
        self._check_length(max_length)
        inputs = self.preprocessor.generate_preprocess([text], sequence_length=max_length)
        width = inputs["decoder_token_ids"].shape[1]
        start = inputs["decoder_token_ids"][:, :1]
        yield from self.streamed(
            start, self._empty_cache(inputs, width), width, self._stop_token_ids(stop_token_ids) or ()
        )

    def generate_step(self, inputs, stop_token_ids=None):
        """KerasHub's hook: writes a batch of rows, inside a compiled function.

        Args:
            inputs: dict of the model's inputs, what is written already on the left.
            stop_token_ids: ids that end a row, or None.
        """
        token_ids = inputs["decoder_token_ids"]
        cache = self._empty_cache(inputs, token_ids.shape[1])
        token_ids, real = self.continued(token_ids, inputs["decoder_padding_mask"], cache, stop_token_ids)
        return {"decoder_token_ids": token_ids, "decoder_padding_mask": real}

    def _empty_cache(self, inputs, width):
        source, mask = (ops.convert_to_tensor(inputs[f"encoder_{name}"]) for name in ("token_ids", "padding_mask"))
        return self.backbone.empty_cache(self.backbone.encode_alone(source, mask), mask, width)

    def check_samples(self, x, y=None):
        if self.preprocessor is not None and isinstance(x, dict):
            x = self.preprocessor.pair(x)
        return check_samples(self, x, y)
