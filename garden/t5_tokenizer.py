"""T5's tokenizer: SentencePiece, and the sentinels that stand for what a text leaves out."""

import keras
import tokenizers as rust

from garden.sentence_piece import SentencePieceTokenizer
from garden.vocabulary import read_json


@keras.saving.register_keras_serializable("garden")
class T5Tokenizer(SentencePieceTokenizer):
    """SentencePiece with `<extra_id_0>`, `<extra_id_1>`, ... on top, numbered from the last id down.

    A text ends with `</s>` and nothing starts it; a decoder starts with padding. mT5's model file has sentinels of its
    own, so that none are added.

    Args:
        proto: a SentencePiece `.model` file's path or bytes. None only for a tokenizer that will load its assets.
        extra_ids: how many sentinels to add, where the model file has none.
        special_tokens_in_strings: whether special tokens in a text are that, or characters like any other.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no Unigram model, or lacks a special token.

    Reference: [Raffel et al., 2020](https://arxiv.org/abs/1910.10683), section 3.1.4.

    >>> import garden
    >>> garden.T5Tokenizer().extra_ids
    100
    """

    published_as = "T5Tokenizer"
    special_names = {"pad_token": "<pad>", "end_token": "</s>", "unk_token": "<unk>"}
    numbers_segments = False
    start_token_id = None

    def __init__(self, proto=None, extra_ids: int = 100, **kwargs):
        self.extra_ids = extra_ids
        super().__init__(proto, **kwargs)

    def sentinel_id(self, number: int) -> int:
        """The id of `<extra_id_NUMBER>`, or a ValueError."""
        known = self._ready().get_vocab()
        for token in (f"<extra_id_{number}>", f"▁<extra_id_{number}>"):
            if token in known:
                return known[token]
        raise ValueError(f"There is no sentinel <extra_id_{number}> in the vocabulary of {len(known)} tokens.")

    @classmethod
    def _settings(cls, folder):
        stated = read_json(folder / "tokenizer_config.json", {})
        return {"extra_ids": stated["extra_ids"]} if "extra_ids" in stated else {}

    def _pieces(self, model):
        own = any("<extra_id_" in piece for piece, _ in model.pieces[-1:])
        extra = [] if own else [(f"<extra_id_{i}>", 0.0) for i in reversed(range(self.extra_ids))]
        return [*model.pieces, *extra], model.unknown_id

    def _post_processor(self, ids):
        return rust.processors.TemplateProcessing(
            single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", ids["</s>"])]
        )

    def _take(self, tokenizer):
        known = tokenizer.get_vocab()
        sentinels = sorted((token for token in known if token.startswith("<extra_id_")), key=known.get)
        tokenizer.add_special_tokens([rust.AddedToken(token, special=True) for token in sentinels])
        super()._take(tokenizer)

    def save_published(self, folder):
        return {"extra_ids": self.extra_ids}

    def get_config(self):
        return {**super().get_config(), "extra_ids": self.extra_ids}
