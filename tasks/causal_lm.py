"""Causal language modelling: train on the next token, generate one after the other."""

from collections.abc import Iterator

import keras_hub
from keras import ops

from .decoding import without_left_padding
from .generation import Generation


class CausalLM(Generation, keras_hub.models.CausalLM):
    """A language model that predicts each token from those before it (Radford et al. 2018, section 3.1).

    `fit` and `evaluate` take raw strings. `generate` is KerasHub's, with its samplers: `"greedy"`, `"beam"`, `"top_k"`,
    `"top_p"`, `"random"`, `"contrastive"` or an object of `keras_hub.samplers`, which also takes a temperature.

    Args:
        backbone: a garden backbone that decodes with a cache, such as a `garden.Decoder`.
        preprocessor: from strings to inputs; None to feed token ids.

    Returns:
        Logits (b, t, v) of the token behind each place.

    ```python
    gpt2 = garden.tasks.CausalLM.from_preset("gpt2_base_en")
    gpt2.compile(sampler="greedy")
    gpt2.generate("The best thing about a garden is", max_length=40)
    ```
    """

    preprocessor_settings = ("sequence_length", "add_start_token", "add_end_token")

    def __init__(self, backbone, preprocessor=None, **kwargs):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head = backbone.language_model_head()
        inputs = {name: backbone.input[name] for name in ("token_ids", "padding_mask")}
        super().__init__(inputs=inputs, outputs=self.head(self.states(inputs)), **kwargs)

    def states(self, inputs):
        """The states float (b, t, d) that the head stands on."""
        return self.backbone.next_token_states(inputs)

    @classmethod
    def fits(cls, backbone_cls):
        return hasattr(backbone_cls, "cached") and not hasattr(backbone_cls, "encode")

    def generate(self, inputs, max_length=None, stop_token_ids="auto", strip_prompt=False):
        """Continues prompts; rows of different length give what each would alone.

        Args:
            inputs: a string, a list of strings or a dataset of such lists; without a preprocessor a dict of `token_ids`
                and `padding_mask` (b, t), padded on either side to the length that is wanted.
            max_length: the tokens of prompt and continuation together; None means the preprocessor's length.
            stop_token_ids: ids that end a row; `"auto"` is the end token, None goes on until `max_length`.
            strip_prompt: whether to return the continuation only.

        Returns:
            A string or a list of strings; without a preprocessor a dict as it came in.

        Raises:
            ValueError: an empty prompt where no token can start a row, a prompt that leaves no room, more tokens than
                the model has positions, or `"auto"` without a preprocessor.
        """
        if self.preprocessor is None and isinstance(inputs, dict):
            inputs = without_left_padding(inputs)
        self._check_length(max_length)
        return super().generate(inputs, max_length, self._stop_token_ids(stop_token_ids), strip_prompt)

    def stream(self, prompt: str, max_length: int | None = None, stop_token_ids="auto") -> Iterator[str]:
        """Continues one prompt and yields the text piece by piece, as soon as a token completes it.

        Args:
            prompt: a string.
            max_length, stop_token_ids: as in `generate`.

        Raises:
            ValueError: as in `generate`, or a sampler that needs whole rows (beam, contrastive).

        ```python
        for piece in gpt2.stream("Once upon a time"):
            print(piece, end="", flush=True)
        ```
        """
        self.check_streaming()
        self._check_length(max_length)
        stops = self._stop_token_ids(stop_token_ids) or ()
        inputs = self.preprocessor.generate_preprocess([prompt], sequence_length=max_length)
        length, width = int(inputs["padding_mask"].sum()), inputs["token_ids"].shape[1]
        cache = self.backbone.empty_cache(1, width)
        yield from self.streamed(inputs["token_ids"][:, :length], cache, width, stops)

    def generate_step(self, inputs, stop_token_ids=None):
        """KerasHub's hook: continues a batch of rows, inside a compiled function.

        Args:
            inputs: dict of `token_ids` and `padding_mask` (b, t), prompts on the left.
            stop_token_ids: ids that end a row, or None.
        """
        token_ids = inputs["token_ids"]
        cache = self.backbone.empty_cache(ops.shape(token_ids)[0], token_ids.shape[1])
        token_ids, real = self.continued(token_ids, inputs["padding_mask"], cache, stop_token_ids)
        return {"token_ids": token_ids, "padding_mask": real}
