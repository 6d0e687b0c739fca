"""Answers whose end depends on their start: the published head of XLNet, in Hugging Face's files and the original's."""

import keras
import numpy as np
import pytest
import torch
import transformers
from families import FAMILIES, gap, run
from test_xlnet import as_original, write_original

import garden
from garden import tasks
from garden.presets import export_to_transformers
from garden.tasks.beam_decoding import Beams, decode_beams
from garden.tasks.windows import Window

XLNET = next(row for row in FAMILIES if row.backbone is garden.XlnetBackbone)
MASK = np.array([[1] * 11, [1] * 7 + [0] * 4])
X = {
    **XLNET.inputs(MASK),
    "answer_mask": np.array([[1] * 8 + [0, 0, 1], [1] * 5 + [0, 1] + [0] * 4], "int32"),
    "start_positions": np.array([3, 6], "int32"),
}


def asked(model):
    """What transformers says: starts and their probabilities, all ends' probabilities, no answer's logit."""
    with torch.no_grad():
        outputs = model(
            input_ids=torch.tensor(X["token_ids"]).long(),
            token_type_ids=torch.tensor(X["segment_ids"]).long(),
            attention_mask=torch.tensor(X["padding_mask"]).float(),
            p_mask=torch.tensor(1 - X["answer_mask"]).float(),
            cls_index=torch.tensor([10, 6]),
        )
    ends, places = (x.reshape(2, 4, 3).transpose(1, 2) for x in (outputs.end_top_log_probs, outputs.end_top_index))
    return outputs.start_top_log_probs, outputs.start_top_index, ends, places, outputs.cls_logits


def softmax(logits):
    odds = np.exp(logits - logits.max(-1, keepdims=True))
    return odds / odds.sum(-1, keepdims=True)


def agree(task, reference):
    start_probs, starts, end_probs, ends, null = (x.numpy() for x in asked(reference))  # named logarithms, but none
    own = run(task.beams, {name: X[name] for name in X if name != "start_positions"})
    assert (own[1] == starts).all()
    assert gap(np.take_along_axis(softmax(own[0]), own[1], -1), start_probs) <= 1e-5
    assert gap(np.take_along_axis(softmax(own[2]), ends, -1), end_probs) <= 1e-5
    assert gap(own[3], null) <= 1e-5


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("xlnet")
    return folder, XLNET.save_reference(folder, transformers.XLNetForQuestionAnswering, start_n_top=3, end_n_top=4)


def test_the_published_head_loads_and_goes_back_to_transformers(published, tmp_path):
    folder, reference = published
    task = tasks.BeamQuestionAnswering.from_preset(folder, num_starts=3)
    assert not task.load_report.fresh and type(task) is tasks.XlnetBeamQuestionAnswering
    agree(task, reference)
    export_to_transformers(task, tmp_path)
    sizes = {"start_n_top": 3, "end_n_top": 4, "output_loading_info": True}
    reloaded, report = transformers.XLNetForQuestionAnswering.from_pretrained(tmp_path, **sizes)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    agree(task, reloaded.eval())


def test_a_told_start_has_the_ends_of_that_start(published):
    folder, reference = published
    task = tasks.BeamQuestionAnswering.from_preset(folder, num_starts=3)
    outputs = run(task, X)
    with torch.no_grad():
        hidden = reference.transformer(
            input_ids=torch.tensor(X["token_ids"]).long(),
            token_type_ids=torch.tensor(X["segment_ids"]).long(),
            attention_mask=torch.tensor(X["padding_mask"]).float(),
        ).last_hidden_state
        ends = reference.end_logits(hidden, start_positions=torch.tensor(X["start_positions"]).long())
    allowed = X["answer_mask"] > 0
    assert np.abs(outputs["end"] - ends.numpy())[allowed].max() <= 1e-5
    assert (outputs["start"][~allowed] < -1e9).all() and outputs["null"].shape == (2,)


