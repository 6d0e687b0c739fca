"""What the tasks share that write text token by token: compiling, stepping over a cache, stopping."""

from collections.abc import Iterator

import keras
import keras_hub
import numpy as np
from keras import ops

from .checks import check_labels
from .compiled import compiled
from .decoding import check_sampler, refilled, until_stop
from .task import Task


class Generation(Task):
    """Mixin in front of KerasHub's `CausalLM` or `Seq2SeqLM`, for backbones with `cached` and `logits`."""

    needs = "a cache to decode with"

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

    def continued(self, token_ids, padding_mask, cache, stop_token_ids=None):
        """Rows continued by the sampler, inside a compiled function.

        Args:
            token_ids, padding_mask: (b, t), prompts on the left.
            cache: an empty one of the backbone's.
            stop_token_ids: ids that end a row, or None.

        Returns:
            token_ids (b, t), and bool (b, t), True for the prompt and all up to the first stop token.
        """
        prompted = ops.cast(padding_mask, "bool")
        token_ids = refilled(token_ids, prompted, stop_token_ids)
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
        return token_ids, until_stop(token_ids, prompted, stop_token_ids)

    def call_with_cache(self, token_ids, cache, cache_update_index):
        """One step of decoding: logits (b, t, v), states (b, t, d) and the cache; see the backbone's `cached`."""
        states, cache = self.backbone.cached(token_ids, cache, cache_update_index)
        return self.head(states), states, cache

    def check_streaming(self):
        """Raises ValueError where the sampler needs whole rows."""
        # A sampler with a loop of its own (beam, contrastive) cannot be asked for one token.
        if type(self.sampler).__call__ is not keras_hub.samplers.Sampler.__call__:
            raise ValueError(f"A {type(self.sampler).__name__} needs whole rows: compile another sampler to stream.")

    def streamed(self, token_ids, cache, width: int, stop_token_ids) -> Iterator[str]:
        """The text behind a prompt, piece by piece.

        Args:
            token_ids: int (1, t), the prompt.
            cache: an empty one of the backbone's.
            width: the tokens of prompt and continuation together.
            stop_token_ids: ids that end it.
        """
        written, text = [], ""
        for index in range(token_ids.shape[1], width):
            token, cache = self._step()(token_ids, cache, index - token_ids.shape[1])
            token_ids = np.asarray(ops.convert_to_numpy(token), "int32")[:, None]
            if token_ids.item() in stop_token_ids:
                return
            if token_ids.item() < self.preprocessor.tokenizer.vocabulary_size():  # a row that no token has
                written.append(token_ids.item())
            now = self.preprocessor.tokenizer.detokenize(written)
            if not now.endswith("\ufffd"):  # a character whose bytes are not all there
                yield now[len(text) :]
                text = now

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
