"""Literals of the protocol, for columns that are known to have no nulls.

Engines forget of columns of files that they have no nulls. A column that is never null, or else a literal, is told to
be one, and has the values it has.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql.connect.proto import expressions_pb2

_Expression: Final = expressions_pb2.Expression
_ZEROS: Final[dict[str, Any]] = {
    "boolean": False, "byte": 0, "short": 0, "integer": 0, "long": 0, "float": 0.0, "double": 0.0, "string": "",
    "binary": b"", "date": 0, "timestamp": 0, "timestamp_ntz": 0,
}  # fmt: skip


def never_null(value: Any, kind: Any) -> Any:
    """The value as one that is never null; as it is, if there is no literal of its type."""
    literal = _literal_of(kind)
    if literal is None:
        return value
    call = _Expression.UnresolvedFunction(function_name="coalesce", arguments=[value, literal])
    return _Expression(unresolved_function=call)


def _literal_of(kind: Any) -> Any | None:
    name = str(kind.WhichOneof("kind"))
    if name == "decimal":
        zero = _Expression.Literal.Decimal(value="0", precision=kind.decimal.precision, scale=kind.decimal.scale)
        return _Expression(literal=_Expression.Literal(decimal=zero))
    if name not in _ZEROS or (name == "string" and kind.string.collation not in ("", "UTF8_BINARY")):
        return None
    return _Expression(literal=_Expression.Literal(**{name: _ZEROS[name]}))