def test_the_originals_head_equals_its_twin(tmp_path):
    model = XLNET.build_reference(
        transformers.XLNetForQuestionAnswering, ff_activation="relu", start_n_top=3, end_n_top=4
    )
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    twin = XLNET.build_reference(transformers.XLNetForSequenceClassification, ff_activation="relu")
    twin.transformer.load_state_dict(model.transformer.state_dict())
    variables = {name: array for name, array in as_original(twin).items() if "classification" not in name}
    for name, array in state.items():
        if name.startswith(("start_logits", "end_logits", "answer_class")):
            layer, _, kind = name.replace("LayerNorm.weight", "LayerNorm.gamma").rpartition(".")
            kind = {"bias": "beta"}.get(kind, kind) if "LayerNorm" in layer else kind
            variables[f"{layer.replace('.', '/')}/{kind.replace('weight', 'kernel')}"] = array.T
    folder = write_original(tmp_path / "it", model, variables, "relu")
    task = tasks.BeamQuestionAnswering.from_preset(folder, num_starts=3)
    assert not task.load_report.fresh
    agree(task, model)


def test_decoding_takes_each_starts_own_ends_and_the_likeliest_whole():
    passage = "ab cd ef"
    offsets, every = np.array([[0, 2], [3, 5], [6, 8]]), np.ones(3, bool)
    window = Window(np.zeros(5, "int32"), np.zeros(5, "int32"), 0, (0, 3), offsets, every, null=4)
    start = np.log([0.5, 0.4, 0.02, 0.01, 0.07])
    ends = np.log([[0.4, 0.3, 0.2, 0.05, 0.05], [0.9, 0.02, 0.04, 0.02, 0.02]])
    answer = decode_beams(passage, [window], [Beams(start, np.array([0, 1]), ends, -3.0)])
    assert [candidate.text for candidate in answer.n_best] == ["ab", "ab cd", "ab cd ef", "cd ef", "cd"]
    assert np.isclose(answer.score, np.log(0.5 * 0.4)) and answer.null_odds == pytest.approx(-3.0)
    assert decode_beams(passage, [window], [Beams(start, np.array([0]), ends[:1], 2.0)], null_threshold=0.0).text == ""
    nothing = decode_beams(passage, [window], [Beams(start, np.array([4, 3]), ends, -3.0)])
    assert nothing.text == "" and nothing.probability == 1.0
    assert (
        decode_beams(passage, [window], [Beams(start, np.array([0, 1]), ends, 0.0)], max_answer_length=1).text == "ab"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pieces")
    XLNET.write_vocabulary(folder, 97)
    return folder


def test_it_learns_answers_and_that_there_is_none(folder, tmp_path):
    tokenizer = garden.XlnetTokenizer.from_files(folder)
    preprocessor = tasks.XlnetBeamQuestionAnsweringPreprocessor(tokenizer, sequence_length=32)
    packed = preprocessor((["w1"], ["nothing w2"]))
    where = np.flatnonzero(packed["answer_mask"][0])
    assert packed["token_ids"][0, where[-1]] == tokenizer.cls_token_id
    assert where[:-1].tolist() == list(range(len(tokenizer("nothing w2"))))

    examples = []
    for i, answer in enumerate(["w1", "w2", "w3", "w4"] * 2):
        passage = f"w5 {answer} w6" if i < 4 else f"{answer} w5"
        known = [tasks.AnswerSpan(answer, passage.index(answer))] if i < 4 else []
        examples.append(tasks.Example(str(i), "W1" if i < 4 else "W2", passage, known))
    keras.utils.set_random_seed(1)
    backbone = garden.XlnetBackbone(97, 1, 2, 32, 64, dropout=0.0)
    task = tasks.XlnetBeamQuestionAnswering(backbone, preprocessor, num_starts=3)
    task.compile(keras.optimizers.Adam(5e-3))
    losses = task.fit(examples, batch_size=8, epochs=100, verbose=0).history["loss"]
    assert losses[-1] < 0.1 * losses[0]
    assert task.evaluate(examples, verbose=0, return_dict=True)["loss"] <= losses[-1]
    questions, passages = [e.question for e in examples], [e.passage for e in examples]
    answers = task.predict_answers(questions, passages, null_threshold=0.0)
    assert [answer.text for answer in answers] == ["w1", "w2", "w3", "w4", "", "", "", ""]
    task.save_to_preset(tmp_path)
    again = tasks.BeamQuestionAnswering.from_preset(tmp_path)
    assert type(again) is tasks.XlnetBeamQuestionAnswering and again.num_starts == 3
    first, second = (model.predict_answers(questions, passages) for model in (task, again))
    assert [answer.text for answer in first] == [answer.text for answer in second]
    assert np.allclose([answer.score for answer in first], [answer.score for answer in second], atol=1e-5)
