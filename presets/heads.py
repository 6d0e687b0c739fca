"""The heads that Hugging Face gives every encoder under the same names."""

from .family import Head


def encoder_heads(architecture: str) -> dict[str, Head]:
    """The rows of those heads for one family.

    Args:
        architecture: what the names of its classes in transformers begin with, such as `"Bert"`.

    >>> from garden.presets.heads import encoder_heads
    >>> [head.architecture for head in encoder_heads("Bert").values()]
    ['BertForMultipleChoice', 'BertForQuestionAnswering', 'BertForTokenClassification']
    """
    return {
        "MultipleChoice": Head(
            architecture=f"{architecture}ForMultipleChoice", huggingface=(("classifier/logits", "classifier"),)
        ),
        "QuestionAnswering": Head(
            architecture=f"{architecture}ForQuestionAnswering",
            huggingface=(("question_answering/logits", "qa_outputs"),),
            # The scope of Google's fine-tuning script, which BERT, ALBERT and MobileBERT share.
            tensorflow1=(
                ("question_answering/logits/kernel", "cls/squad/output_weights"),
                ("question_answering/logits/bias", "cls/squad/output_bias"),
            ),
        ),
        "TokenClassifier": Head(
            architecture=f"{architecture}ForTokenClassification",
            huggingface=(("token_classifier/logits", "classifier"),),
        ),
    }
