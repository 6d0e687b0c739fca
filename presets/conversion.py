"""From any format to a garden preset, and from garden to a Hugging Face folder that transformers loads."""

import json
from pathlib import Path

import garden
from garden.files import whole_folder

from . import weight_names
from .checkpoint import read_checkpoint
from .errors import CheckpointError
from .family import families, family_of
from .formats import write_safetensors
from .location import locate
from .sentence_transformers import write_pooling

# transformers calls the exact GELU "gelu".
_ACTIVATIONS = {"gelu_erf": "gelu", "gelu_tanh": "gelu_pytorch_tanh"}


def convert(source, target, format: str = "garden", task: str | None = None):
    """Reads a preset in any format and writes it in another.

    Args:
        source: see `locate`.
        target: folder to make; it must not exist or be empty.
        format: `"garden"` (KerasHub's layout) or `"huggingface"`.
        task: name of the task whose head goes along, such as `"MaskedLM"`; None takes the published head where the
            configuration names one, else the backbone alone.

    Returns:
        The report of what became of every tensor; None for a garden source, whose loader is strict itself.

    Raises:
        ValueError: an unknown format or task, or a target that holds files.
        CheckpointError: see `load_backbone`.

    ```python
    garden.presets.convert("chinese_L-12_H-768_A-12", "bert-base-chinese", format="huggingface")
    ```
    """
    writers = {"garden": lambda model, folder: model.save_to_preset(folder), "huggingface": export_to_transformers}
    if format not in writers:
        raise ValueError(f"There is no format {format!r}; there are {', '.join(writers)}.")
    target = Path(target)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} exists already: name a new folder.")
    model = _load(source, task)
    writers[format](model, target)
    return getattr(model, "load_report", None)


def export_to_transformers(model, folder) -> None:
    """Writes a backbone or task as a Hugging Face folder: weights, config, vocabulary and tokenizer.

    Args:
        model: a garden backbone or task.
        folder: folder to make; it is complete or absent.

    Raises:
        CheckpointError: the model has weights without a Hugging Face name (LoRA, quantised layers), or transformers has
            no such model.

    ```python
    garden.presets.export_to_transformers(classifier, "my-classifier")
    transformers.AutoModelForSequenceClassification.from_pretrained("my-classifier")
    ```
    """
    backbone = getattr(model, "backbone", model)
    family = family_of(backbone)
    if not family.huggingface:
        raise CheckpointError(
            f"transformers has no model with the graph of a {family.backbone}, so it cannot be exported: save it with "
            "save_to_preset."
        )
    head = family.heads.get(type(model).__base__.__name__)
    prefix = f"{family.prefix}." if head and family.prefix else ""
    rows = [(ours, prefix + theirs) for ours, theirs in family.huggingface] + list(head.huggingface if head else ())
    # A head that does not read the pooler is published without one.
    reads = getattr(model, "reads", "pooled_output")
    left_out = family.optional if head and reads != "pooled_output" else ()
    variables = [v for v in model.weights if not (left_out and v.path.startswith(left_out))]
    with whole_folder(folder) as draft:
        tensors = dict(weight_names.export(variables, rows, weight_names.HUGGING_FACE))
        config = _config(model, backbone, family, head)
        write_safetensors(draft / "model.safetensors", family.write_tensors(tensors, config), {"format": "pt"})
        _write_json(draft / "config.json", config)
        if getattr(model, "preprocessor", None):
            _save_tokenizer(model.preprocessor.tokenizer, draft, backbone.max_sequence_length)
        if isinstance(model, garden.tasks.TextEmbedder):
            length = model.preprocessor.sequence_length if model.preprocessor else backbone.max_sequence_length
            write_pooling(draft, model.pooling_mode, model.normalize, backbone.hidden_dim, length)


def published_task(source) -> tuple[str | None, dict]:
    """The name of the task whose head a preset holds, and its configuration; None for a backbone alone.

    Args:
        source: see `locate`.

    ```python
    garden.presets.published_task("my-classifier")  # ("TextClassifier", {"num_classes": 2, ...})
    ```
    """
    path = locate(source)
    checkpoint = read_checkpoint(path)
    if checkpoint:
        heads = {head.architecture: name for name, head in checkpoint.family.heads.items()}
        named = checkpoint.config.get("architectures") or ()
        task, config = next((heads[name] for name in named if name in heads), None), dict(checkpoint.config)
        if task == "TextClassifier":
            config["problem"] = garden.tasks.TextClassifier.published_problem(checkpoint)
        return task, config
    if not (path / "task.json").exists():
        return None, {}
    saved = json.loads((path / "task.json").read_text("utf-8"))
    cls = getattr(garden.tasks, saved["registered_name"].removeprefix("garden>"), None)
    return cls and cls.__base__.__name__, saved["config"]


def _load(source, task):
    """The model behind a source, as the task that was asked for or that the configuration names."""
    task = task or published_task(source)[0]
    if task is None:
        return garden.Backbone.from_preset(source)
    if not hasattr(garden.tasks, task):
        known = ", ".join(sorted({name for family in families().values() for name in family.heads}))
        raise ValueError(f"There is no task {task!r}; there are {known}.")
    return getattr(garden.tasks, task).from_preset(source)


def _config(model, backbone, family, head):
    config = {theirs: getattr(backbone, ours) for ours, theirs in family.config.items()}
    config[family.config["activation"]] = _ACTIVATIONS.get(backbone.activation, backbone.activation)
    if getattr(backbone, "attention_dropout", 0) is None:
        config[family.config["attention_dropout"]] = backbone.dropout
    bare = family.architecture or family.heads["MaskedLM"].architecture.partition("For")[0] + "Model"
    architecture = (head and head.architecture) or bare
    if hasattr(model, "num_classes"):
        names = model.class_names or [f"LABEL_{i}" for i in range(model.num_classes)]
        config["id2label"] = {str(i): name for i, name in enumerate(names)}
        config["label2id"] = {name: i for i, name in enumerate(names)}
    if getattr(model, "preprocessor", None):
        config["pad_token_id"] = model.preprocessor.tokenizer.pad_token_id
    if hasattr(model, "problem"):
        config["problem_type"] = model.problem.name
    return {"model_type": family.model_type, "architectures": [architecture], **family.write_config(config)}


def _save_tokenizer(tokenizer, folder, length):
    settings = {"tokenizer_class": tokenizer.published_as, **tokenizer.save_published(folder)}
    if tokenizer.has_rust_file:
        tokenizer.rust.save(str(folder / "tokenizer.json"))
    limit = {} if length is None else {"model_max_length": length}
    _write_json(folder / "tokenizer_config.json", {**settings, **limit})


def _write_json(file, content):
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
