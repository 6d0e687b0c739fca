"""ELECTRA's pretraining task: which tokens are not the original ones?"""

import keras
import keras_hub

from .task import Task


class ReplacedTokenDetector(Task, keras_hub.models.Task):
    """Replaced-token detection (Clark et al. 2020, section 3.1): one logit a token, positive where it was replaced.

    Args:
        backbone: a garden backbone.
        preprocessor: from strings to inputs; None to feed token ids.

    Returns:
        Logits (b, t).

    ```python
    detector = garden.tasks.ReplacedTokenDetector.from_preset("electra_small_discriminator_uncased_en")
    detector.predict(["the chef ate the meal"])
    ```
    """

    num_outputs = 2

    def __init__(self, backbone, preprocessor=None, **kwargs):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head = backbone.replaced_token_head(
            1, backbone.activation, dtype=backbone.dtype_policy, name="replaced_token"
        )
        logits = self.head(backbone(backbone.input)[self.reads], backbone.input["padding_mask"])
        super().__init__(inputs=backbone.input, outputs=keras.ops.squeeze(logits, axis=-1), **kwargs)

    def compile(self, optimizer="auto", loss="auto", **kwargs):
        """Keras's `compile`; `"auto"` is Adam at 5e-5 and binary cross-entropy from logits.

        Weigh padding with 0 in `sample_weight` (b, t).
        """
        super().compile(
            optimizer=keras.optimizers.Adam(5e-5) if optimizer == "auto" else optimizer,
            loss=keras.losses.BinaryCrossentropy(from_logits=True) if loss == "auto" else loss,
            **kwargs,
        )
