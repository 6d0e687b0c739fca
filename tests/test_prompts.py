"""Prompting: scores equal transformers' probabilities, calibration by hand, and what a user can get wrong."""

import numpy as np
import pytest
import torch
import transformers
from families import FAMILIES, write_t5

import garden
from garden import tasks

ROWS = {row.backbone: row for row in FAMILIES}
LABELS = {"one": " w1", "two": " w2 w3", "nine": " w9"}
SHOTS = [("w4", "one"), ("w6", "nine")]


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpt2")
    reference = ROWS[garden.Gpt2Backbone].save_reference(folder, transformers.GPT2LMHeadModel)
    return reference, tasks.CausalLM.from_preset(folder)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    reference = ROWS[garden.BertBackbone].save_reference(folder, transformers.BertForMaskedLM)
    return reference, tasks.MaskedLM.from_preset(folder)


def causal_score(reference, tokenizer, prompt, word):
    """The logarithm of the probability that the reference writes a word behind a prompt, all in one row."""
    before, written = tokenizer(prompt), tokenizer(word)
    with torch.no_grad():
        log_probs = reference(torch.tensor([before + written])).logits[0].double().log_softmax(-1)
    return sum(float(log_probs[len(before) - 1 + i, token]) for i, token in enumerate(written))


@pytest.mark.parametrize("shots", [[], SHOTS[:1], SHOTS], ids=["zero", "one", "few"])
def test_scores_are_the_reference_log_probabilities(gpt2, shots):
    reference, model = gpt2
    template = tasks.PromptTemplate("w7 {text} w8", separator=" ")
    classifier = tasks.PromptClassifier(model, template, LABELS, shots)
    texts = ["w1", "w2 w3 w4", "w5"]
    scores = classifier.scores(texts, batch_size=2)
    tokenizer = model.preprocessor.tokenizer
    for text, found in zip(texts, scores, strict=True):
        before = "".join(f"w7 {shot} w8{LABELS[name]} " for shot, name in shots)
        expected = [causal_score(reference, tokenizer, f"{before}w7 {text} w8", word) for word in LABELS.values()]
        np.testing.assert_allclose(found, expected, atol=1e-4)
    names, probabilities = classifier.predict_labels(texts)
    assert names == [list(LABELS)[i] for i in scores.argmax(axis=1)]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    assert classifier.evaluate(texts, names) == 1.0


def test_a_score_per_token_is_the_mean(gpt2):
    whole, mean = (
        tasks.PromptClassifier(gpt2[1], "{text}", LABELS, per_token=per_token).scores(["w4"])[0]
        for per_token in (False, True)
    )
    tokens = [len(gpt2[1].preprocessor.tokenizer(word)) for word in LABELS.values()]
    assert tokens == [2, 4, 2]
    np.testing.assert_allclose(mean, whole / tokens, atol=1e-6)


def test_calibration_makes_an_example_without_content_undecided(gpt2):
    """Zhao et al. 2021: p / p_free, normalised, p_free the mean over the three inputs."""
    plain = tasks.PromptClassifier(gpt2[1], "w7 {text} w8", LABELS)
    calibrated = tasks.PromptClassifier(gpt2[1], "w7 {text} w8", LABELS, calibration="content_free")
    free = np.mean([plain.predict_labels([text])[1][0] for text in ("N/A", "[MASK]", "")], axis=0)
    ratio = plain.predict_labels(["w5"])[1][0] / free
    np.testing.assert_allclose(calibrated.predict_labels(["w5"])[1][0], ratio / ratio.sum(), atol=1e-5)


def test_an_answer_context_is_divided_out(gpt2):
    reference, model = gpt2
    classifier = tasks.PromptClassifier(model, "w7 {text} w8", LABELS, answer_context="w8")
    tokenizer = model.preprocessor.tokenizer
    expected = [
        causal_score(reference, tokenizer, "w7 w5 w8", word) - causal_score(reference, tokenizer, "w8", word)
        for word in LABELS.values()
    ]
    np.testing.assert_allclose(classifier.scores(["w5"])[0], expected, atol=1e-4)


