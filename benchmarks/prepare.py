"""The checkpoints that all peers read, written once in a folder that the parent removes at the end."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from .peers import bert_config
from .records import Request, Sample


def random_checkpoints(request: Request) -> Iterator[Sample]:
    """`base` and `large`: BERT with random weights, as Hugging Face folders; both are the toy with `small`."""
    import torch
    from transformers import BertModel

    torch.manual_seed(0)
    for name in ("base", "large"):
        BertModel(bert_config("toy" if request.small else name)).save_pretrained(Path(request.folder, name))
    yield from ()


def sentence_classifier(request: Request) -> Iterator[Sample]:
    """`minilm`: the published weights of MiniLM under a random classification head, with their tokenizer."""
    import torch
    from transformers import BertForSequenceClassification

    from garden.presets import locate

    torch.manual_seed(0)
    source, target = locate("all_minilm_l6_v2_en"), Path(request.folder, "minilm")
    BertForSequenceClassification.from_pretrained(source, num_labels=2).save_pretrained(target)
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        if (source / name).exists():
            shutil.copy(source / name, target)
    yield from ()
