"""What a failed run says: where it failed, and nothing of what it held."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from tenure._http import Transport
from tenure._leased import secrets_of, without
from tenure._settings import Settings
from tenure._text import bounded, logger, traced
from tenure.context import Context
from tenure.records import LeaseRecord
from tenure.tasks import failed
from tenure.worker.written import write

#: Of contexts that make no call.
UNUSED = Transport(Settings.find("http://127.0.0.1:1", None, None), retry_for=0)
DATA = {"proxy": "http://anna:s3cret-of-anna@10.0.0.9:3128", "pin": "1234", "keys": ["k-0123456"]}


def inner(word: str) -> str:
    prices: dict[str, str] = {}
    return prices[word]


def outer(word: str) -> str:
    return inner(word)


def raised() -> BaseException:
    try:
        outer("missing")
    except KeyError as error:
        return error
    raise AssertionError


def test_an_error_says_what_it_is_and_then_where_it_came_from() -> None:
    text = traced(raised())
    what, where, code, *rest = text.split("\n")
    assert what == "KeyError: 'missing'"
    assert where.startswith("  ") and where.endswith(" in inner") and "test_traces.py:" in where
    assert code == "    return prices[word]"
    assert any(line.endswith(" in outer") for line in rest)


def test_a_long_trace_is_cut_at_a_line_and_keeps_what_it_is() -> None:
    whole = traced(raised())
    for most in (40, 60, 200, 300):
        text = bounded(whole, most)
        assert len(text.encode()) <= most
        assert whole.startswith(text) and (whole + "\n")[len(text)] == "\n"
    assert bounded(whole) == whole


@pytest.mark.parametrize("letter", ["x", "ü", "•", "\N{GRINNING FACE}"])
def test_a_long_message_keeps_its_start_its_end_and_its_origin(letter: str) -> None:
    try:
        raise ValueError("begin " + letter * 20_000 + " end")
    except ValueError as error:
        text = bounded(traced(error))
    assert len(text.encode()) <= 8_192
    message, where = text.split("\n")[:2]
    assert message.startswith(f"ValueError: begin {letter}") and message.endswith(f"{letter} end")
    assert " … " in message and where.endswith(
        "in test_a_long_message_keeps_its_start_its_end_and_its_origin"
    )


def test_a_cause_is_told_too() -> None:
    with pytest.raises(RuntimeError) as told:
        try:
            outer("missing")
        except KeyError as why:
            raise RuntimeError("no price") from why
    text = traced(told.value)
    assert text.startswith("RuntimeError: no price\n")
    assert "\nfrom KeyError: 'missing'\n" in text and " in inner" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no route to http://anna:s3cret-of-anna@10.0.0.9:3128", "no route to •••"),
        ("407 for s3cret-of-anna", "407 for •••"),
        ("407 for anna:s3cret-of-anna", "407 for •••"),
        ("key k-0123456 is over", "key ••• is over"),
        ("pin 1234 is short", "pin 1234 is short"),
        ("another ftp://bob:pw@host/x@y", "another ftp://•••@host/x@y"),
        ("two http://a@h and http://b:c@h", "two http://•••@h and http://•••@h"),
        ("nothing of it", "nothing of it"),
    ],
)
def test_leased_data_is_hidden_in_a_text(text: str, shown: str) -> None:
    assert without(text, secrets_of([DATA])) == shown


def test_leased_data_is_hidden_as_json_writes_it() -> None:
    secret = 'quote " and ü'
    for form in (json.dumps({"at": secret}), json.dumps({"at": secret}, ensure_ascii=False)):
        assert without(form, secrets_of([{"pw": secret}])) == '{"at": "•••"}'


def test_a_record_keeps_its_exception_and_is_one_line() -> None:
    seen: list[logging.LogRecord] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record)

    log, kept = logger("tenure.test_traces"), Kept()
    log.addHandler(kept)
    try:
        log.error("it failed\nbadly", exc_info=raised())
    finally:
        log.removeHandler(kept)
    (record,) = seen
    assert record.exc_info is not None and isinstance(record.exc_info[1], KeyError)
    line = logging.Formatter("%(levelname)s %(message)s").format(record)
    assert "\n" not in line and line.startswith("ERROR it failed\\nbadly: KeyError: 'missing' (at ")


def granted(data: Any) -> LeaseRecord:
    resource = {"pool": "accounts", "id": "a", "data": data, "tags": []}
    job = {"id": "j", "queue": "q", "kind": "", "state": "running", "attempt": 1, "payload": None}
    return LeaseRecord.read({"lease": "l", "fence": 1, "job": job, "resources": [resource]})


def test_a_failed_run_and_its_progress_hide_what_the_run_holds() -> None:
    reports: list[Any] = []
    context = Context(granted(DATA), UNUSED, reports.append)
    item = context._complete(failed(RuntimeError(f"cannot connect by {DATA['proxy']}")))
    assert item["error"].startswith("RuntimeError: cannot connect by •••")
    context.progress({"by": DATA["proxy"], "n": 1})
    assert json.loads(reports[0]) == {"by": "•••", "n": 1}


@pytest.mark.parametrize(
    ("secret", "value", "shown"),
    [
        ("100000", {"done": 100000, "pin": "100000"}, {"done": 100000, "pin": "•••"}),
        ("secret\\", {"at": 'secret\\ "x"', "n": 1.5}, {"at": '••• "x"', "n": 1.5}),
        ('nuance"', ["a\nuance", {"b": None}, True], ["a\nuance", {"b": None}, True]),
        ("u00e9t", {"été": "été"}, {"été": "été"}),
        ("seventy", [["seventy times"]], [["••• times"]]),
    ],
)
def test_progress_stays_json_whatever_a_secret_looks_like(
    secret: str, value: Any, shown: Any
) -> None:
    reports: list[Any] = []
    context = Context(granted({"pin": secret}), UNUSED, reports.append)
    context.progress(value)
    assert json.loads(reports[0]) == shown


def test_no_part_of_a_secret_is_left_where_a_long_error_is_cut() -> None:
    context = Context(granted(DATA), UNUSED, lambda _: None)
    for before in range(4_000, 4_120):
        error = RuntimeError(f"{'y' * before}{DATA['proxy']}{'z' * 8_192}")
        written = write(failed(error), context)
        assert written.error is not None and len(written.error.encode()) <= 8_192
        assert "anna" not in written.error and "s3cret" not in written.error
