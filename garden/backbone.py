"""The base of every backbone: hyper-parameters written once, presets from any source, and taps into the layers."""

import functools
import inspect

import keras
import keras_hub

from garden.files import whole_folder
from garden.kept import FunctionalModel, Kept
from garden.layers import MaskedLMHead, Tap, TokenHead


class Backbone(Kept, keras_hub.models.Backbone):
    """A functional model whose forward pass is one method, `assemble`.

    A subclass makes its layers in `__init__`, `embeddings` among them, calls `super().__init__()`, and writes the
    forward pass in `assemble(inputs, taps)`. Its constructor's signature is the only list of its hyper-parameters: they
    are recorded as they are bound, readable as attributes, and returned by `get_config`.

    Attributes:
        is_encoder: whether heads for understanding stand on its `sequence_output`.
        input_names: the int32 inputs (b, t).
        max_sequence_length: the longest row, by the constructor; None where no table limits it.
        classifier_pooler: arguments of the `garden.layers.Pooler` that a classifier puts on a backbone without a
            `pooled_output`; None where there is one.
        classifier_dropout: rate before a classifier's logits, where the user gives none.
        question_answering_dropout: likewise before the logits of answers.
        feature_names: what `features` can give.
        masked_lm_head: class of the masked-LM head, which says how it is tied to `token_embedding`; None for a model
            that was not trained to fill masks.
        replaced_token_head: class of the head that detects replaced tokens.
        mask_queries: makes the layer with which `decode_masks` makes what a masked-LM head may read in place of the
            last block's output; None where there is no such thing.

    >>> import garden
    >>> backbone = garden.BertBackbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
    >>> backbone.num_layers, backbone.get_config()["hidden_dim"]
    (2, 8)
    """

    input_names = ("token_ids", "segment_ids", "padding_mask")
    is_encoder = True
    max_sequence_length = None
    classifier_pooler = None
    classifier_dropout = 0.1
    masked_lm_head = MaskedLMHead
    feature_names = ("hidden_states", "attention_probs", "attention_scores", "queries", "keys", "values")
    mask_queries = None
    replaced_token_head = TokenHead
    question_answering_dropout = 0.0

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__init__" not in vars(cls):
            return
        init, signature = cls.__init__, inspect.signature(cls.__init__)

        @functools.wraps(init)
        def recording(self, *args, **kwargs):
            if "hyperparameters" not in vars(self):  # the class's own arguments, not what it passes up
                bound = signature.bind(self, *args, **kwargs)
                bound.apply_defaults()
                _record(self, bound.arguments)
            init(self, *args, **kwargs)

        cls.__init__ = recording

    def __init__(self, dtype=None, **kwargs):
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in self.input_names}
        super().__init__(inputs=inputs, outputs=self.assemble(inputs, Taps()), dtype=dtype, **kwargs)

    @property
    def longest_row(self):
        """The tokens that a row may have; None where no table of positions limits them."""
        return self.max_sequence_length

    @property
    def token_embedding(self):
        """The `keras.layers.ReversibleEmbedding` (v, e) that masked-LM heads tie to."""
        return self.embeddings.token_embedding

    def assemble(self, inputs: dict, taps: "Taps") -> dict:
        """The forward pass, from the inputs' dictionary to the outputs'."""
        # Abstract, but not by abc: Keras makes an instance of every base class of a functional model.
        raise NotImplementedError(f"{type(self).__name__} has no forward pass: write its `assemble(inputs, taps)`.")

    def features(self, *names: str) -> keras.Model:
        """A functional model over the same weights that also outputs what happens inside.

        Args:
            names: any of `"hidden_states"` (the embeddings and each block's output, so layers + 1 entries), and, one
                entry a layer, `"attention_probs"`, `"attention_scores"` (scaled, before the mask), both (b, n, t, s),
                `"queries"`, `"keys"`, `"values"` (b, t, n, h).

        Returns:
            A model with the backbone's inputs, and its outputs plus one list a name.

        Raises:
            ValueError: a name that is none of these.

        >>> import numpy as np, garden
        >>> backbone = garden.BertBackbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
        >>> ids = np.array([[1, 2, 3]])
        >>> seen = backbone.features("hidden_states")(
        ...     {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1})
        >>> len(seen["hidden_states"])
        3
        """
        unknown = sorted(set(names) - set(self.feature_names))
        if unknown:
            known = ", ".join(self.feature_names)
            raise ValueError(f"There are no features named {', '.join(unknown)}; there are {known}.")
        taps = Taps(names)
        outputs = self.assemble(self.input, taps)
        return FunctionalModel(self.input, {**outputs, **taps.lists}, name=f"{self.name}_features")

    def get_config(self):
        return {**super().get_config(), **self.hyperparameters}

    def save_to_preset(self, preset_dir, max_shard_size=10):
        """Saves a folder in KerasHub's layout; a full disk leaves what was there before."""
        with whole_folder(preset_dir) as draft:
            super().save_to_preset(str(draft), max_shard_size)

    @classmethod
    def from_preset(cls, preset, load_weights: bool = True, **kwargs):
        """A backbone from a built-in name, a handle, a URL, an archive or a folder in any published format.

        Args:
            preset: see `garden.presets.locate`; `garden.presets.names()` lists the built-in ones.
            load_weights: False builds the architecture with random weights; built-in names then need no network.
            **kwargs: constructor arguments that replace the preset's, `dtype` among them.

        Raises:
            CheckpointError: the files are damaged, or hold a tensor that the weight-name table does not explain.

        >>> import garden
        >>> garden.BertBackbone.from_preset("bert_tiny_en_uncased", load_weights=False).count_params()
        4385920
        """
        from garden.presets import load_backbone  # the one upward arrow

        return load_backbone(preset, cls, load_weights, **kwargs)


