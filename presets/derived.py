"""Tensors that a format stores in another form than the name table wants them: cut, stacked or added up."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np


class Derived(Mapping):
    """A checkpoint in which some tensors are replaced by what is computed from them at each access.

    Args:
        tensors: name -> array, with a method `shape(name)`.
        computed: name -> function without arguments that gives its array.
        used: names that the functions read and that nothing else wants.

    >>> import numpy as np
    >>> from garden.presets.derived import Derived
    >>> stored = {"qk": np.arange(4)}
    >>> derived = Derived(stored, {"q": lambda: stored["qk"][:2], "k": lambda: stored["qk"][2:]}, used=["qk"])
    >>> sorted(derived), derived["k"].tolist()
    (['k', 'q'], [2, 3])
    """

    def __init__(self, tensors: Mapping, computed: Mapping[str, Callable[[], np.ndarray]], used=()):
        self._tensors, self._computed, self._used = tensors, dict(computed), frozenset(used)

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self._computed:
            return self._computed[name]()
        if name in self._used:
            raise KeyError(name)
        return self._tensors[name]

    def __contains__(self, name: object) -> bool:
        return name in self._computed or (name in self._tensors and name not in self._used)

    def __iter__(self) -> Iterator[str]:
        return iter((self._tensors.keys() - self._used) | self._computed.keys())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor; a computed one is computed for it."""
        return self._computed[name]().shape if name in self._computed else self._tensors.shape(name)
