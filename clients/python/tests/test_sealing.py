"""Codecs: what the server sees of payloads, results and progress, and what opens them again."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Server, Workers
from tenure import App, AsyncTenure, Codec, Context, Snooze, Tenure, ValuePlace, errors, limit
from tenure._calls import check
from tenure._wire import request
from tenure.sealing import opened, sealed
from tenure.testing import pushed, run_until_idle
from toy_codec import CLEAR, NEW, OLD, VECTOR, Toy

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "encrypted-payloads.md"
MAIL = ValuePlace("payload", "mail", "send")


@pytest.fixture
def bare(m: Tenure) -> Tenure:
    """A client without a codec."""
    return m


@pytest.fixture
def c(memory_server: Server, namespace: str) -> Iterator[Tenure]:
    """A client of the same namespace, with a codec."""
    with Tenure(memory_server.url, namespace=namespace, codec=Toy(NEW, OLD)) as client:
        yield client


@pytest.fixture
def app(memory_server: Server, namespace: str) -> App:
    app = App(memory_server.url, namespace=namespace, codec=Toy(NEW, OLD))

    @app.job("mail")
    def send(ctx: Context, to: str) -> dict[str, str]:
        ctx.progress({"sent to": to})
        return {"sent": to}

    return app


def raw(client: Tenure, *path: str) -> str:
    """Return what the server answers, as text."""
    return json.dumps(check(client._transport.send(request("GET", *path))))


def test_the_clients_agree_on_the_form() -> None:
    assert sealed(Toy(NEW, OLD), CLEAR, MAIL) == VECTOR
    assert opened(Toy(OLD, NEW), VECTOR, "payload") == CLEAR
    assert MAIL.associated_data == b"payload\0mail\0send"


def test_the_server_never_sees_a_value(bare: Tenure, c: Tenure, app: App) -> None:
    (send,) = app.tasks
    job = app.push(send, to="ann@example.com")
    assert job.payload == {"to": "ann@example.com"}
    (ran,) = run_until_idle(app)
    assert (ran.outcome, ran.result) == ("succeeded", {"sent": "ann@example.com"})
    assert job.get(10) == {"sent": "ann@example.com"}
    assert list(job.progress(1)) == [{"sent to": "ann@example.com"}]
    seen = raw(bare, "jobs", job.id)
    assert "ann@" not in seen and seen.count("$sealed") == 3
    assert "ann@" not in raw(bare, "jobs", job.id, "result")
    shown = c.jobs.get(job.id)
    assert shown.payload == {"to": "ann@example.com"}
    assert shown.result == {"sent": "ann@example.com"}
    assert shown.last_progress == {"sent to": "ann@example.com"}
    assert [each.payload for each in pushed(c, "mail")] == [{"to": "ann@example.com"}]
    # Without the codec a job is shown as it is.
    assert set(bare.jobs.get(job.id).payload) == {"$sealed", "codec", "queue", "kind"}


@pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
def test_each_kind_of_worker_opens_and_seals(
    bare: Tenure, c: Tenure, memory_server: Server, namespace: str, folder: Path, kind: str
) -> None:
    jobs = [c.push("mail", {"to": "ann@example.com"}, kind=each) for each in ("send", "asend")]
    worker = Workers(memory_server.url, namespace, folder)
    process = worker.start("--kind", kind, "--until-empty", app="sealing_app:app")
    assert process.wait(30) == 0, worker.log()
    for job in jobs:
        assert job.get(10) == {"sent": "ann@example.com"}
        assert "ann@" not in raw(bare, "jobs", job.id)


def test_every_way_of_a_push_is_sealed(bare: Tenure, c: Tenure) -> None:
    c.push("q", {"n": "secret"})
    c.push_all([{"queue": "q", "payload": {"n": "secret"}}, {"queue": "q"}])
    c.push_many({"queue": "q", "payload": {"n": "secret"}} for _ in range(3))
    c.schedules.set("s", every="1h", job={"queue": "q", "payload": {"n": "secret"}})
    c.schedules.change("s", job={"queue": "q", "kind": "k", "payload": {"n": "secret"}})
    assert "secret" not in raw(bare, "schedules", "s")
    c.schedules.run_now("s")
    c.schedules.sync("o", [{"id": "s2", "every": "1h", "job": {"payload": {"n": "secret"}}}])
    c.schedules.run_now("s2")
    jobs = list(bare.jobs.list(full=True))
    assert len(jobs) == 8 and "secret" not in json.dumps([job.payload for job in jobs])
    assert sorted(str(job.payload) for job in c.jobs.list(full=True)) == [
        *(["None"]), *(["{'n': 'secret'}"] * 7),
    ]  # fmt: skip


def test_a_changed_payload_is_sealed_for_its_job(bare: Tenure, c: Tenure, app: App) -> None:
    job = c.push("mail", {"to": "bob"}, kind="send", unique="k")
    assert c.jobs.change("key:k", payload={"to": "ann@example.com"}).payload["to"][:3] == "ann"
    assert c.jobs.change(job.id, priority=5).payload == {"to": "ann@example.com"}
    assert "ann@" not in raw(bare, "jobs", job.id)
    assert run_until_idle(app)[0].result == {"sent": "ann@example.com"}


def test_handlers_read_the_results_of_parents(c: Tenure, app: App) -> None:
    found: list[Any] = []

    @app.job("report")
    def report(ctx: Context) -> None:
        found.extend(each.result for each in ctx.parents())

    parent = c.push("mail", {"to": "ann"}, kind="send")
    child = c.push("report", kind="report", after=[parent.id])
    run_until_idle(app)
    assert found == [{"sent": "ann"}]
    assert [each.result for each in c.jobs.parents(child.id, full=True)] == [{"sent": "ann"}]


def test_clear_values_are_taken_as_they_are(bare: Tenure, c: Tenure, app: App) -> None:
    bare.push("mail", {"to": "ann"}, kind="send")
    assert run_until_idle(app)[0].result == {"sent": "ann"}

    plain = App(bare._settings.url, namespace=bare._settings.namespace)

    @plain.job("mail")
    def send(to: str) -> str:
        return f"clear to {to}"

    job = bare.push("mail", {"to": "bob"}, kind="send")
    run_until_idle(plain)
    assert c.jobs.wait(job.id, 10).get() == "clear to bob"


def test_a_read_only_codec_sends_clear_values(bare: Tenure, namespace: str, app: App) -> None:
    class Reading(Toy):
        read_only = True

    with Tenure(bare._settings.url, namespace=namespace, codec=Reading(OLD, NEW)) as reader:
        job = reader.push("mail", {"to": "ann"}, kind="send")
        assert bare.jobs.get(job.id).payload == {"to": "ann"}
        run_until_idle(app)
        assert "$sealed" in raw(bare, "jobs", job.id)
        assert reader.jobs.wait(job.id, 10).get() == {"sent": "ann"}


class Other(Toy):
    name = "other"


class Away(Toy):
    """A codec whose keys cannot be had now."""

    def decode(self, sealed: bytes, place: ValuePlace) -> bytes:
        raise Snooze("1h")


@pytest.mark.parametrize(
    ("codec", "code", "words"),
    [
        (None, "no_codec", 'sealed by the codec "toy", and this client has no codec'),
        (Other(NEW), "wrong_codec", 'this client has "other"'),
        (Toy(OLD), "codec_failed", "there is no key 2 here"),
        (Toy((2, b"of somebody")), "codec_failed", "the sum is wrong"),
    ],
)
def test_what_cannot_be_opened_is_a_final_failure(
    bare: Tenure, c: Tenure, namespace: str, codec: Any, code: str, words: str
) -> None:
    app = App(bare._settings.url, namespace=namespace, codec=codec)

    @app.job("mail")
    def send(to: str) -> None:
        raise AssertionError("it must not run")

    job = c.push("mail", {"to": "ann"}, kind="send")
    (ran,) = run_until_idle(app, raises=False)
    assert ran.outcome == "failed" and words in str(ran.error) and f"[{code}]" in str(ran.error)
    shown = bare.jobs.get(job.id)
    assert (shown.state, shown.attempt) == ("failed", 1)
    with pytest.raises(errors.CodecError, match=words) as refused:
        opened(codec, sealed(Toy(NEW), "x", MAIL), "payload")
    assert refused.value.code == code and refused.value.hint


def test_no_error_quotes_a_value(bare: Tenure, c: Tenure, namespace: str) -> None:
    class NoJson(Toy):
        def decode(self, sealed: bytes, place: ValuePlace) -> bytes:
            return b"secret, and no JSON"

    app = App(bare._settings.url, namespace=namespace, codec=NoJson(NEW))
    app.job("mail", kind="send")(lambda to: None)
    job = c.push("mail", {"to": "ann"}, kind="send")
    run_until_idle(app, raises=False)
    error = str(bare.jobs.get(job.id).error)
    assert "did not open the payload: JSONDecodeError" in error and "secret" not in error


def test_a_codec_may_ask_for_time(bare: Tenure, c: Tenure, namespace: str) -> None:
    app = App(bare._settings.url, namespace=namespace, codec=Away(NEW))
    app.job("mail", kind="send")(lambda to: None)
    job = c.push("mail", {"to": "ann"}, kind="send")
    assert run_until_idle(app)[0].outcome == "snoozed"
    assert bare.jobs.get(job.id).state == "scheduled"


def test_a_result_without_its_codec_is_an_error(bare: Tenure, c: Tenure, app: App) -> None:
    job = c.push("mail", {"to": "ann"}, kind="send")
    run_until_idle(app)
    for wait in (bare.jobs.get(job.id).wait, bare.jobs.get(job.id).get):
        with pytest.raises(errors.CodecError) as refused:
            wait(5)
        assert refused.value.code == "no_codec"


def test_a_payload_of_another_place_is_refused(bare: Tenure, c: Tenure, app: App) -> None:
    elsewhere = bare.jobs.get(c.push("other", {"to": "ann"}).id)
    bare.push("mail", elsewhere.payload, kind="send")
    (ran,) = run_until_idle(app, raises=False)
    assert 'was sealed for the kind "" in queue "other"' in str(ran.error)
    with pytest.raises(errors.CodecError):
        opened(Toy(NEW), {**VECTOR, "kind": "resend"}, "payload")
    with pytest.raises(errors.CodecError):
        opened(Toy(NEW), VECTOR, "result")


def test_what_cannot_be_sealed_is_not_sent(bare: Tenure, namespace: str) -> None:
    class Broken(Codec):
        name = "broken"

        def encode(self, clear: bytes, place: ValuePlace) -> Any:
            return 7 if b"number" in clear else None

    with Tenure(bare._settings.url, namespace=namespace, codec=Broken()) as client:
        for payload in ("number", "nothing"):
            with pytest.raises(errors.CodecError, match="encode must return bytes"):
                client.push("q", payload)
        assert not list(bare.jobs.list())
        client.push("q", None)
    with pytest.raises(TypeError, match=r"must be a tenure\.Codec"):
        Tenure(codec=object())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="Codec has no name"):
        App(codec=Codec())


def test_a_result_that_grew_too_long_fails_for_good(c: Tenure, app: App) -> None:
    app.job("long", kind="long")(lambda: "x" * 200_000)
    job = c.push("long", kind="long")
    (ran,) = run_until_idle(app, raises=False)
    assert "once it is sealed" in str(ran.error) and c.jobs.get(job.id).attempt == 1


def test_needs_from_a_sealed_payload_are_refused_with_advice(c: Tenure) -> None:
    c.limits.set("site:*", concurrency=1)
    c.queues.set("crawl", needs=[{"limit": "site:{payload.host}"}])
    for push in (
        lambda: c.push("crawl", {"host": "a"}),
        lambda: c.push_all([{"queue": "crawl", "payload": {"host": "a"}}]),
    ):
        with pytest.raises(errors.InvalidField) as refused:
            push()
        assert "the payload is sealed" in str(refused.value.hint)
    assert c.push("crawl", {"host": "a"}, needs=[limit("site:a")]).state == "ready"


def test_the_asynchronous_client_does_the_same(bare: Tenure, namespace: str, app: App) -> None:
    async def main() -> None:
        async with AsyncTenure(
            bare._settings.url, namespace=namespace, codec=Toy(NEW, OLD)
        ) as client:
            job = await client.push("mail", {"to": "ann@example.com"}, kind="send")
            assert "ann@" not in raw(bare, "jobs", job.id)
            await asyncio.to_thread(run_until_idle, app)
            assert await job.get(10) == {"sent": "ann@example.com"}

    asyncio.run(main())


#: `CLEAR`, sealed by the codec of the guide with its first key; it stands in the tests of the
#: TypeScript client, too.
KEYS = "2:AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=,1:" + "AQEB" * 10 + "AQE="
AES_VECTOR = {
    **VECTOR,
    "codec": "aes-gcm",
    "$sealed": "ArDexLQDDuL9ggQw3P0Djody7owzbybQ4m2j7F2+IO6s0djAXifDsE1MHlgR"
    "AeXXw3n2Fh8V4za6lA0Hn590lZvRLag/tjzbjzAsOZNMYljg",
}


def test_the_codec_of_the_guide_opens_what_the_other_clients_sealed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("cryptography")
    monkeypatch.setenv("MAIL_KEYS", KEYS)
    (code,) = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.M | re.S)
    names: dict[str, Any] = {"__name__": "sealed_mail"}
    exec(code, names)
    both, old = names["AesGcm"](KEYS), names["AesGcm"](KEYS.split(",")[1])
    assert opened(both, AES_VECTOR, "payload") == CLEAR
    for made in (sealed(both, CLEAR, MAIL), sealed(old, CLEAR, MAIL)):
        assert opened(both, made, "payload") == CLEAR
        for part in ("result", "progress"):
            with pytest.raises(errors.CodecError, match="InvalidTag"):
                opened(both, made, part)
    with pytest.raises(errors.CodecError, match="there is no key 2 here"):
        opened(old, sealed(both, CLEAR, MAIL), "payload")
