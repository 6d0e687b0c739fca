"""ERNIE's checkpoint table: BERT's names and one table more, which a switch in the configuration announces.

Baidu publishes it for Paddle, whose names are those of `paddle.nn.TransformerEncoder`.
"""

from dataclasses import replace

from .bert import FAMILY as BERT
from .family import Head

_PADDLE = {
    # Hugging Face                                Paddle, where it is another name
    "embeddings.LayerNorm": "embeddings.layer_norm",
    "encoder.layer.{i}.attention.self.query": "encoder.layers.{i}.self_attn.q_proj",
    "encoder.layer.{i}.attention.self.key": "encoder.layers.{i}.self_attn.k_proj",
    "encoder.layer.{i}.attention.self.value": "encoder.layers.{i}.self_attn.v_proj",
    "encoder.layer.{i}.attention.output.dense": "encoder.layers.{i}.self_attn.out_proj",
    "encoder.layer.{i}.attention.output.LayerNorm": "encoder.layers.{i}.norm1",
    "encoder.layer.{i}.intermediate.dense": "encoder.layers.{i}.linear1",
    "encoder.layer.{i}.output.dense": "encoder.layers.{i}.linear2",
    "encoder.layer.{i}.output.LayerNorm": "encoder.layers.{i}.norm2",
    "cls.predictions.transform.dense": "cls.predictions.transform",
    "cls.predictions.transform.LayerNorm": "cls.predictions.layer_norm",
    "cls.predictions.bias": "cls.predictions.decoder_bias",
    "qa_outputs": "classifier",
}


def _paddle(rows):
    return tuple((ours, _PADDLE.get(theirs, theirs)) for ours, theirs in rows)


def _read(config):
    # Baidu's English configs state a size without the switch, and their code then builds no table.
    return {**config, "task_type_vocab_size": config.get("task_type_vocab_size", 3) if config.get("use_task_id") else 0}


def _write(config):
    switch = {"use_task_id": config["task_type_vocab_size"] > 0}
    return {**config, **switch} if switch["use_task_id"] else {**config, **switch, "task_type_vocab_size": 3}


_LAYERS = (*BERT.huggingface, ("embeddings/task_embedding", "embeddings.task_type_embeddings"))

FAMILY = replace(
    BERT,
    backbone="ErnieBackbone",
    model_type="ernie",
    prefix="ernie",
    config={**BERT.config, "num_task_types": "task_type_vocab_size"},
    # A configuration that does not state the epsilon of the norms means Paddle's.
    defaults={**BERT.defaults, "layer_norm_eps": 1e-5},
    huggingface=_LAYERS,
    paddle=_paddle(_LAYERS),
    other_prefixes=("bert",),
    tensorflow1=(),
    keras_hub=(),
    heads={
        task: Head(head.architecture.replace("Bert", "Ernie"), head.huggingface, paddle=_paddle(head.huggingface))
        for task, head in BERT.heads.items()
    },
    tied=BERT.tied | {"cls.predictions.decoder_weight": "embeddings.word_embeddings.weight"},
    read_config=_read,
    write_config=_write,
)