def test_a_masked_model_fills_the_label_in(bert):
    reference, model = bert
    classifier = tasks.PromptClassifier(model, "w7 {first} {mask} w8 {second}", LABELS)
    found = classifier.scores([("w1", "w2"), ("w3 w4", "w5")])
    tokenizer = model.preprocessor.tokenizer
    for (first, second), scores in zip([("w1", "w2"), ("w3 w4", "w5")], found, strict=True):
        for word, score in zip(LABELS.values(), scores, strict=True):
            tokens = tokenizer(word)
            masks = " ".join(["[MASK]"] * len(tokens))
            ids = torch.tensor([tokenizer.encode(f"w7 {first} {masks} w8 {second}").ids])
            with torch.no_grad():
                log_probs = reference(ids).logits[0].double().log_softmax(-1)
            at_masks = log_probs[ids[0] == tokenizer.mask_token_id]
            expected = sum(float(row[token]) for row, token in zip(at_masks, tokens, strict=True))
            assert score == pytest.approx(expected, abs=1e-4)


def test_templates_are_filled_by_strings_pairs_and_dictionaries():
    template = tasks.PromptTemplate("{premise} {{so}} {hypothesis}?", instruction="Yes or no.", separator="\n")
    example = {"premise": "It rains", "hypothesis": "it is wet"}
    assert template.prompt(example, [(example, " yes")]) == (
        "Yes or no.\nIt rains {so} it is wet? yes\nIt rains {so} it is wet?"
    )
    assert tasks.PromptTemplate("{first}/{second}").fill(("a", "b"), " c") == "a/b c"
    assert tasks.PromptTemplate("{text}: {mask}!").fill("a", "b") == "a: b!"


def test_what_a_user_can_get_wrong(gpt2, bert):
    for text, message in {
        "no slot": "has no slot for an example: write {text}",
        "{mask}": "has no slot for an example",
        "{}": "has a slot without a name",
        "{text": "is malformed",
        "{text} {mask} {mask}": "has more than one {mask}",
    }.items():
        with pytest.raises(ValueError, match=message):
            tasks.PromptTemplate(text)
    make = tasks.PromptClassifier
    with pytest.raises(ValueError, match="The template wants {second}, and the example fills {text}"):
        make(gpt2[1], "{second}", LABELS).scores(["w1"])
    with pytest.raises(ValueError, match="takes no {mask}"):
        make(gpt2[1], "{text} {mask}", LABELS)
    with pytest.raises(ValueError, match="needs {mask} where the label goes"):
        make(bert[1], "{text}", LABELS)
    with pytest.raises(ValueError, match="There are 1 labels: give at least two"):
        make(gpt2[1], "{text}", [" w1"])
    with pytest.raises(ValueError, match="The word '' of the label 'one' has no token"):
        make(gpt2[1], "{text}", {"one": "", "two": " w2"})
    with pytest.raises(ValueError, match="There is no label 'three'; there are one, two, nine"):
        make(gpt2[1], "{text}", LABELS, [("w1", "three")])
    with pytest.raises(ValueError, match="example 1 has 41 tokens with its 0 demonstrations, more than the 33"):
        make(gpt2[1], "{text}", {"one": " w1", "two": " w2"}).scores(["w1", "w" * 40])
    with pytest.raises(ValueError, match="The prompt is empty"):
        make(gpt2[1], "{text}", LABELS).scores([""])
    with pytest.raises(ValueError, match="Give a list of examples"):
        make(gpt2[1], "{text}", LABELS).scores("w1")
    assert make(gpt2[1], "{text}", LABELS).predict_labels([])[0] == []


def test_an_encoder_decoder_writes_the_label(tmp_path):
    sizes = dict(vocab_size=97, d_model=60, d_kv=9, d_ff=70, num_layers=2, num_heads=5)
    torch.manual_seed(0)
    reference = transformers.T5ForConditionalGeneration(transformers.T5Config(**sizes)).eval()
    reference.save_pretrained(tmp_path)
    write_t5(tmp_path, 97)
    model = tasks.Seq2SeqLM.from_preset(tmp_path)
    words = {"one": "w1", "two": "w2 w3"}
    [found] = tasks.PromptClassifier(model, "w7 {text} w8", words).scores(["w5"])
    source = torch.tensor([model.preprocessor.tokenizer.encode("w7 w5 w8").ids])
    for word, score in zip(words.values(), found, strict=True):
        written = model.preprocessor.tokenizer(word)
        decoder = torch.tensor([[model.preprocessor.start, *written[:-1]]])
        with torch.no_grad():
            log_probs = reference(source, decoder_input_ids=decoder).logits[0].double().log_softmax(-1)
        expected = sum(float(log_probs[place, token]) for place, token in enumerate(written))
        assert score == pytest.approx(expected, abs=1e-4)
