"""Text that others wrote (messages of exceptions, reasons, names), made fit to be stored or logged.

An exception of a handler may hold whatever a web page or a file name held: half a surrogate pair,
which no UTF-8 can say, or line breaks and escape sequences, which would forge lines of a log and
drive the terminal that shows it.
"""

from __future__ import annotations

import logging
import os
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


def traced(error: BaseException, most: int) -> str:
    """Return what an exception is and where it came from, innermost first.

    It has at most so many characters. What it is stands first: failures are told apart by how they
    begin. Frames of this package, and exceptions that led to it beyond the third, are left out.
    """
    text = describe(error)[-most:]
    seen: Optional[BaseException] = error
    for depth in range(3):
        if seen is None:
            break
        lines = [] if depth == 0 else [f"from {describe(seen)}"]
        for frame in reversed(traceback.extract_tb(seen.__traceback__)):
            if frame.filename.startswith(_HERE):
                continue
            lines.append(f"  {frame.filename}:{frame.lineno} in {frame.name}")
            if frame.line:
                lines.append(f"    {frame.line}")
        for line in lines:
            if len(text) + 1 + len(line) > most:
                return text
            text += "\n" + storable(line)
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return text


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
