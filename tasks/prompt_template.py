"""How an example becomes a prompt: templates and demonstrations as data."""

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Example = str | tuple[str, ...] | Mapping[str, str]
MASK = "mask"


@dataclass(frozen=True)
class PromptTemplate:
    """A text with slots (Brown et al. 2020, section 2): `{text}` for a string, `{first}` and `{second}` for a pair.

    A dictionary fills slots of any names. Where a masked language model is asked, `{mask}` says where the label stands;
    a causal one writes it behind the prompt.

    Args:
        text: the template; doubled braces are braces.
        instruction: what stands before everything, once.
        separator: what stands between the instruction, the demonstrations and the prompt.

    Raises:
        ValueError: no slot for an example, or a slot without a name.

    >>> from garden.tasks import PromptTemplate
    >>> template = PromptTemplate("Review: {text}\\nSentiment:", instruction="Judge the film.")
    >>> print(template.prompt("What a bore.", [("A delight.", " good")]))
    Judge the film.
    <BLANKLINE>
    Review: A delight.
    Sentiment: good
    <BLANKLINE>
    Review: What a bore.
    Sentiment:
    """

    text: str
    instruction: str = ""
    separator: str = "\n\n"

    def __post_init__(self):
        try:
            names = self._names()
        except ValueError as error:
            raise ValueError(f"The template {self.text!r} is malformed: {error}; write {{{{ for a brace.") from None
        if not all(name.isidentifier() for name in names):
            raise ValueError(f"The template {self.text!r} has a slot without a name: write {{text}}.")
        if not set(names) - {MASK}:
            raise ValueError(f"The template {self.text!r} has no slot for an example: write {{text}} where it goes.")
        if names.count(MASK) > 1:
            raise ValueError(f"The template {self.text!r} has more than one {{mask}}.")

    @property
    def is_cloze(self) -> bool:
        """Whether the label stands inside, at `{mask}`."""
        return MASK in self._names()

    @property
    def slots(self) -> list[str]:
        """The names of what an example fills."""
        return [name for name in dict.fromkeys(self._names()) if name != MASK]

    def _names(self):
        return [name for _, name, _, _ in string.Formatter().parse(self.text) if name is not None]

    def fill(self, example: Example, label: str = "") -> str:
        """One example with its label, at `{mask}` or behind the text.

        Raises:
            ValueError: an example that does not have what the slots want.
        """
        values = {**_slots(example), MASK: label}
        try:
            filled = self.text.format(**values)
        except KeyError as error:
            held = ", ".join(f"{{{name}}}" for name in values if name != MASK)
            raise ValueError(f"The template wants {{{error.args[0]}}}, and the example fills {held}.") from None
        return filled if self.is_cloze else filled + label

    def prompt(self, example: Example, demonstrations: Sequence[tuple[Example, str]] = (), label: str = "") -> str:
        """The instruction, the demonstrations with their labels, and the example.

        Args:
            example: what is asked.
            demonstrations: (example, label) of each shot, in order; none for a zero-shot prompt.
            label: what goes where the label does, such as a mask token.
        """
        parts = [self.instruction] if self.instruction else []
        parts += [self.fill(*shot) for shot in demonstrations]
        return self.separator.join([*parts, self.fill(example, label)])


def _slots(example):
    if isinstance(example, str):
        return {"text": example}
    if isinstance(example, Mapping):
        return dict(example)
    if isinstance(example, (tuple, list)) and len(example) == 2:
        return dict(zip(("first", "second"), example, strict=True))
    raise ValueError(f"An example is a string, a pair or a dictionary of strings, not {example!r}.")
