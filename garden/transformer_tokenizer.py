"""A tokenizer for models whose vocabulary everybody makes anew: SentencePiece with padding and an end."""

import keras
import tokenizers as rust

from garden.sentence_piece import SentencePieceTokenizer


@keras.saving.register_keras_serializable("garden")
class TransformerTokenizer(SentencePieceTokenizer):
    """SentencePiece over source and target alike. A text ends with `</s>`; a decoder starts with padding.

    Train the model file with `pad_id=0, eos_id=1, unk_id=2, bos_id=-1`.

    Args:
        proto: a SentencePiece `.model` file's path or bytes. None only for a tokenizer that will load its assets.
        special_tokens_in_strings: whether special tokens in a text are that, or characters like any other.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no Unigram model, or lacks a special token.

    >>> import garden
    >>> garden.TransformerTokenizer().pad_token
    '<pad>'
    """

    published_as = "T5Tokenizer"
    special_names = {"pad_token": "<pad>", "end_token": "</s>", "unk_token": "<unk>"}
    numbers_segments = False
    start_token_id = None

    def _post_processor(self, ids):
        return rust.processors.TemplateProcessing(
            single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", ids["</s>"])]
        )
