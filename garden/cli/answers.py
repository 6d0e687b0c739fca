"""Where `garden predict` reads what it answers, and where it writes the answers."""

import csv
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from .data import Table, decode, read_table
from .run_folder import replacing

_FORMATS = (".csv", ".jsonl")


def read_input(options) -> Table:
    """The table that --input names; - is standard input, a text a line."""
    return _standard_input(options.text_column) if options.input == "-" else read_table(options.input)


def answer_table(table: Table, added: list[str], answers: Callable[[], Iterable[tuple]], output: str | None) -> None:
    """Writes a table with further columns.

    Args:
        table: what was asked.
        added: names of the columns; one that the table has already is a ValueError, before any answer is made.
        answers: gives for each row the values of those columns.
        output: a .csv or .jsonl file; None for CSV on standard output. In CSV, lists are JSON.
    """
    repeated = sorted(set(added) & set(table.columns))
    if repeated:
        raise ValueError(f"{table.path} has a column {repeated[0]!r} already: rename or remove it")
    rows = [{**row, **dict(zip(added, values, strict=True))} for row, values in zip(table.rows, answers(), strict=True)]
    write_rows([*table.columns, *added], rows, output)


def check_name(output: str) -> None:
    """Raises ValueError for a file that is named neither CSV nor JSONL."""
    if Path(output).suffix.lower() not in _FORMATS:
        raise ValueError(f"--output={output}: the name must end in {' or '.join(_FORMATS)}")


def write_rows(columns: list[str], rows: list[dict], output: str | None) -> None:
    """Writes rows as CSV or JSONL, by the name of the file, all or nothing; as CSV on standard output without one."""
    if output is None:
        return _write_csv(sys.stdout, columns, rows)
    check_name(output)
    write = _write_jsonl if Path(output).suffix.lower() == ".jsonl" else _write_csv
    with replacing(output) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        write(file, columns, rows)


def _standard_input(column: str) -> Table:
    text = decode(sys.stdin.buffer.read(), "standard input").removesuffix("\n")
    if not text:
        raise ValueError("standard input is empty")
    lines = [line.removesuffix("\r") for line in text.split("\n")]  # splitlines() also splits at U+2028 in a text
    return Table(Path("-"), [column], [{column: line} for line in lines], list(range(1, len(lines) + 1)))


def _write_csv(file, columns: list[str], rows: list[dict]) -> None:
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})


def _cell(value):
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value


def _write_jsonl(file, columns: list[str], rows: list[dict]) -> None:
    file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
