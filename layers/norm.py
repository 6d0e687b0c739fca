"""Normalisations by name, as activations are, and the one that normalises nothing."""

import keras
from keras import layers


@keras.saving.register_keras_serializable("garden")
class NoNorm(layers.Layer):
    """x * gamma + beta, the scale and shift of layer normalisation without its statistics (Sun et al. 2020, 3.4).

    It has no epsilon, and two vectors are all that it stores.

    Call arguments:
        x: float (b, t, d).

    Returns:
        float (b, t, d).

    >>> import numpy as np
    >>> from garden.layers import NoNorm
    >>> norm = NoNorm()
    >>> norm(np.ones((1, 3, 8), "float32")).shape == (1, 3, 8), norm.count_params()
    (True, 16)
    """

    def build(self, input_shape):
        self.gamma = self.add_weight(name="gamma", shape=(input_shape[-1],), initializer="ones")
        self.beta = self.add_weight(name="beta", shape=(input_shape[-1],), initializer="zeros")
        self.built = True

    def call(self, x):
        return x * self.gamma + self.beta


def normalization(kind: str, epsilon: float, **kwargs) -> layers.Layer:
    """A new normalisation layer behind a name.

    Args:
        kind: `"layer_norm"` (Ba et al. 2016), `"rms_norm"` (Zhang and Sennrich 2019), which divides by the root mean
            square and has no bias, `"no_norm"`, or `"identity"`, which changes nothing.
        epsilon: of the variance or the mean square; the others have none.
        **kwargs: `dtype` and `name` of the layer.

    Raises:
        ValueError: none of these names.

    >>> from garden.layers import normalization
    >>> type(normalization("no_norm", 1e-12)).__name__
    'NoNorm'
    """
    if kind == "layer_norm":
        return layers.LayerNormalization(epsilon=epsilon, **kwargs)
    if kind == "rms_norm":
        return layers.RMSNormalization(epsilon=epsilon, **kwargs)
    if kind == "no_norm":
        return NoNorm(**kwargs)
    if kind == "identity":
        return layers.Identity(**kwargs)
    raise ValueError(f"There is no normalization {kind!r}; there are layer_norm, rms_norm, no_norm, identity.")
