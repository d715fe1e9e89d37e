"""Values to JSON and back: dataclasses, TypedDicts, pydantic models, and what JSON knows itself."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import math
import re
import sys
import uuid
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, Union, get_args, get_origin, get_type_hints

from .durations import duration_text

if sys.version_info >= (3, 10):
    import types

    _UNIONS: tuple[Any, ...] = (Union, types.UnionType)
else:
    _UNIONS = (Union,)


#: How deep a value may be nested: the server reads 64 levels, and three are around a value.
LEVELS = 61
#: The most bytes of a result: beyond it the settle would be refused.
RESULT_BYTES = 256 * 1024


def encode(value: Any, name: str = "") -> bytes:
    """Write a value as JSON. NaN and infinities are no JSON and are refused.

    `name` is what the value is called by the error, which says where it cannot be written.

    >>> encode({"order": {"at": object()}}, "payload")
    Traceback (most recent call last):
    TypeError: payload.order.at: object is not JSON; use str, int, float, bool, None, list or dict
    """
    try:
        return _ENCODER.encode(value).encode()
    except (TypeError, ValueError, RecursionError) as refused:
        # Looked for only now: a value that can be written is walked once.
        _refuse(value, name, 0)
        if isinstance(refused, RecursionError):
            raise ValueError(f"{name or 'value'}: nested too deeply to be JSON") from None
        raise


#: Deeper values are refused by the server, so no further place need be named.
_DEEPEST = 64


def _refuse(value: Any, where: str, depth: int) -> None:
    """Raise for the first part of a value that is no JSON, and name its place."""
    shown = where or "value"
    if depth > _DEEPEST:
        raise ValueError(f"{shown}: nested deeper than {_DEEPEST}, or a part of itself")
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"{shown}: text with half a surrogate pair is not JSON; decode it anew"
            ) from None
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{shown}: {value} is not JSON; use None or text")
    elif isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, (str, int, float, bool, type(None))):
                raise TypeError(f"{shown}: a key is {type(key).__name__}; keys of JSON are text")
            _refuse(key, shown, depth)
            _refuse(part, f"{where}.{key}" if where else str(key), depth + 1)
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            _refuse(part, f"{where}[{index}]", depth + 1)
    elif value is not None and not isinstance(value, int):
        try:
            plain = _plain(value)
        except TypeError as refused:
            raise TypeError(f"{shown}: {refused}") from None
        _refuse(plain, where, depth + 1)


def too_deep(written: bytes) -> int:
    """Return how deep JSON is nested, if that is more than `LEVELS`; otherwise 0.

    >>> too_deep(b"[" * 70 + b"]" * 70), too_deep(b'["' + b"[" * 70 + b'"]')
    (70, 0)
    """
    if written.count(b"[") + written.count(b"{") <= LEVELS:
        return 0
    most = depth = 0
    for bracket in re.findall(rb'"(?:[^"\\]|\\.)*"|[][{}]', written):
        if bracket in (b"[", b"{"):
            depth += 1
            most = max(most, depth)
        elif bracket in (b"]", b"}"):
            depth -= 1
    return most if most > LEVELS else 0


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return dump(mode="json")
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return duration_text(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(
        f"{type(value).__name__} is not JSON; use str, int, float, bool, None, list or dict"
    )


#: Made once: `json.dumps` would make one for each call.
_ENCODER = json.JSONEncoder(
    default=_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")
)


class DoesNotFit(ValueError):
    """A payload is not of the form that its handler declares. Shows where, never the value."""


def is_model(kind: Any) -> bool:
    """Say whether a type describes a whole JSON object."""
    return (
        dataclasses.is_dataclass(kind)
        or hasattr(kind, "model_validate")
        or _is_typed_dict(kind)
        or kind in (dict, Mapping, Any)
        or get_origin(kind) in (dict, Mapping)
        or _is_abc_mapping(kind)
    )


def _is_abc_mapping(kind: Any) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _is_typed_dict(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__total__")


def fit(kind: Any, value: Any, where: str = "payload") -> Any:
    """Read a JSON value as a type.

    >>> @dataclasses.dataclass
    ... class Mail:
    ...     to: str
    ...     at: datetime
    >>> fit(Mail, {"to": "ann", "at": "2026-12-01T09:55:00+00:00"}).at.hour
    9
    """
    if kind is Any or kind is object or isinstance(kind, str):
        return value
    if hasattr(kind, "model_validate"):
        try:
            return kind.model_validate(value)
        except ValueError as refused:
            # pydantic's own text shows the value.
            raise DoesNotFit(f"{where} does not fit {kind.__name__}: {_places(refused)}") from None
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _fit_dataclass(kind, value, where)
    if _is_typed_dict(kind):
        return _fit_typed_dict(kind, value, where)
    origin = get_origin(kind)
    if origin in _UNIONS:
        return _fit_union(get_args(kind), value, where)
    if origin in (list, set, frozenset, tuple, Sequence) or (
        isinstance(origin, type) and issubclass(origin, Sequence)
    ):
        _expect(value, list, where)
        inner = get_args(kind)[:1] or (Any,)
        items = [fit(inner[0], item, f"{where}[{n}]") for n, item in enumerate(value)]
        return origin(items) if origin in (set, frozenset, tuple) else items
    if origin is dict or _is_abc_mapping(kind):
        _expect(value, dict, where)
        inner = get_args(kind)[1:] or (Any,)
        return {key: fit(inner[0], item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(kind, type):
        return _fit_plain(kind, value, where)
    return value


def _fit_plain(kind: type, value: Any, where: str) -> Any:
    if issubclass(kind, (datetime, date, time, uuid.UUID, enum.Enum)):
        make: Any = kind if issubclass(kind, (uuid.UUID, enum.Enum)) else _moment_maker(kind)
        try:
            return make(value)
        except (ValueError, TypeError, AttributeError):
            raise DoesNotFit(f"{where} is no {kind.__name__}") from None
    if kind is float and type(value) is int:
        return float(value)
    if kind is type(None):
        _expect(value, type(None), where)
    elif kind in (str, int, float, bool, dict, list):
        _expect(value, kind, where)
    return value


def _moment_maker(kind: Any) -> Any:
    return lambda text: kind.fromisoformat(text.replace("Z", "+00:00"))


def _expect(value: Any, kind: type, where: str) -> None:
    # `True` is an int for Python and none for JSON.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise DoesNotFit(f"{where} must be {kind.__name__}, not {type(value).__name__}")


@functools.lru_cache(maxsize=256)
def _hints(kind: Any) -> dict[str, Any]:
    """Return the types of the fields of a class; to find them takes longer than to read a value."""
    return get_type_hints(kind)


def _fit_dataclass(kind: type, value: Any, where: str) -> Any:
    _expect(value, dict, where)
    hints = _hints(kind)
    fields = {f.name: f for f in dataclasses.fields(kind) if f.init}
    missing = [
        name
        for name, f in fields.items()
        if name not in value
        and f.default is dataclasses.MISSING
        and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise DoesNotFit(f'{where} does not fit {kind.__name__}: "{missing[0]}" is missing')
    # A field that this version does not know is left out: the pusher may be newer.
    read = {
        name: fit(hints.get(name, Any), value[name], f"{where}.{name}")
        for name in fields
        if name in value
    }
    return kind(**read)


def _fit_typed_dict(kind: Any, value: Any, where: str) -> Any:
    _expect(value, dict, where)
    hints = _hints(kind)
    for name in sorted(kind.__required_keys__):
        if name not in value:
            raise DoesNotFit(f'{where} does not fit {kind.__name__}: "{name}" is missing')
    return {
        name: fit(hints[name], item, f"{where}.{name}") if name in hints else item
        for name, item in value.items()
    }


def _fit_union(kinds: Sequence[Any], value: Any, where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    first: Union[DoesNotFit, None] = None
    for kind in kinds:
        if kind is type(None):
            continue
        try:
            return fit(kind, value, where)
        except DoesNotFit as refused:
            first = first or refused
    raise first or DoesNotFit(f"{where} does not fit")


def _places(refused: Any) -> str:
    """Name the fields that pydantic refused, and why, without their values."""
    errors = getattr(refused, "errors", None)
    if errors is None:
        return "it is refused"
    found = errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(
        f"{'.'.join(str(part) for part in error['loc']) or 'it'}: {error['msg']}" for error in found
    )
