"""The folder of one training run, in which everything is whole or absent.

config.json            every flag, the versions, the data's checksums; written first
backup/                from where a killed run goes on; removed at the end
preset/                the trained model
learning_curve.png     and what else the job draws
metrics.json           written last: a folder that has it is a finished run
"""

import errno
import json
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@contextmanager
def replacing(target: str | Path) -> Iterator[Path]:
    """Yields a temporary path beside `target`; what was written there takes its place only if the block succeeds.

    `target` may be a file or a folder. On any error the temporary is removed and `target` stays as it was.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary, old = (target.with_name(f".{part}-{target.name}") for part in ("partial", "old"))
    remove(temporary)
    try:
        yield temporary
        if target.is_dir():  # a folder with files in it cannot be replaced in one move, as a file can
            remove(old)
            os.replace(target, old)
        os.replace(temporary, target)
    except BaseException:
        remove(temporary)
        raise
    remove(old)


def remove(path: Path) -> None:
    """Deletes a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def require_space(folder: Path, variables: list) -> None:
    """Raises OSError unless the disk of `folder` has room for the Keras variables, at 4 bytes a number.

    Keras saves through h5py, which on a disk that fills up leaves a file open: the process then crashes at its end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    needed, free = 4 * sum(math.prod(variable.shape) for variable in variables), shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(errno.ENOSPC, f"No space left on device: {needed:,} bytes are needed, {free:,} free", str(folder))


def write_json(path: Path, value: dict | list) -> None:
    """Writes readable JSON, all of it or nothing."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", "utf-8")


@dataclass(frozen=True)
class RunFolder:
    """Where the parts of a run lie, and the settings it has or will have.

    Attributes:
        path: the folder.
        settings: what config.json holds; the parts "flags" and "data" tell one run from another.
    """

    path: Path
    settings: dict

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def backup(self) -> Path:
        return self.path / "backup"

    @property
    def preset(self) -> Path:
        return self.path / "preset"

    @property
    def learning_curve(self) -> Path:
        return self.path / "learning_curve.png"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.json"

    def differences(self) -> list[str]:
        """How the settings of the run that lies there differ from these."""
        old = _read_config(self)
        if old is None:
            return []
        before, now = ({**values["flags"], **values["data"]} for values in (old, self.settings))
        return [f"{key} was {before.get(key)}" for key in sorted({*before, *now}) if before.get(key) != now.get(key)]

    def begin(self) -> None:
        """Writes config.json, after clearing a run that this one replaces; one with the same settings goes on."""
        if self.metrics.exists() or self.differences():
            for part in (self.metrics, self.backup, self.preset, *self.path.glob("*.png")):
                remove(part)
        write_json(self.config, self.settings)

    def finish(self, metrics: dict) -> None:
        """Marks the run as finished."""
        write_json(self.metrics, metrics)
        remove(self.backup)


def open_run(path: str | Path, settings: dict, overwrite: bool = False) -> RunFolder:
    """The run folder at `path`, checked and not yet touched: `begin` is for when all else is known to be right.

    Args:
        path: the folder, which need not exist.
        settings: the run's configuration, see `RunFolder`.
        overwrite: whether a finished run, or one with other settings, may be replaced.

    Raises ValueError if the folder holds such a run, or something that is no run at all.
    """
    run = RunFolder(Path(path), settings)
    if _read_config(run) is None and run.path.exists() and any(run.path.iterdir()):
        raise ValueError(f"{path} is not empty and holds no run of garden: choose another --output")
    if run.metrics.exists() and not overwrite:
        raise ValueError(f"{path} holds a finished run: choose another --output, or replace it with --overwrite")
    if run.backup.exists() and run.differences() and not overwrite:
        raise ValueError(
            f"{path} holds an unfinished run with other settings ({'; '.join(run.differences())}): repeat those to go "
            "on with it, choose another --output, or replace it with --overwrite"
        )
    return run


def _read_config(run: RunFolder) -> dict | None:
    """What config.json holds; None where there is none or it is another program's, as in a model folder."""
    if not run.config.exists():
        return None
    config = json.loads(run.config.read_text("utf-8"))
    return config if isinstance(config, dict) and {"flags", "data"} <= config.keys() else None
