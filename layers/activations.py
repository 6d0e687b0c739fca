"""Activations by the names that checkpoints need: two GELUs, 4e-4 apart, so neither is called just "gelu"."""

from collections.abc import Callable

import keras

_ACTIVATIONS = {
    "gelu_erf": lambda x: keras.ops.gelu(x, approximate=False),
    "gelu_tanh": lambda x: keras.ops.gelu(x, approximate=True),
}


def activation(name: str | Callable | None) -> Callable:
    """The function behind an activation's name.

    Args:
        name: `"gelu_erf"` (exact, Hendrycks and Gimpel 2016), `"gelu_tanh"` (its approximation, Google's code since
            February 2019), any name that Keras knows, a callable, or None for the identity.

    Raises:
        ValueError: neither garden nor Keras has that name.

    >>> from garden.layers import activation
    >>> round(float(activation("gelu_erf")(1.0)), 4)
    0.8413
    """
    return _ACTIVATIONS.get(name) or keras.activations.get(name)
