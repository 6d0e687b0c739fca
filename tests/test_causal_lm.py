"""Generation: equal to transformers, to single rows and to itself without a cache; and what a user can get wrong."""

import keras_hub
import numpy as np
import pytest
import torch
import transformers
from families import FAMILIES, gap, run
from keras import ops

import garden
from garden import tasks

ROW = next(row for row in FAMILIES if row.backbone is garden.Gpt2Backbone)
END = 96


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    """The reference, and garden's model of the same weights."""
    folder = tmp_path_factory.mktemp("gpt2")
    reference = ROW.save_reference(folder, transformers.GPT2LMHeadModel)
    model = tasks.CausalLM.from_preset(folder)
    model.compile(sampler="greedy")
    return reference, model


def prompts(*rows, length=20, left=False):
    """Rows of ids padded to a length."""
    ids, mask = np.zeros((len(rows), length), "int32"), np.zeros((len(rows), length), "int32")
    for i, row in enumerate(rows):
        places = slice(length - len(row), length) if left else slice(len(row))
        ids[i, places], mask[i, places] = row, 1
    return {"token_ids": ids, "padding_mask": mask}


def without_text(model):
    """The same model fed with ids."""
    bare = type(model)(backbone=model.backbone)
    bare.compile(sampler="greedy")
    return bare


def test_greedy_generation_equals_transformers(gpt2):
    reference, model = gpt2
    text = "w1 w2 w3 w4"
    ids = model.preprocessor.tokenizer(text)
    with torch.no_grad():
        theirs = reference.generate(
            torch.tensor([ids]), max_length=20, do_sample=False, eos_token_id=END, pad_token_id=END
        )[0].tolist()
    if END in theirs[len(ids) :]:
        theirs = theirs[: theirs.index(END, len(ids))]
    assert model.generate(text, max_length=20) == model.preprocessor.tokenizer.detokenize(theirs)
    assert "".join(model.stream(text, max_length=20)) == model.generate(text, max_length=20, strip_prompt=True)


def test_rows_of_different_length_give_what_each_gives_alone(gpt2):
    model = without_text(gpt2[1])
    rows = ([5, 6, 7, 8, 9], [11, 12], [31, 32, 33])
    alone = [model.generate(prompts(row), stop_token_ids=None)["token_ids"][0].tolist() for row in rows]
    for left in (False, True):
        together = model.generate(prompts(*rows, left=left), stop_token_ids=None)
        assert together["token_ids"].tolist() == alone and together["padding_mask"].all()


def test_a_stop_token_ends_its_row_only(gpt2):
    model = without_text(gpt2[1])
    rows = ([5, 6, 7], [11, 12])
    free = model.generate(prompts(*rows), stop_token_ids=None)["token_ids"]
    stop = int(free[0, 5])
    first = int(np.flatnonzero(free[0, 3:] == stop)[0]) + 3
    stopped = model.generate(prompts(*rows), stop_token_ids=[stop])
    assert stopped["token_ids"][0, : first + 1].tolist() == free[0, : first + 1].tolist()
    assert stopped["padding_mask"][0].astype(int).tolist() == [1] * (first + 1) + [0] * (19 - first)


@pytest.mark.parametrize(
    "sampler",
    [
        keras_hub.samplers.TopKSampler(k=5, seed=0),
        keras_hub.samplers.TopPSampler(p=0.9, seed=0),
        keras_hub.samplers.RandomSampler(temperature=0.5, seed=0),
        keras_hub.samplers.BeamSampler(num_beams=3),
        keras_hub.samplers.ContrastiveSampler(k=3, alpha=0.4),
    ],
    ids=lambda sampler: type(sampler).__name__,
)
def test_every_sampler_fills_the_row(gpt2, sampler):
    model = type(gpt2[1])(backbone=gpt2[1].backbone)
    model.compile(sampler=sampler)
    written = model.generate(prompts([5, 6, 7], [11, 12], length=9), stop_token_ids=None)["token_ids"]
    assert written.shape == (2, 9) and written[0, :3].tolist() == [5, 6, 7] and (written < 97).all()


def test_a_beam_of_the_whole_vocabulary_finds_the_most_probable_pair(gpt2):
    """Two tokens behind a prompt: with as many beams as tokens the search is exhaustive."""
    model = type(gpt2[1])(backbone=gpt2[1].backbone)
    model.compile(sampler=keras_hub.samplers.BeamSampler(num_beams=97))
    found = model.generate(prompts([5, 6, 7], length=5), stop_token_ids=None)["token_ids"][0, 3:].tolist()
    pairs = np.array([[5, 6, 7, first] for first in range(97)], "int32")
    logits = ops.convert_to_numpy(run(model, {"token_ids": pairs, "padding_mask": np.ones_like(pairs)}))
    logits = logits.astype("float64")
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    scores = log_probs[0, 2][:, None] + log_probs[:, 3]
    assert found == list(np.unravel_index(scores.argmax(), scores.shape))


