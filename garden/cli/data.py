"""Tables of text: CSV, TSV and JSONL files, read with errors that name the line.

CSV    the `csv` module's rules: a header, fields in double quotes where they hold commas, quotes or line breaks
TSV    a header, one row a line, no quoting: a quotation mark is a character of the text, as in the GLUE files
JSONL  one JSON object a line; numbers and booleans are taken as their JSON text

All are UTF-8, with or without a byte order mark. Blank lines are passed over. A text may be empty, a label may not.
"""

import csv
import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Table:
    """The rows of a file.

    Attributes:
        path: where it came from, for messages.
        columns: the names in the order of the file.
        rows: one dict a row, column name to value (str; in JSONL any JSON value).
        lines: the line of the file on which each row begins, counted from 1.
    """

    path: Path
    columns: list[str]
    rows: list[dict]
    lines: list[int]

    def texts(self, column: str) -> list[str]:
        """A column as strings; raises ValueError where it is missing or holds no text."""
        if column not in self.columns:
            raise ValueError(f"{self.path} has no column {column!r}; it has {', '.join(map(repr, self.columns))}")
        return [self._text(row, line, column) for row, line in zip(self.rows, self.lines, strict=True)]

    def labels(self, column: str) -> list[str]:
        """A column as class names; raises ValueError also where one is empty."""
        names = self.texts(column)
        for name, line in zip(names, self.lines, strict=True):
            if not name.strip():
                raise ValueError(f"{self.path}, line {line}: the label in column {column!r} is empty")
        return names

    def _text(self, row: dict, line: int, column: str) -> str:
        value = row.get(column)
        if isinstance(value, str):
            return _whole(value, f"{self.path}, line {line}: {column!r}")
        if isinstance(value, (bool, int, float)):
            return json.dumps(value)
        found = "missing" if column not in row else f"{json.dumps(value)}, not a text"
        raise ValueError(f"{self.path}, line {line}: {column!r} is {found}")


def read_table(path: str | Path) -> Table:
    """Reads a .csv, .tsv or .jsonl file.

    Raises FileNotFoundError, or ValueError for another suffix, a file without rows, bytes that are not UTF-8 and a row
    that does not fit its header.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "reviews.csv")
    >>> _ = path.write_text('text,label\\n"good, very good",pos\\n')
    >>> read_table(path).texts("text")
    ['good, very good']
    """
    path = Path(path)
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise ValueError(f"{path}: the name of a table must end in {', '.join(_READERS)}")
    text = decode(path.read_bytes(), path)
    if not text.strip():
        raise ValueError(f"{path} is empty")
    table = read(path, text)
    if not table.rows:
        raise ValueError(f"{path} has a header and no rows")
    return table


def decode(data: bytes, name: str | Path) -> str:
    """UTF-8 to text, without a byte order mark; raises ValueError that names the first wrong byte."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{name} is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}, line {line}; "
            "save it as UTF-8, for example with iconv -f latin1 -t utf-8"
        ) from None


def _read_csv(path: Path, text: str) -> Table:
    return _read_delimited(path, text, delimiter=",")


def _read_tsv(path: Path, text: str) -> Table:
    return _read_delimited(path, text, delimiter="\t", quoting=csv.QUOTE_NONE)


def _read_delimited(path: Path, text: str, **dialect) -> Table:
    records = _records(path, text, dialect)
    _, columns = next(records)
    repeated = {name for name in columns if columns.count(name) > 1}
    if repeated:
        raise ValueError(f"{path}: the header names {repeated.pop()!r} twice")
    rows, lines = [], []
    for line, fields in records:
        if len(fields) != len(columns):
            raise ValueError(f"{path}, line {line}: {len(fields)} fields where the header has {len(columns)}")
        rows.append(dict(zip(columns, fields, strict=True)))
        lines.append(line)
    return Table(path, columns, rows, lines)


def _records(path: Path, text: str, dialect: dict) -> Iterator[tuple[int, list[str]]]:
    """(line on which it begins, fields) of every record that is not a blank line."""
    csv.field_size_limit(sys.maxsize)  # the default refuses texts of more than 128 kB
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, **dialect)
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(f"{path}: the row that begins on line {line} cannot be read: {error}") from None
        if fields:
            yield line, fields


def _read_jsonl(path: Path, text: str) -> Table:
    rows, lines = [], []
    for line, record in enumerate(text.split("\n"), start=1):  # splitlines() would also split at U+2028 in a text
        if record.strip():
            rows.append(_json_object(path, line, record))
            lines.append(line)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return Table(path, columns, rows, lines)


def _json_object(path: Path, line: int, record: str) -> dict:
    try:
        value = json.loads(record)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {line}: not JSON: {error.msg} at column {error.colno}") from None
    if not isinstance(value, dict):
        raise ValueError(f'{path}, line {line}: a JSON object was expected, as {{"text": ..., "label": ...}}')
    return value


def _whole(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # JSON can write what UTF-8 cannot
        raise ValueError(f"{where} holds half of a surrogate pair, as \\ud83d without its second half") from None
    return text


_READERS = {".csv": _read_csv, ".tsv": _read_tsv, ".jsonl": _read_jsonl}
