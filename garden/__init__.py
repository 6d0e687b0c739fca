"""garden: language models from before the LLM era, on Keras 3.

The face is lazy: `import garden` costs milliseconds and imports neither Keras nor a backend. A name is imported from
its file at its first use.

>>> import garden
>>> garden.BertBackbone.__name__
'BertBackbone'
"""

import importlib
from pathlib import Path

__version__ = "0.1.0"

# In a checkout the folders layers/, tasks/ and presets/ lie beside this one; an installed package holds them inside.
_here = Path(__file__).parent
if not (_here / "layers").is_dir():
    __path__.append(str(_here.parent))

_FACE = {
    "AlbertBackbone": "garden.albert",
    "AlbertSentencePieceTokenizer": "garden.albert",
    "AlbertTokenizer": "garden.albert",
    "Backbone": "garden.backbone",
    "BertBackbone": "garden.bert",
    "BertTokenizer": "garden.tokenizers",
    "BrightmartAlbertBackbone": "garden.brightmart_albert",
    "BrightmartAlbertTokenizer": "garden.brightmart_albert",
    "DebertaBackbone": "garden.deberta",
    "DebertaTokenizer": "garden.deberta_tokenizers",
    "DebertaV2Backbone": "garden.deberta",
    "DebertaV2Tokenizer": "garden.deberta_tokenizers",
    "Decoder": "garden.decoder",
    "DistilBertBackbone": "garden.distil_bert",
    "DistilBertTokenizer": "garden.distil_bert",
    "ElectraBackbone": "garden.electra",
    "ElectraTokenizer": "garden.electra",
    "Encoder": "garden.encoder",
    "Ernie3GenerationBackbone": "garden.ernie3",
    "Ernie3Tokenizer": "garden.ernie3",
    "Ernie3UnderstandingBackbone": "garden.ernie3",
    "ErnieBackbone": "garden.ernie",
    "ErnieTinyTokenizer": "garden.ernie",
    "ErnieTokenizer": "garden.ernie",
    "Gpt2Backbone": "garden.gpt2",
    "Gpt2Tokenizer": "garden.gpt_tokenizers",
    "Gpt3Backbone": "garden.gpt3",
    "GptBackbone": "garden.gpt",
    "GptTokenizer": "garden.gpt_tokenizers",
    "MarianBackbone": "garden.marian",
    "MarianTokenizer": "garden.marian",
    "MobileBertBackbone": "garden.mobile_bert",
    "MobileBertTokenizer": "garden.mobile_bert",
    "RobertaBackbone": "garden.roberta",
    "RobertaTokenizer": "garden.roberta",
    "TransformerXlBackbone": "garden.transformer_xl",
    "TransformerXlTokenizer": "garden.transformer_xl_tokenizer",
    "Seq2Seq": "garden.seq2seq",
    "ShawBackbone": "garden.shaw",
    "T5Backbone": "garden.t5",
    "T5EncoderBackbone": "garden.t5",
    "T5Tokenizer": "garden.t5",
    "TransformerBackbone": "garden.transformer",
    "TransformerTokenizer": "garden.transformer",
    "XlmRobertaBackbone": "garden.roberta",
    "XlmRobertaTokenizer": "garden.roberta",
    "XlnetBackbone": "garden.xlnet",
    "XlnetTokenizer": "garden.xlnet",
}
_FOLDERS = ("layers", "tasks", "presets")

__all__ = [*_FACE, *_FOLDERS, "backbones"]


def __getattr__(name: str):
    if name in _FOLDERS:
        return importlib.import_module(f"garden.{name}")
    if name in _FACE:
        return getattr(importlib.import_module(_FACE[name]), name)
    raise AttributeError(f"garden has no {name!r}; it has {', '.join(__all__)}")


def backbones() -> list[type]:
    """The backbone class of every family.

    >>> import garden
    >>> garden.BertBackbone in garden.backbones()
    True
    """
    return [__getattr__(name) for name in _FACE if name.endswith("Backbone") and name != "Backbone"]


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
