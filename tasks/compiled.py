"""A function over a model's variables, compiled by the backend of this run."""

from collections.abc import Callable

import keras


def compiled(function: Callable, variables: list, seeds: list = ()) -> Callable:
    """Compiles a function of arrays that reads Keras variables; PyTorch runs it as it is, without gradients.

    Args:
        function: takes and returns tensors, in any nesting.
        variables: what it reads.
        seeds: variables that it also changes, such as those of a sampler.

    Returns:
        A function of the same arguments.

    >>> import keras, numpy as np
    >>> from garden.tasks.compiled import compiled
    >>> weight = keras.Variable(3.0)
    >>> double = compiled(lambda x: x * weight, [weight])
    >>> float(double(np.float32(2.0)))
    6.0
    """
    return {"torch": _torch, "tensorflow": _tensorflow, "jax": _jax}[keras.backend.backend()](
        function, list(variables), list(seeds)
    )


def _torch(function, variables, seeds):
    import torch

    return torch.no_grad()(function)


def _tensorflow(function, variables, seeds):
    import tensorflow as tf

    # Numbers become tensors, lest every new one compile anew; a shape stays known, lest a length be None.
    traced = tf.function(function)
    return lambda *args: traced(*keras.tree.map_structure(tf.convert_to_tensor, args))


def _jax(function, variables, seeds):
    import jax

    @jax.jit
    def stateless(values, seed_values, *args):
        mapping = [*zip(variables, values, strict=True), *zip(seeds, seed_values, strict=True)]
        with keras.StatelessScope(state_mapping=mapping) as scope:
            outputs = function(*args)
        return outputs, [scope.get_current_value(seed) for seed in seeds]

    def run(*args):
        outputs, seed_values = stateless([v.value for v in variables], [v.value for v in seeds], *args)
        for seed, value in zip(seeds, seed_values, strict=True):
            seed.assign(value)
        return outputs

    return run
