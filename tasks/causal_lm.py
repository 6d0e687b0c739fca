"""Causal language modelling: train on the next token, generate one after the other."""

from collections.abc import Iterator

import keras
import keras_hub
import numpy as np
from keras import ops

from .checks import check_labels
from .compiled import compiled
from .decoding import check_sampler, refilled, until_stop, without_left_padding
from .task import Task


class CausalLM(Task, keras_hub.models.CausalLM):
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

    needs = "a cache to decode with"
    preprocessor_settings = ("sequence_length", "add_start_token", "add_end_token")

    def __init__(self, backbone, preprocessor=None, **kwargs):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head = backbone.language_model_head()
        sequence = backbone(backbone.input)[self.reads]
        super().__init__(inputs=backbone.input, outputs=self.head(sequence), **kwargs)

    @classmethod
    def fits(cls, backbone_cls):
        return hasattr(backbone_cls, "cached")

    def compile(self, optimizer="auto", loss="auto", *, weighted_metrics="auto", sampler="top_k", **kwargs):
        """Keras's `compile`, and how `generate` chooses tokens.

        Args:
            optimizer: `"auto"` is Adam at 2e-5.
            loss: `"auto"` is the mean cross-entropy of the tokens; padding does not count.
            weighted_metrics: `"auto"` is the perplexity.
            sampler: a name or an object of `keras_hub.samplers`.
            **kwargs: as in Keras.

        Raises:
            ValueError: a sampler with more beams or candidates than the vocabulary has tokens.
        """
        if loss == "auto":
            reduction = "mean_with_sample_weight"
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=reduction)
        if weighted_metrics == "auto":
            weighted_metrics = [keras_hub.metrics.Perplexity(from_logits=True, name="perplexity")]
        super().compile(optimizer, loss, weighted_metrics=weighted_metrics, sampler=sampler, **kwargs)
        check_sampler(self.sampler, self.backbone.vocabulary_size)
        self._step_function = None

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
        if not hasattr(self.sampler, "get_next_token") or hasattr(self.sampler, "num_beams"):
            raise ValueError(f"A {type(self.sampler).__name__} needs whole rows: compile another sampler to stream.")
        self._check_length(max_length)
        stops = self._stop_token_ids(stop_token_ids) or ()
        inputs = self.preprocessor.generate_preprocess([prompt], sequence_length=max_length)
        length = int(inputs["padding_mask"].sum())
        cache = self.backbone.empty_cache(1, inputs["token_ids"].shape[1])
        token_ids, written, text = inputs["token_ids"][:, :length], [], ""
        for index in range(length, inputs["token_ids"].shape[1]):
            token, cache = self._step()(token_ids, cache, index - token_ids.shape[1])
            token_ids = np.asarray(ops.convert_to_numpy(token), "int32")[:, None]
            if token_ids.item() in stops:
                return
            written.append(token_ids.item())
            now = self.preprocessor.tokenizer.detokenize(written)
            if not now.endswith("\ufffd"):  # a character whose bytes are not all there
                yield now[len(text) :]
                text = now

    def generate_step(self, inputs, stop_token_ids=None):
        """KerasHub's hook: continues a batch of rows, inside a compiled function.

        Args:
            inputs: dict of `token_ids` and `padding_mask` (b, t), prompts on the left.
            stop_token_ids: ids that end a row, or None.
        """
        prompted = ops.cast(inputs["padding_mask"], "bool")
        token_ids = refilled(inputs["token_ids"], prompted, stop_token_ids)
        cache = self.backbone.empty_cache(ops.shape(token_ids)[0], token_ids.shape[1])
        states, cache = self.backbone.cached(token_ids, cache, 0)

        def next(prompt, cache, index):
            last = ops.slice(prompt, (0, index - 1), (ops.shape(prompt)[0], 1))
            logits, states, cache = self.call_with_cache(last, cache, index - 1)
            return logits[:, 0], states[:, 0], cache

        token_ids = self.sampler(
            next=next,
            prompt=token_ids,
            cache=cache,
            index=ops.min(ops.sum(ops.cast(prompted, "int32"), axis=1)),
            mask=prompted,
            stop_token_ids=stop_token_ids,
            hidden_states=states,
            model=self,
        )
        return {"token_ids": token_ids, "padding_mask": until_stop(token_ids, prompted, stop_token_ids)}

    def call_with_cache(self, token_ids, cache, cache_update_index):
        """One step of decoding: logits (b, t, v), states (b, t, d) and the cache; see `garden.Decoder.cached`."""
        states, cache = self.backbone.cached(token_ids, cache, cache_update_index)
        return self.head(states), states, cache

    def _step(self):
        """The compiled function from the last tokens to the next one."""
        if self._step_function is None:

            def step(token_ids, cache, index):
                logits, _, cache = self.call_with_cache(token_ids, cache, index)
                return self.sampler.get_next_token(self.sampler.compute_probabilities(logits[:, -1])), cache

            self._step_function = compiled(step, self.variables, self.sampler.variables)
        return self._step_function

    def _check_length(self, max_length):
        limit = self.backbone.max_sequence_length
        if None not in (max_length, limit) and max_length > limit:
            raise ValueError(f"max_length={max_length} is more than this backbone's {limit} positions.")

    def _stop_token_ids(self, stop_token_ids):
        if stop_token_ids != "auto" or self.preprocessor is None:
            return stop_token_ids
        return None if self.preprocessor.end is None else [self.preprocessor.end]

    @property
    def num_outputs(self):
        return self.backbone.vocabulary_size

    def check_targets(self, y):
        return y if y is None or self.preprocessor else check_labels(y, self.num_outputs)
