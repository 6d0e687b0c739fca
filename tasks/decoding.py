"""What decoding checks and tidies: prompts before it, rows behind it, and the sampler."""

import numpy as np
from keras import ops


def without_left_padding(inputs: dict) -> dict:
    """Rows whose padding stands on the right, where the continuation goes.

    Args:
        inputs: dict of `token_ids` and `padding_mask` (b, t); in a row the tokens are one run.

    Raises:
        ValueError: a row without a token, or with padding inside.

    >>> import numpy as np
    >>> from garden.tasks.decoding import without_left_padding
    >>> rows = {"token_ids": np.array([[0, 0, 7, 8]]), "padding_mask": np.array([[0, 0, 1, 1]])}
    >>> without_left_padding(rows)["token_ids"].tolist()
    [[7, 8, 0, 0]]
    """
    ids, real = (ops.convert_to_numpy(inputs[name]) for name in ("token_ids", "padding_mask"))
    first, lengths = np.argmax(real > 0, axis=1), (real > 0).sum(axis=1)
    columns = np.arange(ids.shape[1])
    run = (columns >= first[:, None]) & (columns < (first + lengths)[:, None])
    if (run != (real > 0)).any() or not lengths.all():
        row = int(np.argmax((run != (real > 0)).any(axis=1) | (lengths == 0)))
        raise ValueError(f"Row {row} is no prompt: its tokens must be one run, at least one, with padding around it.")
    order = (columns + first[:, None]) % ids.shape[1]
    rolled = {"token_ids": ids, "padding_mask": (real > 0).astype(real.dtype)}
    return {**inputs, **{name: np.take_along_axis(array, order, axis=1) for name, array in rolled.items()}}


def refilled(token_ids, prompted, stop_token_ids=None):
    """Rows whose places behind the prompt hold no stop token, lest a sampler take what fills them for the end.

    Args:
        token_ids: int (b, t).
        prompted: bool (b, t), True in the prompt.
        stop_token_ids: ids that end a row, or None.

    >>> import numpy as np
    >>> from garden.tasks.decoding import refilled
    >>> np.array(refilled(np.array([[7, 0, 0]]), np.array([[True, False, False]]), [0])).tolist()
    [[7, 1, 1]]
    """
    stops = set(stop_token_ids or ())
    filler = next(i for i in range(len(stops) + 1) if i not in stops)
    return ops.where(prompted, token_ids, ops.full_like(token_ids, filler))


def until_stop(token_ids, prompted, stop_token_ids=None):
    """Which places of generated rows count: the prompt and all up to the first stop token behind it, which is included.

    Args:
        token_ids: int (b, t).
        prompted: bool (b, t), True in the prompt.
        stop_token_ids: ids that end a row, or None.

    Returns:
        bool (b, t).

    >>> import numpy as np
    >>> from garden.tasks.decoding import until_stop
    >>> prompted = np.array([[True, False, False, False]])
    >>> np.array(until_stop(np.array([[9, 5, 9, 4]]), prompted, [9])).tolist()
    [[True, True, True, False]]
    """
    stops = ops.zeros_like(prompted)
    for stop in stop_token_ids or ():
        stops = ops.logical_or(stops, ops.equal(token_ids, stop))
    stops = ops.cast(ops.logical_and(stops, ops.logical_not(prompted)), "int32")
    return ops.equal(ops.cumsum(stops, axis=1) - stops, 0)


def check_prompts(rows: list[list[int]], width: int) -> None:
    """Raises ValueError where a prompt leaves no room in a row.

    >>> from garden.tasks.decoding import check_prompts
    >>> check_prompts([[5, 6]], width=3)
    """
    for i, row in enumerate(rows):
        if len(row) >= width:
            raise ValueError(
                f"Prompt {i} has {len(row)} tokens, which leaves nothing of {width} to generate: shorten it, or "
                "raise max_length as far as the model's context goes."
            )


def texts(tokenizer, token_ids, padding_mask) -> list[str]:
    """The text of each generated row, without special tokens and without ids that no token has.

    Args:
        tokenizer: a garden tokenizer.
        token_ids, padding_mask: (b, t).
    """
    ids, real = ops.convert_to_numpy(token_ids), ops.convert_to_numpy(padding_mask)
    # A table may have more rows than there are tokens: T5's has 28.
    kept = real.astype(bool) & ~np.isin(ids, tokenizer.special_token_ids) & (ids < tokenizer.vocabulary_size())
    return [tokenizer.detokenize(row[keep].tolist()) for row, keep in zip(ids, kept, strict=True)]


def check_sampler(sampler, vocabulary_size: int) -> None:
    """Raises ValueError where a sampler has more beams or candidates than there are tokens.

    >>> import keras_hub
    >>> from garden.tasks.decoding import check_sampler
    >>> check_sampler(keras_hub.samplers.BeamSampler(num_beams=2), vocabulary_size=50)
    """
    for name in ("num_beams", "k"):
        number = getattr(sampler, name, None)
        if number is not None and not 1 <= number <= vocabulary_size:
            raise ValueError(
                f"{type(sampler).__name__} has {name}={number}, but the vocabulary {vocabulary_size} tokens: use 1 to "
                f"{vocabulary_size}."
            )
