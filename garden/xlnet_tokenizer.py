"""XLNet's tokenizer: SentencePiece whose special tokens stand behind the text, and whose padding in front of it."""

import keras
import tokenizers as rust

from garden.folded_sentence_piece import FoldedSentencePieceTokenizer


@keras.saving.register_keras_serializable("garden")
class XlnetTokenizer(FoldedSentencePieceTokenizer):
    """XLNet's SentencePiece: `A <sep> <cls>` or `A <sep> B <sep> <cls>`, segments 0, 1, and 2 for `<cls>`.

    Args:
        proto: a SentencePiece `.model` file's path or bytes. None only for a tokenizer that will load its assets.
        lowercase: whether a text is lower-cased first; the published models are cased. Accents always go.
        special_tokens_in_strings: whether special tokens in a text are that, or characters like any other.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no Unigram model, or lacks a special token.

    >>> import garden
    >>> garden.XlnetTokenizer().pads_left
    True
    """

    published_as = "XLNetTokenizer"
    special_names = {
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "end_token": "<sep>",
        "cls_token": "<cls>",
        "mask_token": "<mask>",
    }
    start_token_id = None
    pads_left = True

    @property
    def suffix_ids(self):
        return (self.cls_token_id,)

    def _post_processor(self, ids):
        return rust.processors.TemplateProcessing(
            single="$A:0 <sep>:0 <cls>:2",
            pair="$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2",
            special_tokens=[(token, ids[token]) for token in ("<sep>", "<cls>")],
        )
