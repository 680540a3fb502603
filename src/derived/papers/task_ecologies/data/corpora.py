"""A plain-text file as letters: for texts of your own."""

import re
import unicodedata
from pathlib import Path

START = re.compile(r"\*\*\* ?START OF TH(?:E|IS) PROJECT GUTENBERG EBOOK.*?\*\*\*", re.IGNORECASE | re.DOTALL)
END = re.compile(r"\*\*\* ?END OF TH(?:E|IS) PROJECT GUTENBERG EBOOK", re.IGNORECASE)


def read_corpus(path: str | Path) -> str:
    """The letters of a UTF-8 file: accents dropped, all but a to z made spaces, Gutenberg's frame cut off.

    ValueError for another encoding, and for a file in which no letter is left.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "alice_fr.txt"
    >>> _ = file.write_text("Où es-tu ?", encoding="utf-8")
    >>> read_corpus(file)
    'ou es tu'
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = f"byte {error.start} is {error.object[error.start]:#04x}"
        raise ValueError(f"{path} is not UTF-8 ({place}); convert it first, for instance with iconv -t UTF-8") from None
    begun, ended = START.search(text), END.search(text)
    text = text[begun.end() if begun else 0 : ended.start() if ended else None]
    text = unicodedata.normalize("NFKD", text.lower().replace("ß", "ss").replace("æ", "ae").replace("œ", "oe"))
    text = "".join(each for each in text if not unicodedata.combining(each))
    if not (text := re.sub(r"[^a-z]+", " ", text).strip()):
        raise ValueError(f"{path} holds no letter from a to z; give the text of a language in Latin letters")
    return text
