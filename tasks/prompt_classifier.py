"""Classification without training: a language model is asked which label word it finds most probable."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from .causal_lm import CausalLM
from .masked_lm import MaskedLM
from .prompt_rows import Answer, Cloze, Continuation, log_probabilities
from .prompt_template import Example, PromptTemplate
from .seq2seq_lm import Seq2SeqLM

CONTENT_FREE = ("N/A", "[MASK]", "")


class PromptClassifier:
    """Zero-, one- and few-shot classification with any language model (Brown et al. 2020, section 2.4).

    A label's score is the logarithm of the probability of its words, given the prompt: written behind it by a
    `CausalLM`, written by the decoder of a `Seq2SeqLM`, filled in at `{mask}` by a `MaskedLM`.

    Args:
        model: a task with a preprocessor.
        template: a `PromptTemplate`, or its text; for a `MaskedLM`, and only there, with `{mask}`.
        labels: name of a class -> the words that stand for it, as they are written: `" good"` with its blank where
            words have one. A list of words names the classes by them.
        demonstrations: (example, class name) of each shot, in order.
        calibration: `"content_free"` divides the probabilities by those that examples without content have (Zhao et al.
            2021), `"N/A"`, `"[MASK]"` and `""`; None leaves them.
        answer_context: a text such as `"Answer:"`: a label's probability behind it, without any example, is divided out
            (Brown et al. 2020, section 2.4); None for none.
        per_token: whether a label's score is the mean over its tokens, and not the sum.

    Raises:
        ValueError: fewer than two labels, one without a token, a template that does not fit the model, a shot of no
            class.

    ```python
    gpt2 = garden.tasks.CausalLM.from_preset("gpt2_base_en")
    words, shots = {"pos": " good", "neg": " bad"}, [("A delight.", "pos"), ("A bore.", "neg")]
    classifier = garden.tasks.PromptClassifier(gpt2, "Review: {text}\\nSentiment:", words, shots)
    names, probabilities = classifier.predict_labels(["What a fine film."])
    ```
    """

    def __init__(
        self,
        model,
        template: PromptTemplate | str,
        labels: Mapping[str, str] | Sequence[str],
        demonstrations: Sequence[tuple[Example, str]] = (),
        calibration: str | None = None,
        answer_context: str | None = None,
        per_token: bool = False,
    ):
        if model.preprocessor is None:
            raise ValueError(f"{model.name} has no preprocessor, so it cannot read a prompt.")
        if calibration not in (None, "content_free"):
            raise ValueError(f"There is no calibration {calibration!r}; there is content_free, or None.")
        self.model = model
        self.template = PromptTemplate(template) if isinstance(template, str) else template
        self.labels = dict(labels) if isinstance(labels, Mapping) else {word.strip(): word for word in labels}
        self.calibration, self.answer_context, self.per_token = calibration, answer_context, per_token
        self._asker = self._find_asker()(model, self.template)
        self._check_labels()
        self.demonstrations = [(example, self._word(name)) for example, name in demonstrations]

    def predict_labels(self, x: Sequence[Example], batch_size: int = 16) -> tuple[list[str], np.ndarray]:
        """The most probable class of each example, by name, and the probabilities of all.

        Args:
            x: strings, pairs or dictionaries, as the template wants them.
            batch_size: rows a step; rows of similar length share one.

        Returns:
            Names, and float32 (len(x), c).

        Raises:
            ValueError: an example that does not fill the template, or a prompt longer than the model's context.
        """
        scores = self.scores(x, batch_size)
        if self.calibration:
            scores = scores - self._content_free
        probabilities = _softmax(scores)
        names = list(self.labels)
        return [names[i] for i in probabilities.argmax(axis=1)], probabilities.astype("float32")

    def evaluate(self, x: Sequence[Example], y: Sequence[str], batch_size: int = 16) -> float:
        """The share of examples whose class, by name, is the most probable one."""
        if len(x) != len(y) or not len(y):
            raise ValueError(f"There are {len(x)} examples and {len(y)} classes: give as many of each, at least one.")
        for name in y:
            self._word(name)
        return float(
            np.mean([found == name for found, name in zip(self.predict_labels(x, batch_size)[0], y, strict=True)])
        )

    def scores(self, x: Sequence[Example], batch_size: int = 16) -> np.ndarray:
        """The logarithm of each label's probability behind each prompt, before calibration: float64 (len(x), c)."""
        words = list(self.labels.values())
        rows = [self._asker.rows(example, self.demonstrations, words) for example in self._listed(x)]
        self._check_lengths(rows)
        flat = [row for own in rows for row in own]
        values = iter(log_probabilities(self._asker, flat, batch_size))
        scores, counts = np.zeros((len(rows), len(words))), np.zeros((len(rows), len(words)))
        for i, own in enumerate(rows):
            for row in own:
                for (label, _, _), value in zip(row.tokens, next(values), strict=True):
                    scores[i, label] += value
                    counts[i, label] += 1
        scores = scores / counts if self.per_token else scores
        return scores if self.answer_context is None or not len(rows) else scores - self._context

    @cached_property
    def _context(self):
        """The labels' scores behind the answer context alone, float64 (1, c)."""
        template = PromptTemplate(self.answer_context + "{text}")
        return PromptClassifier(self.model, template, self.labels, per_token=self.per_token).scores([""])

    @cached_property
    def _content_free(self):
        """The logarithm of the labels' mean probability where an example says nothing, float64 (1, c)."""
        examples = [dict.fromkeys(self.template.slots, text) for text in CONTENT_FREE]
        return np.log(_softmax(self.scores(examples)).mean(axis=0, keepdims=True))

    def _find_asker(self):
        kind = next((kind for task, kind in _ASKERS.items() if isinstance(self.model, task)), None)
        if kind is None:
            known = ", ".join(task.__name__ for task in _ASKERS)
            raise ValueError(f"A {type(self.model).__name__} is no language model: give one of {known}.")
        if kind.cloze != self.template.is_cloze:
            text, way = self.template.text, "needs {mask} where the label goes" if kind.cloze else "takes no {mask}"
            raise ValueError(f"A {type(self.model).__name__} {way}, unlike the template {text!r}.")
        return kind

    def _check_labels(self):
        if len(self.labels) < 2:
            raise ValueError(f"There are {len(self.labels)} labels: give at least two.")
        for name, word in self.labels.items():
            if not self._asker.ids(word):
                raise ValueError(f"The word {word!r} of the label {name!r} has no token.")

    def _word(self, name):
        if name not in self.labels:
            raise ValueError(f"There is no label {name!r}; there are {', '.join(self.labels)}.")
        return self.labels[name]

    def _listed(self, x):
        if isinstance(x, (str, Mapping)) or not hasattr(x, "__len__"):
            raise ValueError("Give a list of examples, even for one.")
        return x

    def _check_lengths(self, rows):
        limit = self.model.backbone.max_sequence_length
        for i, own in enumerate(rows):
            longest = max(len(ids) for row in own for ids in row.inputs.values())
            if limit is not None and longest > limit:
                shots = f"its {len(self.demonstrations)} demonstrations"
                raise ValueError(
                    f"The prompt of example {i} has {longest} tokens with {shots}, more than the {limit} of the "
                    "model's context: use fewer, or shorter ones."
                )


_ASKERS = {CausalLM: Continuation, MaskedLM: Cloze, Seq2SeqLM: Answer}


def _softmax(scores):
    if not scores.size:
        return scores
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
