"""The libraries that are compared, each behind the same few calls; nothing is imported before it is used."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

# garden's arguments and Hugging Face's names for them. KerasHub's BERT knows the tanh GELU only, so all compute that.
SIZES = {
    "base": {"num_layers": 12, "num_heads": 12, "hidden_dim": 768, "intermediate_dim": 3072},
    "large": {"num_layers": 24, "num_heads": 16, "hidden_dim": 1024, "intermediate_dim": 4096},
    "toy": {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32},
}
VOCABULARY_SIZE, LEARNING_RATE, WEIGHT_DECAY = 30_522, 5e-5, 0.01


class KerasPeer:
    """What garden and KerasHub have in common: compiled steps of a Keras model, on the backend in use."""

    def encoder(self, source: str | Path) -> Callable:
        """A function from inputs to the sequence output (b, t, d).

        Args:
            source: a key of `SIZES` for random weights, or a Hugging Face folder.
        """
        model = self.backbone(source)
        return lambda inputs: model.predict_on_batch(inputs)["sequence_output"]

    def trainer(self, source: str | Path) -> Callable:
        """A function from inputs and labels to the loss of one step of training a classifier."""
        import keras

        model = self.classifier(self.backbone(source))
        model.compile(
            optimizer=keras.optimizers.AdamW(LEARNING_RATE, weight_decay=WEIGHT_DECAY),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        return lambda inputs, labels: model.train_on_batch(inputs, labels, return_dict=True)["loss"]


class Garden(KerasPeer):
    def backbone(self, source):
        import garden

        if source not in SIZES:
            return garden.BertBackbone.from_preset(source)
        return garden.BertBackbone(VOCABULARY_SIZE, activation="gelu_tanh", **SIZES[source])

    def classifier(self, backbone):
        from garden.tasks import TextClassifier

        return TextClassifier(backbone, num_classes=2)


class KerasHub(KerasPeer):
    def backbone(self, source):
        from keras_hub.models import BertBackbone

        if source not in SIZES:
            return BertBackbone.from_preset(str(source))
        return BertBackbone(VOCABULARY_SIZE, **SIZES[source])

    def classifier(self, backbone):
        from keras_hub.models import BertTextClassifier

        return BertTextClassifier(backbone, num_classes=2)


class Transformers:
    """PyTorch as the library's own examples run it: eager, no gradients for inference, a plain loop for training."""

    def encoder(self, source):
        import torch
        from transformers import BertModel

        model = self.model(BertModel, source).eval()

        def forward(inputs):
            with torch.no_grad():
                return model(**_arguments(inputs)).last_hidden_state.numpy()

        return forward

    def trainer(self, source):
        import torch
        from transformers import BertForSequenceClassification

        model = self.model(BertForSequenceClassification, source).train()
        optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)

        def step(inputs, labels):
            loss = model(**_arguments(inputs), labels=torch.from_numpy(labels).long()).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.item()

        return step

    @staticmethod
    def model(cls, source):
        return cls(bert_config(source)) if source in SIZES else cls.from_pretrained(source)

    def backbone(self, source):
        from transformers import BertModel

        return self.model(BertModel, source)


PEERS = {"garden": Garden(), "KerasHub": KerasHub(), "transformers": Transformers()}


def bert_config(size: str):
    """The Hugging Face configuration of one of `SIZES`."""
    from transformers import BertConfig

    own = SIZES[size]
    return BertConfig(
        vocab_size=VOCABULARY_SIZE,
        num_hidden_layers=own["num_layers"],
        num_attention_heads=own["num_heads"],
        hidden_size=own["hidden_dim"],
        intermediate_size=own["intermediate_dim"],
        hidden_act="gelu_pytorch_tanh",
    )


def batch(small: bool) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Inputs (b, t) and labels (b,): 8 rows of 128 tokens, an eighth of them padding on average."""
    rows, length = (2, 8) if small else (8, 128)
    random = np.random.default_rng(0)
    lengths = np.linspace(length * 3 // 4, length, rows).astype(int)
    mask = (np.arange(length) < lengths[:, None]).astype("int32")
    ids = random.integers(1000, VOCABULARY_SIZE, (rows, length), "int32") * mask
    inputs = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": mask}
    return inputs, random.integers(0, 2, rows, "int32")


def _arguments(inputs):
    import torch

    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
    return {theirs: torch.from_numpy(inputs[ours]).long() for ours, theirs in names.items()}
