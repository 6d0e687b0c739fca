"""garden presets: the built-in presets; --preset=NAME shows one in full, with its sources."""

import dataclasses

from absl import flags

_COLUMNS = {
    "name": "preset",
    "family": "family",
    "num_layers": "layers",
    "hidden_dim": "width",
    "num_heads": "heads",
    "vocabulary_size": "vocabulary",
    "parameters": "parameters",
    "language": "language",
    "licence": "licence",
}


def define_flags(values: flags.FlagValues) -> None:
    """One flag: the preset to show in full."""
    flags.DEFINE_string("preset", None, "show this preset with its sources instead of the table", flag_values=values)


def run(options: flags.FlagValues) -> None:
    """Prints the table, or one preset's fields."""
    from garden.presets import find, presets

    if options.preset:
        for field, value in dataclasses.asdict(find(options.preset)).items():
            print(f"{field:<22}{_cell(value)}")
        return
    rows = [[_cell(getattr(row, field)) for field in _COLUMNS] for row in presets().values()]
    print(_table([list(_COLUMNS.values()), *rows]))


def _cell(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _table(rows: list[list[str]]) -> str:
    """Columns as wide as their widest cell; numbers to the right."""
    columns = list(zip(*rows, strict=True))
    aligned = []
    for column in columns:
        width = max(map(len, column))
        right = all(cell.replace(",", "").isdigit() for cell in column[1:])
        aligned.append([cell.rjust(width) if right else cell.ljust(width) for cell in column])
    return "\n".join("  ".join(row).rstrip() for row in zip(*aligned, strict=True))
