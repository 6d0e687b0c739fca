"""The tokenizers of GPT: byte pairs of lower-cased words in the first, of bytes in GPT-2 and GPT-3."""

import keras
import tokenizers as rust

from garden.byte_pair import BytePairTokenizer


@keras.saving.register_keras_serializable("garden")
class Gpt2Tokenizer(BytePairTokenizer):
    """Byte-level BPE with one special token, `<|endoftext|>`, which starts, ends and fills rows.

    Args:
        vocabulary, merges, add_prefix_space, special_tokens_in_strings: as in `garden.RobertaTokenizer`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a file is malformed, the vocabulary lacks the special token, or a merge makes a token it lacks.

    Reference: [Radford et al., 2019](https://openai.com/research/better-language-models), section 2.2.

    >>> import garden
    >>> tokenizer = garden.Gpt2Tokenizer(["a", "b", "Ġ", "ab", "Ġab", "<|endoftext|>"], ["a b", "Ġ ab"])
    >>> tokenizer("ab ab<|endoftext|>"), tokenizer.detokenize([3, 4])
    ([3, 4, 5], 'ab ab')
    """

    published_as = "GPT2Tokenizer"
    special_names = dict.fromkeys(("pad_token", "unk_token", "start_token", "end_token"), "<|endoftext|>")
    numbers_segments = False


@keras.saving.register_keras_serializable("garden")
class GptTokenizer(BytePairTokenizer):
    """Byte pairs of the letters of lower-cased words, whose last piece ends in `</w>`; a letter it lacks is `<unk>`.

    The reference is the Rust recipe behind Hugging Face's tokenizer, which takes BERT's rules for words. OpenAI's own
    code cut words with spaCy, so that ids may differ on unusual text. There is no token that starts or ends a row.

    Args:
        vocabulary, merges, special_tokens_in_strings: as in `garden.RobertaTokenizer`.
        add_prefix_space: of no effect, since blanks are no part of a word here.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a file is malformed, the vocabulary lacks `<unk>`, or a merge makes a token it lacks.

    >>> import garden
    >>> tokenizer = garden.GptTokenizer(["<unk>", "a", "b", "a</w>", "b</w>", "ab</w>"], ["a b</w>"])
    >>> tokenizer("Ab b c"), tokenizer.detokenize([5, 4])
    ([5, 4, 0], 'ab b')
    """

    published_as = "OpenAIGPTTokenizer"
    special_names = {"unk_token": "<unk>", "pad_token": "<unk>"}
    numbers_segments = False

    def _recipe(self, tokens):
        suffix = {"end_of_word_suffix": "</w>", "unk_token": self.unk_token}
        tokenizer = self._byte_pairs(tokens, **suffix)
        tokenizer.normalizer = rust.normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = rust.pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = rust.decoders.BPEDecoder(suffix="</w>")
        return tokenizer
