"""Text that others wrote (messages of exceptions, reasons, names), made fit to be stored or logged.

An exception of a handler may hold whatever a web page or a file name held: half a surrogate pair,
which no UTF-8 can say, or line breaks and escape sequences, which would forge lines of a log and
drive the terminal that shows it.
"""

from __future__ import annotations

import logging
import os
import re
import traceback
import unicodedata
from typing import Optional

#: Besides controls, surrogates and line separators: what turns the direction of the text after it.
_BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_HIDDEN = ("Cc", "Cs", "Zl", "Zp")
#: The folder of this package.
_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
#: All that an exception's own code may raise, except `tenure.Stop`, which comes from the worker.
_FAULTS = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)
#: The most bytes of UTF-8 that the server keeps of an error.
ERROR_BYTES = 8 * 1024
#: Where the first frame stands in a text that `traced` made.
_FRAME = re.compile(r"\n  [^\n]+:\d+ in ")
_CUT = " … "


def storable(text: str) -> str:
    r"""Write a text so that it is UTF-8.

    >>> storable("half \ud83d")
    'half \\ud83d'
    """
    return text.encode("utf-8", "backslashreplace").decode()


def one_line(text: str) -> str:
    r"""Escape what would end a line, steer a terminal or turn the direction of the text.

    >>> one_line("a\nb \x1b[2J \x9b \u202e")
    'a\\nb \\x1b[2J \\x9b \\u202e'
    """
    if text.isprintable():
        return text
    return "".join(
        each.encode("unicode_escape").decode()
        if each in _BIDI or unicodedata.category(each) in _HIDDEN
        else each
        for each in text
    )


def message_of(error: BaseException) -> str:
    """Return the message of an exception, whatever its own code does."""
    try:
        # A subclass of `str` may do anything when it is put into another text.
        return storable(str.__str__(str(error)))
    except _FAULTS as why:
        return f"(its text cannot be read: {type(why).__name__})"


def describe(error: BaseException) -> str:
    """Return the type of an exception and its message."""
    message = message_of(error)
    between = " " if message.startswith("(its text") else ": "
    return storable(type(error).__name__) + (between + message if message else "")


def where(error: BaseException) -> str:
    """Return on one line where an exception came from, the innermost place first."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    return " < ".join(
        f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}"
        for frame in reversed(frames)
    )


def traced(error: BaseException) -> str:
    """Return what an exception is, and on lines of their own where it came from, innermost first.

    What it is stands first: failures are told apart by how they begin. Frames of this package, and
    exceptions that led to it beyond the third, are left out. It may be long: see `bounded`.
    """
    lines = [describe(error)]
    seen: Optional[BaseException] = error
    for depth in range(3):
        if seen is None:
            break
        if depth > 0:
            lines.append(f"from {describe(seen)}")
        for frame in reversed(traceback.extract_tb(seen.__traceback__)):
            if frame.filename.startswith(_HERE):
                continue
            lines.append(f"  {frame.filename}:{frame.lineno} in {frame.name}")
            if frame.line:
                lines.append(f"    {frame.line}")
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return storable("\n".join(lines))


def bounded(text: str, most: int = ERROR_BYTES) -> str:
    """Cut the text of an error to so many bytes of UTF-8.

    The start of what `traced` says of the exception itself stays, and its end, where the output of
    a program says why it failed, and then whole lines of where it came from, while there is room.
    Secrets are taken out before: half of one is none that could be found.
    """
    if len(text.encode()) <= most:
        return text
    frame = _FRAME.search(text)
    what = text if frame is None else text[: frame.start()]
    places = [] if frame is None else text[frame.start() + 1 :].split("\n")
    kept = _middle_cut(what, most // 2 if places else most)
    room = most - len(kept.encode())
    for line in places:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept += "\n" + line
    return kept


def _middle_cut(text: str, most: int) -> str:
    written = text.encode()
    if len(written) <= most:
        return text
    each = (most - len(_CUT.encode())) // 2
    # A character that is cut through is left out.
    return written[:each].decode(errors="ignore") + _CUT + written[-each:].decode(errors="ignore")


class _InMessage(str):
    """Where an exception came from, for a record whose message says it already.

    `logging.Formatter` writes the traceback of a record that has an exception, many lines with
    texts of a handler in them, unless this is there. It adds this on a line of its own, which is
    taken back.
    """

    def __radd__(self, formatted: str) -> str:
        return formatted[:-1] if formatted.endswith("\n") else formatted


class _OneLine(logging.Filter):
    """Makes a line of each record: no text of a handler can begin another one.

    The exception stays with the record, for handlers that report it elsewhere.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite a record."""
        message = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            if not getattr(record, "says_its_error", False):
                message += f": {describe(error)} (at {where(error)})"
            record.exc_text = _InMessage(one_line(where(error)) or "-")
        else:
            record.exc_info = record.exc_text = None
        record.msg, record.args = one_line(message), ()
        record.stack_info = None
        return True


def logger(name: str) -> logging.Logger:
    """Return the logger of a part of this package, whose every record is one line."""
    found = logging.getLogger(name)
    if not any(isinstance(each, _OneLine) for each in found.filters):
        found.addFilter(_OneLine())
    return found
