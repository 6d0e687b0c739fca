"""Loading a checkpoint costs little more memory than the model itself."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

from garden.presets.formats import write_safetensors

SIZES = {"vocab_size": 30522, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
LOAD = """
import resource, sys, garden
def peak(): return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
toy = garden.BertBackbone(9, 1, 1, 8, 8)
toy.embeddings.norm.gamma.assign(toy.embeddings.norm.gamma + 1)
before = peak()
backbone = garden.BertBackbone.from_preset(sys.argv[1])
print((peak() - before) / (4 * backbone.count_params()))
"""


class Ones(dict):
    """Shapes by name that read as arrays, so that writing 1.3 GB needs no memory."""

    def __getitem__(self, name):
        return np.ones(super().__getitem__(name), "float32")


def test_loading_bert_large_needs_at_most_1_3_times_its_weights(tmp_path):
    config = transformers.BertConfig(**SIZES, intermediate_size=4096)
    with torch.device("meta"):
        shapes = {name: tuple(p.shape) for name, p in transformers.BertModel(config).named_parameters()}
    write_safetensors(tmp_path / "model.safetensors", Ones(shapes), {"format": "pt"})
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()))
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", LOAD, tmp_path], cwd=root, capture_output=True, text=True, check=True)
    assert float(done.stdout.split()[-1]) <= 1.3
