"""Answers as pieces of passages, from files in the layouts of SQuAD, CMRC2018 and DRCD."""

import re
from pathlib import Path

from ..answers import answer_table, read_input
from ..examples import Examples
from .job import Job


class QuestionAnswering(Job):
    """The piece of a passage that answers a question."""

    task = "QuestionAnswering"
    sequence_length = 384
    flags = ("null_threshold",)
    files = "JSON in the layout of SQuAD 1.1 or 2.0, CMRC2018 or DRCD"

    def read(self, path, options):
        from garden.tasks import read_squad

        examples = read_squad(path)
        if any(example.answers is None for example in examples):
            raise ValueError(f"{path} has questions without answers: it can be answered, but not learnt or measured")
        return Examples(examples, [example.answers for example in examples])

    def groups(self, examples):
        return [example.passage for example in examples.inputs]

    def batches(self, model, examples, batch_size, seed, drop_remainder=False):
        from garden.tasks.question_answering_batches import example_batches

        return example_batches(
            examples.inputs, model.preprocessor, batch_size, seed=seed, drop_remainder=drop_remainder
        )

    def about(self, training, validation):
        nothing = sum(not answers for answers in training.targets)
        unanswerable = f", {nothing:,} of them without an answer" if nothing else ""
        return f"{len(training):,} questions to train on{unanswerable}, {len(validation):,} held out"

    def figures(self, model, examples, options):
        from garden.tasks import CMRC, SQUAD, evaluate_answers

        answers = self._answers(model, examples.inputs, options)
        predictions = {example.id: answer.text for example, answer in zip(examples.inputs, answers, strict=True)}
        chinese = _is_chinese(example.question for example in examples.inputs)
        figures = evaluate_answers(examples.inputs, predictions, CMRC if chinese else SQUAD)
        return {**figures, "rule": "CMRC2018" if chinese else "SQuAD"}

    def as_text(self, figures):
        numbers = {name: value for name, value in figures.items() if isinstance(value, float)}
        lines = [f"{name.replace('_', ' '):<24}{value:7.2f}" for name, value in numbers.items()]
        return "\n".join([*lines, f"by the rule of {figures['rule']}, {figures['total']} questions"])

    def answer_one(self, model, options):
        if options.pair is None:
            raise ValueError("--text is the question: give the passage with --pair")
        answer = model.predict_answers([options.text], [options.pair], null_threshold=options.null_threshold)[0]
        for candidate in answer.n_best[:5]:
            print(f"{candidate.probability:.4f}  {candidate.start}-{candidate.end}  {candidate.text}")

    def answer_file(self, model, options):
        from garden.tasks import read_squad, write_predictions

        if Path(options.input).suffix.lower() == ".json":
            if not options.output:
                raise ValueError("answers to a JSON file are a folder: give --output")
            examples = read_squad(options.input)
            answers = self._answers(model, examples, options)
            return write_predictions(options.output, [example.id for example in examples], answers)
        table = read_input(options)
        questions, passages = table.texts(options.text_column), table.texts(options.pair_column or "passage")

        def answers():
            found = model.predict_answers(
                questions, passages, null_threshold=options.null_threshold, batch_size=options.batch_size
            )
            return [(answer.text, answer.start, answer.end, round(answer.probability, 6)) for answer in found]

        answer_table(table, ["answer", "answer_start", "answer_end", "probability"], answers, options.output)

    def _answers(self, model, examples, options):
        threshold = options.null_threshold
        if threshold is None and any(example.answers == () for example in examples):
            threshold = 0.0  # some questions have no answer, and Google's script then takes this
        questions, passages = [e.question for e in examples], [e.passage for e in examples]
        return model.predict_answers(questions, passages, null_threshold=threshold, batch_size=options.batch_size)


def _is_chinese(questions) -> bool:
    """Whether most questions hold a Chinese character."""
    found = [bool(re.search(r"[\u4e00-\u9fff]", question)) for question in questions]
    return sum(found) > len(found) / 2
