"""A label for each word, such as named entities, from files in CoNLL's columns or JSON lines."""

from pathlib import Path

from .. import pictures
from ..answers import answer_table, read_input
from ..data import decode, read_table
from ..examples import Examples, some
from .job import Job


class Tagging(Job):
    """One label for each word or character."""

    task = "TokenClassifier"
    pictures = ("entities.png",)
    flags = ("crf",)
    files = "words in columns, word first and label last, a blank line between texts; or .jsonl of words and labels"

    def read(self, path, options):
        if Path(path).suffix.lower() == ".jsonl":
            return _read_jsonl(path, options.text_column, options.label_column)
        return read_columns(path)

    def check(self, training, validation):
        names = label_names(training)
        unknown = sorted({label for labels in validation.targets for label in labels} - set(names))
        if unknown:
            raise ValueError(
                f"{some(unknown)} is no label of the training part; those are {some(names)}: "
                "give --validation, or another --seed"
            )

    def arguments(self, training, options):
        single = all(len(word) == 1 for words in training.inputs for word in words)
        return {
            "class_names": label_names(training),
            "crf": options.crf,
            "split": "characters" if single else "words",
            **({"pad_to_multiple_of": None} if options.crf else {}),  # TensorFlow scans over one width only
        }

    def about(self, training, validation):
        words = sum(map(len, training.inputs))
        parts = f"{len(training):,} texts of {words:,} words to train on, {len(validation):,} texts held out"
        return f"{parts}, labels: {some(label_names(training))}"

    def lengths(self, model, examples):
        import numpy as np

        return np.array([len(words) for words in examples.inputs])

    def figures(self, model, examples, options):
        from garden.tasks import entity_scores

        found = model.predict_labels(examples.inputs, options.batch_size)
        pairs = [pair for rows in zip(examples.targets, found, strict=True) for pair in zip(*rows, strict=True)]
        figures = {"accuracy": sum(true == label for true, label in pairs) / max(len(pairs), 1), "words": len(pairs)}
        if not _are_entities(model.names):
            return figures
        scores = entity_scores(examples.targets, found)
        entities = {"all": scores.micro, "mean of types": scores.macro, **scores.types}
        return {"f1": scores.micro.f1, **figures, "entities": {name: row._asdict() for name, row in entities.items()}}

    def as_text(self, figures):
        rows = figures.get("entities", {})
        width = max(map(len, [*rows, "words right"])) + 2
        lines = [f"{'':<{width}}precision  recall      f1   count"] if rows else []
        for name, row in rows.items():
            lines.append(
                f"{name:<{width}}{row['precision']:9.3f}{row['recall']:8.3f}{row['f1']:8.3f}{row['support']:8d}"
            )
        return "\n".join([*lines, f"{'words right':<{width}}{figures['accuracy']:9.3f}"])

    def draw(self, figures, folder):
        if figures.get("entities"):
            pictures.entity_picture(figures["entities"], folder / "entities.png")

    def answer_one(self, model, options):
        if not _are_entities(model.names):
            words = model.preprocessor.rows([options.text])[0]
            for word, label in zip(words, model.predict_labels([words])[0], strict=True):
                print(f"{word}\t{label}")
            return
        for entity in model.predict_entities([options.text])[0]:
            print(f"{entity.score:.4f}  {entity.label}  {entity.start}-{entity.end}  {entity.text}")

    def answer_file(self, model, options):
        table = read_input(options)
        texts = table.texts(options.text_column)
        if _are_entities(model.names):
            column = "entities"

            def answers():
                found = model.predict_entities(texts, options.batch_size)
                return zip([[_rounded(entity) for entity in row] for row in found])

        else:
            column = "labels"

            def answers():
                return zip(model.predict_labels(texts, options.batch_size))

        answer_table(table, [column], answers, options.output)


def read_columns(path: str) -> Examples:
    """A file of one word a line in CoNLL's manner, columns by tabs or blanks; -DOCSTART- lines are passed over.

    Raises ValueError for bytes that are not UTF-8, a line with one column or with others than the first, such as a
    comment, and a file without a word.
    """
    texts, labels, columns = [[]], [[]], 0
    for number, line in enumerate(decode(Path(path).read_bytes(), path).split("\n"), start=1):
        fields = line.rstrip("\r").split("\t") if "\t" in line else line.split()
        if not any(fields) or fields[0] == "-DOCSTART-":
            if texts[-1]:
                texts.append([])
                labels.append([])
            continue
        if len(fields) < 2 or not fields[0] or not fields[-1]:
            raise ValueError(f"{path}, line {number}: {line!r} is not a word, and in its last column a label")
        columns = columns or len(fields)
        if len(fields) != columns:
            raise ValueError(f"{path}, line {number}: {line!r} has {len(fields)} columns where others have {columns}")
        texts[-1].append(fields[0])
        labels[-1].append(fields[-1].strip())
    if not texts[0]:
        raise ValueError(f"{path} holds no word")
    kept = len(texts) - (not texts[-1])
    return Examples(texts[:kept], labels[:kept])


def label_names(examples: Examples) -> list[str]:
    """The labels that occur, O first, those of one type together."""
    names = {label for labels in examples.targets for label in labels}
    if len(names) < 2:
        raise ValueError(f"all words have the label {min(names)!r}: there is nothing to learn")
    return sorted(names, key=lambda name: (name != "O", name.partition("-")[2] or name, name))


def _read_jsonl(path, text_column, label_column):
    table, texts, labels = read_table(path), [], []
    for row, line in zip(table.rows, table.lines, strict=True):
        words, tags = row.get(text_column), row.get(label_column)
        if not isinstance(words, (str, list)) or not isinstance(tags, list):
            raise ValueError(
                f"{path}, line {line}: {text_column!r} has to be a list of words or a string of characters, and "
                f"{label_column!r} a list of labels"
            )
        if len(words) != len(tags):
            raise ValueError(f"{path}, line {line}: {len(words)} words but {len(tags)} labels")
        if words:
            texts.append(list(words))
            labels.append([str(tag) for tag in tags])
    if not texts:
        raise ValueError(f"{path} holds no word")
    return Examples(texts, labels)


def _are_entities(names: list[str]) -> bool:
    from garden.tasks import spans

    try:
        spans(names)
    except ValueError:
        return False
    return True


def _rounded(entity):
    return {**entity._asdict(), "score": round(entity.score, 6)}
