"""The heads that Hugging Face gives every encoder under the same names."""

from .family import Head


def encoder_heads(architecture: str) -> dict[str, Head]:
    """The rows of those heads for one family.

    Args:
        architecture: what the names of its classes in transformers begin with, such as `"Bert"`.

    >>> from garden.presets.heads import encoder_heads
    >>> [head.architecture for head in encoder_heads("Bert").values()]
    ['BertForMultipleChoice', 'BertForTokenClassification']
    """
    return {
        "MultipleChoice": Head(
            architecture=f"{architecture}ForMultipleChoice", huggingface=(("classifier/logits", "classifier"),)
        ),
        "TokenClassifier": Head(
            architecture=f"{architecture}ForTokenClassification",
            huggingface=(("token_classifier/logits", "classifier"),),
        ),
    }
