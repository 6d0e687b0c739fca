"""Tasks: a backbone, a head and a preprocessor behind `fit`, `evaluate` and `predict` on raw strings.

The classes here are generic over backbones. The class of one family, which KerasHub's loaders look for, is generated:
`garden.tasks.BertTextClassifier` is `TextClassifier` for `BertBackbone`.
"""

if __name__ != "garden.tasks":
    raise ImportError(f"import garden.tasks, not {__name__}: a second copy would register every Keras class twice")

from garden import backbones

from .batching import length_grouped, predict_sorted
from .cmrc_metrics import CMRC
from .masked_lm import Filling, MaskedLM
from .next_sentence import NextSentence
from .preprocessing import MaskedLMPreprocessor, TextClassifierPreprocessor
from .question_answering import QuestionAnswering
from .question_answering_preprocessor import QuestionAnsweringPreprocessor
from .replaced_token_detector import ReplacedTokenDetector
from .saved_model import export_saved_model
from .span_decoding import Answer, Candidate, decode
from .squad import Example, Span, read_squad, write_predictions
from .squad_metrics import SQUAD, best_null_threshold, evaluate_answers
from .task import Task, family_class
from .text_classifier import TextClassifier

__all__ = [
    "CMRC",
    "SQUAD",
    "Answer",
    "Candidate",
    "Example",
    "Filling",
    "MaskedLM",
    "MaskedLMPreprocessor",
    "NextSentence",
    "QuestionAnswering",
    "QuestionAnsweringPreprocessor",
    "ReplacedTokenDetector",
    "Span",
    "Task",
    "TextClassifier",
    "TextClassifierPreprocessor",
    "best_null_threshold",
    "decode",
    "evaluate_answers",
    "export_saved_model",
    "family_class",
    "length_grouped",
    "predict_sorted",
    "read_squad",
    "write_predictions",
]

_PREPROCESSORS = {
    MaskedLM: MaskedLMPreprocessor,
    NextSentence: TextClassifierPreprocessor,
    QuestionAnswering: QuestionAnsweringPreprocessor,
    ReplacedTokenDetector: TextClassifierPreprocessor,
    TextClassifier: TextClassifierPreprocessor,
}

for _backbone in backbones():
    _parts = {"tokenizer_cls": _backbone.tokenizer_cls, "input_names": _backbone.input_names}
    _made = {
        preprocessor: family_class(preprocessor, _backbone, **_parts)
        for preprocessor in dict.fromkeys(_PREPROCESSORS.values())
    }
    _tasks = [
        family_class(task, _backbone, preprocessor_cls=_made[part])
        for task, part in _PREPROCESSORS.items()
        if task is not NextSentence or _backbone.classifier_pooler is None
    ]
    for _class in (*_made.values(), *_tasks):
        globals()[_class.__name__] = _class
        __all__.append(_class.__name__)
