"""Tasks: a backbone, a head and a preprocessor behind `fit`, `evaluate` and `predict` on raw strings.

The classes here are generic over backbones. The class of one family, which KerasHub's loaders look for, is generated:
`garden.tasks.BertTextClassifier` is `TextClassifier` for `BertBackbone`.
"""

if __name__ != "garden.tasks":
    raise ImportError(f"import garden.tasks, not {__name__}: a second copy would register every Keras class twice")

from garden import backbones

from .batching import batches_by_length, length_grouped, predict_sorted
from .beam_question_answering import BeamQuestionAnswering, BeamQuestionAnsweringPreprocessor
from .causal_lm import CausalLM
from .causal_lm_preprocessor import CausalLMPreprocessor
from .cmrc_metrics import CMRC
from .embedding_losses import CosineSimilarityLoss, MultipleNegativesRankingLoss
from .entities import EntityScores, EntitySpan, Score, bio_labels, entity_scores, spans
from .masked_lm import Filling, MaskedLM
from .multiple_choice import MultipleChoice
from .multiple_choice_data import read_c3, read_race, read_swag
from .multiple_choice_preprocessing import MultipleChoicePreprocessor
from .neighbours import nearest, similarity
from .next_sentence import NextSentence, SentenceOrder
from .preprocessing import MaskedLMPreprocessor, TextClassifierPreprocessor
from .prompt_classifier import PromptClassifier
from .prompt_template import PromptTemplate
from .question_answering import QuestionAnswering
from .question_answering_preprocessor import QuestionAnsweringPreprocessor
from .replaced_token_detector import ReplacedTokenDetector
from .saved_model import export_saved_model
from .seq2seq_lm import Seq2SeqLM
from .seq2seq_lm_preprocessor import Seq2SeqLMPreprocessor
from .smoothed_crossentropy import SmoothedCrossentropy
from .span_decoding import Answer, Candidate, decode
from .squad import AnswerSpan, Example, read_squad, write_predictions
from .squad_metrics import SQUAD, best_null_threshold, evaluate_answers
from .stream_lm import StreamLM
from .task import Task, family_class
from .text_classifier import TextClassifier
from .text_embedder import TextEmbedder, TextEmbedderPreprocessor
from .token_classifier import Entity, TokenClassifier
from .token_classifier_preprocessor import TokenClassifierPreprocessor

__all__ = [
    "CMRC",
    "SQUAD",
    "Answer",
    "AnswerSpan",
    "BeamQuestionAnswering",
    "BeamQuestionAnsweringPreprocessor",
    "CausalLM",
    "CausalLMPreprocessor",
    "Candidate",
    "CosineSimilarityLoss",
    "Entity",
    "EntityScores",
    "EntitySpan",
    "Example",
    "Filling",
    "MaskedLM",
    "MaskedLMPreprocessor",
    "MultipleChoice",
    "MultipleChoicePreprocessor",
    "MultipleNegativesRankingLoss",
    "NextSentence",
    "PromptClassifier",
    "PromptTemplate",
    "QuestionAnswering",
    "QuestionAnsweringPreprocessor",
    "ReplacedTokenDetector",
    "Score",
    "SentenceOrder",
    "StreamLM",
    "SmoothedCrossentropy",
    "Seq2SeqLM",
    "Seq2SeqLMPreprocessor",
    "Task",
    "TextClassifier",
    "TextClassifierPreprocessor",
    "TextEmbedder",
    "TextEmbedderPreprocessor",
    "TokenClassifier",
    "TokenClassifierPreprocessor",
    "batches_by_length",
    "best_null_threshold",
    "bio_labels",
    "decode",
    "entity_scores",
    "evaluate_answers",
    "export_saved_model",
    "family_class",
    "length_grouped",
    "nearest",
    "predict_sorted",
    "read_c3",
    "read_race",
    "read_squad",
    "read_swag",
    "similarity",
    "spans",
    "write_predictions",
]

_PREPROCESSORS = {
    BeamQuestionAnswering: BeamQuestionAnsweringPreprocessor,
    CausalLM: CausalLMPreprocessor,
    MaskedLM: MaskedLMPreprocessor,
    MultipleChoice: MultipleChoicePreprocessor,
    NextSentence: TextClassifierPreprocessor,
    QuestionAnswering: QuestionAnsweringPreprocessor,
    ReplacedTokenDetector: TextClassifierPreprocessor,
    SentenceOrder: TextClassifierPreprocessor,
    Seq2SeqLM: Seq2SeqLMPreprocessor,
    TextClassifier: TextClassifierPreprocessor,
    TextEmbedder: TextEmbedderPreprocessor,
    TokenClassifier: TokenClassifierPreprocessor,
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
        if task.fits(_backbone)
    ]
    for _class in (*_made.values(), *_tasks):
        globals()[_class.__name__] = _class
        __all__.append(_class.__name__)