def test_training_on_text_lowers_the_perplexity(gpt2, tmp_path):
    tokenizer = gpt2[1].preprocessor.tokenizer
    preprocessor = tasks.CausalLMPreprocessor(tokenizer, sequence_length=8)
    model = tasks.CausalLM.for_backbone(garden.Gpt2Backbone)(ROW.build(dropout=0.1), preprocessor)
    model.compile(optimizer="adam", sampler="greedy")
    model.optimizer.learning_rate = 3e-3
    texts = ["w1 w2 w3", "w4 w5 w6", "w7 w8 w9", "w1"] * 8
    before = model.evaluate(texts, verbose=0, return_dict=True)["perplexity"]
    model.fit(texts, epochs=25, batch_size=8, verbose=0)
    after = model.evaluate(texts, verbose=0, return_dict=True)["perplexity"]
    assert after < 5 < 50 < before
    assert model.generate("w4 w5", max_length=8) == "w4 w5 w6"
    model.save_to_preset(tmp_path / "preset")
    again = tasks.CausalLM.from_preset(tmp_path / "preset")
    again.compile(sampler="greedy")
    assert again.generate("w4 w5", max_length=8) == "w4 w5 w6"
    assert type(keras_hub.models.CausalLM.from_preset(str(tmp_path / "preset"))) is type(model)


def test_the_loss_does_not_count_padding(gpt2):
    """The mean over the tokens, by hand."""
    model = gpt2[1]
    x, y, weights = tasks.CausalLMPreprocessor(model.preprocessor.tokenizer, sequence_length=12)(["w1 w2", "w3"])
    logits = ops.convert_to_numpy(run(model, x)).astype("float64")
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    chosen = np.take_along_axis(log_probs, y[..., None], -1)[..., 0]
    expected = -(chosen * weights).sum() / weights.sum()
    assert float(model.compute_loss(x, y, run(model, x), weights)) == pytest.approx(expected, abs=1e-5)


def test_an_empty_prompt_starts_with_the_start_token(gpt2):
    model = gpt2[1]
    row = without_text(model).generate(prompts([END], length=9), stop_token_ids=[END])
    kept = row["token_ids"][0][row["padding_mask"][0].astype(bool)].tolist()
    expected = model.preprocessor.tokenizer.detokenize([i for i in kept if i != END])
    assert model.generate("", max_length=9) == expected
    gpt = tasks.CausalLMPreprocessor(garden.GptTokenizer(["<unk>", "a</w>"], []), sequence_length=5)
    with pytest.raises(ValueError, match="The prompt is empty, and a GptTokenizer has no token to start with"):
        gpt.generate_preprocess([""])
    with pytest.raises(ValueError, match="A GptTokenizer has no start token"):
        tasks.CausalLMPreprocessor(gpt.tokenizer, sequence_length=5, add_start_token=True)


def test_what_a_user_can_get_wrong(gpt2):
    model = gpt2[1]
    with pytest.raises(ValueError, match="Prompt 0 has 4 tokens, which leaves nothing of 4 to generate"):
        model.generate("w1w2", max_length=4)
    with pytest.raises(ValueError, match="max_length=34 is more than this backbone's 33 positions"):
        model.generate("w1", max_length=34)
    bare = without_text(model)
    with pytest.raises(ValueError, match="BeamSampler has num_beams=98, but the vocabulary 97 tokens"):
        bare.compile(sampler=keras_hub.samplers.BeamSampler(num_beams=98))
    with pytest.raises(ValueError, match="Row 1 is no prompt"):
        bare.generate({**prompts([5], [6]), "padding_mask": np.array([[1] + [0] * 19, [0] * 20])}, stop_token_ids=None)
    streaming = type(model)(backbone=model.backbone, preprocessor=model.preprocessor)
    for sampler in (keras_hub.samplers.BeamSampler(), keras_hub.samplers.ContrastiveSampler(k=2, alpha=0.5)):
        streaming.compile(sampler=sampler)
        with pytest.raises(ValueError, match=f"A {type(sampler).__name__} needs whole rows"):
            next(streaming.stream("w1"))
    with pytest.raises(TypeError, match="CausalLM needs a cache to decode with, which a BertBackbone does not have"):
        tasks.CausalLM.for_backbone(garden.BertBackbone)
    with pytest.raises(TypeError, match="MaskedLM needs a family that is trained to fill masks, which a Gpt2Backbone"):
        tasks.MaskedLM.for_backbone(garden.Gpt2Backbone)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_generates(dtype):
    model = tasks.CausalLM.for_backbone(garden.Gpt2Backbone)(ROW.build(dtype=dtype))
    model.compile(sampler="greedy")
    written = model.generate(prompts([5, 6], [7], length=6), stop_token_ids=None)
    assert written["token_ids"].shape == (2, 6)
    assert gap(model.backbone.cached(written["token_ids"], model.backbone.empty_cache(2, 6), 0)[0], 0) < 100
