"""Generated texts, to try an experiment that reads real ones."""

from pathlib import Path


def read(folder: str | Path) -> dict[str, str]:
    """Texts of one's own: the ``.txt`` files of a folder by their names, in order; ValueError where there is none."""
    files = sorted(Path(folder).glob("*.txt"))
    if not files:
        raise ValueError(f"no file *.txt is in {folder}; give a folder of texts, in order of their names")
    return {file.stem: file.read_text("utf-8") for file in files}
