"""ERNIE's checkpoint table: BERT's names and one table more, which a switch in the configuration announces."""

from dataclasses import replace

from .bert import FAMILY as BERT
from .family import Head


def _read(config):
    # Baidu's English configs state a size without the switch, and their code then builds no table.
    return {**config, "task_type_vocab_size": config.get("task_type_vocab_size", 3) if config.get("use_task_id") else 0}


def _write(config):
    switch = {"use_task_id": config["task_type_vocab_size"] > 0}
    return {**config, **switch} if switch["use_task_id"] else {**config, **switch, "task_type_vocab_size": 3}


FAMILY = replace(
    BERT,
    backbone="ErnieBackbone",
    model_type="ernie",
    prefix="ernie",
    config={**BERT.config, "num_task_types": "task_type_vocab_size"},
    huggingface=(*BERT.huggingface, ("embeddings/task_embedding", "embeddings.task_type_embeddings")),
    tensorflow1=(),
    keras_hub=(),
    heads={
        task: Head(head.architecture.replace("Bert", "Ernie"), head.huggingface) for task, head in BERT.heads.items()
    },
    read_config=_read,
    write_config=_write,
)