class Taps:
    """Collects, while a forward pass is assembled, the tensors that were asked for by name.

    Args:
        names: the lists to fill; none for the plain forward pass, whose blocks then keep their fused attention.
    """

    def __init__(self, names=()):
        self.lists = {name: [] for name in names}
        self._taps = {}

    def split(self, prefix: str) -> tuple["Taps", "Taps"]:
        """Taps for the names with a prefix, which they are called without, and taps for all others."""
        parts = Taps(), Taps()
        for name, found in self.lists.items():
            parts[not name.startswith(prefix)].lists[name.removeprefix(prefix)] = found
        return parts

    def state(self, x):
        """Notes x (b, t, d) as the next hidden state and returns it."""
        self._note({"hidden_states": x})
        return x

    def replace(self, x):
        """Puts x (b, t, d) in the place of the last hidden state and returns it: a norm behind the last block."""
        for states in (self.lists[name] for name in self.lists.keys() & {"hidden_states"}):
            states[-1] = x
        return x

    def through(self, block, x, **kwargs):
        """Runs x (b, t, d) through a block, noting what was asked for, and returns its output."""
        if set(self.lists) <= {"hidden_states"}:
            return self.state(block(x, **kwargs))
        if block.name not in self._taps:  # a shared block runs again through the tap that it has
            self._taps[block.name] = Tap(block)
        x, seen = self._taps[block.name](x, **kwargs)
        self._note(seen)
        return self.state(x)

    def _note(self, tensors):
        for name in self.lists.keys() & tensors.keys():
            self.lists[name].append(tensors[name])


def _record(backbone, arguments):
    """Keeps the bound constructor arguments, past Keras's attribute tracking, which is not ready before `__init__`."""
    # The base class keeps and serialises these three itself.
    own = {name: value for name, value in arguments.items() if name not in ("self", "dtype", "kwargs")}
    object.__setattr__(backbone, "hyperparameters", own)
    for name, value in own.items():
        object.__setattr__(backbone, name, value)
