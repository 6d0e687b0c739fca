"""A task as a TensorFlow SavedModel that takes raw strings."""

import os
from tempfile import TemporaryDirectory

import keras

from garden.files import whole_folder
from garden.tensorflow_text import TRIMMERS, TensorFlowForm
from garden.tokenizers import BertTokenizer

from .text_packer import TextPacker


def export_saved_model(task, folder: str | os.PathLike) -> None:
    """Writes a SavedModel with the tokenizer inside: strings (b,) in, the task's outputs out.

    Its endpoints are `serve(texts)` and, where a pair is one row, `serve_pairs(first, second)`. Import TensorFlow Text
    before the model is loaded; `garden.tensorflow_text.TensorFlowForm` states where its ids differ from the
    tokenizer's.

    Args:
        task: a task on raw strings whose inputs are those of its backbone, such as `TextClassifier`.
        folder: folder to write.

    Raises:
        RuntimeError: on the PyTorch backend, from which Keras writes no SavedModel.
        ValueError: the task has no preprocessor, or one that takes words; its inputs are not its backbone's; its
            tokenizer is no WordPiece, of which alone there is a form in TensorFlow.

    ```python
    garden.tasks.export_saved_model(classifier, "served")
    served = tf.saved_model.load("served")  # hold it: TensorFlow deletes the weights with it
    served.serve(["what a fine day"])
    ```
    """
    if keras.config.backend() == "torch":
        raise RuntimeError(
            "Keras writes no SavedModel from PyTorch: "
            "save_to_preset, then load and export it under KERAS_BACKEND=tensorflow."
        )
    if task.preprocessor is None:
        raise ValueError(f"{task.name} has no preprocessor, so there is no tokenizer to put into the SavedModel.")
    if not isinstance(task.preprocessor, TextPacker):
        raise ValueError(f"{task.name} takes words, not texts, which a SavedModel cannot: export the backbone alone.")
    inputs, backbone_inputs = ({name: x.shape for name, x in m.input.items()} for m in (task, task.backbone))
    if inputs != backbone_inputs:
        raise ValueError(f"{task.name} takes more than a text or a pair of texts: export its backbone alone.")
    if not isinstance(task.preprocessor.tokenizer, BertTokenizer):
        kind = type(task.preprocessor.tokenizer).__name__
        raise ValueError(
            f"A SavedModel can hold WordPiece only, not {kind}: export the model on token ids with Keras's "
            "task.export(), and tokenize in front of it."
        )
    if task.preprocessor.truncate not in TRIMMERS:
        rules = " or ".join(TRIMMERS)
        raise ValueError(f"A SavedModel can truncate by {rules}, not by {task.preprocessor.truncate!r}.")
    import tensorflow as tf

    settings = task.preprocessor
    with TemporaryDirectory() as draft:
        # One static length: JAX takes each input's unknown axis for another unknown.
        rows = keras.InputSpec(shape=(None, settings.sequence_length), dtype="int32")
        signature = [{name: rows for name in task.backbone.input}]
        task.export(draft, format="tf_saved_model", verbose=False, input_signature=signature)
        module = tf.Module()
        module.model = tf.saved_model.load(draft)
        module.form = TensorFlowForm(settings.tokenizer, settings.sequence_length, settings.truncate)

        def serve(*segments):
            packed = module.form(*segments)
            return module.model.serve({name: packed[name] for name in task.backbone.input})

        text = tf.TensorSpec((None,), tf.string)
        module.serve = tf.function(lambda texts: serve(texts), [text])
        if settings.pairs_share_a_row:
            module.serve_pairs = tf.function(lambda first, second: serve(first, second), [text, text])
        with whole_folder(folder) as target:
            # Gradients of what JAX traced cannot be saved, and serving needs none.
            options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
            tf.saved_model.save(module, str(target), options=options)
