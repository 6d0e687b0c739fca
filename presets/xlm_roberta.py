"""XLM-RoBERTa's checkpoint table: RoBERTa's, with another vocabulary; its scope is still `roberta`."""

from dataclasses import replace

from .roberta import FAMILY as ROBERTA

FAMILY = replace(
    ROBERTA,
    backbone="XlmRobertaBackbone",
    model_type="xlm-roberta",
    heads={
        task: replace(head, architecture=head.architecture.replace("Roberta", "XLMRoberta"))
        for task, head in ROBERTA.heads.items()
    },
)
