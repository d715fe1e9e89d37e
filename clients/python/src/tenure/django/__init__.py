"""Tenure in a Django project: settings, pushes that wait for the commit, and a worker command.

Add `tenure.django` to INSTALLED_APPS for `manage.py tenure_worker`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, Union, overload

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from .. import _settings
from .._settings import Settings
from .._text import logger
from .._wire import new_id
from ..app import App as _App
from ..payloads import encode
from ..pushable import A, After0, After1, After2, After3, B, C, Pushable
from ..sealing import Codec

if TYPE_CHECKING:
    import logging

    from typing_extensions import Concatenate, ParamSpec

    from ..context import Context

    P = ParamSpec("P")
else:
    # Python 3.9 has no ParamSpec.
    P = TypeVar("P")

log: logging.Logger = logger("tenure.django")

_KNOWN = {"URL", "TOKEN", "NAMESPACE", "CA"}
#: A request that waits for a server to come back holds a thread of the web server meanwhile.
_RETRY_FOR_S = 5.0


class App(_App):
    """An app whose server `settings.TENURE` names: `{"URL": …, "TOKEN": …, "NAMESPACE": …}`.

    What is not there comes from TENURE_URL, TENURE_TOKEN and TENURE_NAMESPACE.
    """

    def __init__(
        self,
        *,
        retry_for: float = _RETRY_FOR_S,
        owner: Optional[str] = None,
        codec: Optional[Codec] = None,
    ) -> None:
        super().__init__(retry_for=retry_for, owner=owner, codec=codec)

    @property
    def settings(self) -> Settings:
        """Where the server is, as the settings say now."""
        given: dict[str, Any] = getattr(django_settings, "TENURE", {})
        unknown = sorted(set(given) - _KNOWN)
        if unknown:
            raise ImproperlyConfigured(
                f'settings.TENURE has no "{unknown[0]}"; it takes {", ".join(sorted(_KNOWN))}'
            )
        found = Settings.find(
            given.get("URL"), given.get("TOKEN"), given.get("NAMESPACE"), given.get("CA")
        )
        return _settings.instead or found


@overload
def push_on_commit(
    task: Pushable[Callable[Concatenate[Context, P], Any]], *args: P.args, **kwargs: P.kwargs
) -> str: ...
@overload
def push_on_commit(
    task: Pushable[After3[A, B, C, Any]], *args: Union[A, B, C], **kwargs: Union[A, B, C]
) -> str: ...
@overload
def push_on_commit(
    task: Pushable[After2[A, B, Any]], *args: Union[A, B], **kwargs: Union[A, B]
) -> str: ...
@overload
def push_on_commit(task: Pushable[After0[Any]]) -> str: ...
@overload
def push_on_commit(task: Pushable[After1[A, Any]], *args: A, **kwargs: A) -> str: ...
@overload
def push_on_commit(task: Pushable[Callable[P, Any]], *args: P.args, **kwargs: P.kwargs) -> str: ...
def push_on_commit(task: Pushable[Any], *args: Any, **kwargs: Any) -> str:
    """Push a job when the transaction commits, and not if it is rolled back; return the job's id.

    Arguments are read now, and a wrong one is raised now. Nothing is raised after the commit, when
    it could undo nothing: a push that fails is logged as an error of `tenure.django`, and the job
    may be lost. Without a transaction the job is pushed at once, by the same rule.
    """
    app = task.app
    # Frozen: what the arguments refer to may change until the commit.
    fields: dict[str, Any] = json.loads(encode(task.spec(*args, **kwargs)))
    id = str(fields.setdefault("id", new_id("job")))

    def push() -> None:
        try:
            app.push_job(fields)
        except Exception as error:
            log.error(
                'job %s of queue "%s" could not be pushed after the commit, and may be lost: %s',
                id,
                fields["queue"],
                error,
            )

    transaction.on_commit(push)
    return id
