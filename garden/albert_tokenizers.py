"""ALBERT's two tokenizers: WordPiece for the Chinese models, SentencePiece for the English ones."""

import keras
import tokenizers as rust

from garden.folded_sentence_piece import FoldedSentencePieceTokenizer
from garden.tokenizers import BertTokenizer


@keras.saving.register_keras_serializable("garden")
class AlbertTokenizer(BertTokenizer):
    __doc__ = BertTokenizer.__doc__.replace(
        "WordPiece as BERT, DistilBERT, ELECTRA, MobileBERT, TinyBERT and the Chinese models use it.",
        "WordPiece, as the Chinese ALBERT models use it; `from_preset` gives the English ones their SentencePiece.",
    )

    alternatives = ("AlbertSentencePieceTokenizer",)


@keras.saving.register_keras_serializable("garden")
class AlbertSentencePieceTokenizer(FoldedSentencePieceTokenizer):
    """The SentencePiece of the English models; `AlbertTokenizer.from_preset` gives it for their files.

    Args:
        proto: a SentencePiece `.model` file's path or bytes. None only for a tokenizer that will load its assets.
        lowercase: whether a text is lower-cased first, as the published models need. Accents always go.
        special_tokens_in_strings: whether special tokens in a text are that, or characters like any other.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no Unigram model, or lacks a special token.

    >>> import garden
    >>> garden.AlbertSentencePieceTokenizer().lowercase
    True
    """

    published_as = "AlbertTokenizer"
    special_names = {
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "start_token": "[CLS]",
        "end_token": "[SEP]",
        "mask_token": "[MASK]",
    }

    def __init__(self, proto=None, lowercase: bool = True, **kwargs):
        super().__init__(proto, lowercase, **kwargs)

    def _post_processor(self, ids):
        return rust.processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")],
        )
