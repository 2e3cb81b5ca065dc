"""Calls that may change the settings of a session.

Settings change by calls for settings, and by texts of SQL (`SET`, `RESET`, scripts). Law: a text that does not begin
with a word that is known to leave them alone may change them.
"""

from __future__ import annotations

from typing import Any, Final

_READING: Final = frozenset({"get", "get_all", "get_option", "get_with_default", "is_modifiable"})
_LEAVING: Final = frozenset({
    "select", "with", "values", "from", "table", "show", "describe", "desc", "explain", "create", "drop", "insert",
})  # fmt: skip
_LEAVING_COMMANDS: Final = frozenset({
    "write_operation", "write_operation_v2", "create_dataframe_view", "register_function", "register_table_function",
    "register_data_source", "checkpoint_command", "merge_into_table_command", "remove_cached_remote_relation_command",
    "get_resources_command", "create_resource_profile_command",
})  # fmt: skip


def config_may_reset(request: Any) -> bool:
    """Whether a call for settings may change some."""
    return request.operation.WhichOneof("op_type") not in _READING


def plan_may_reset(plan: Any) -> bool:
    """Whether a plan that is executed may change settings."""
    if plan.WhichOneof("op_type") == "root":
        return _text_may_reset(plan.root)
    kind = plan.command.WhichOneof("command_type")
    if kind != "sql_command":
        return kind not in _LEAVING_COMMANDS
    told = plan.command.sql_command
    return _text_may_reset(told.input) if told.HasField("input") else _may_reset(told.sql)


def _text_may_reset(relation: Any) -> bool:
    kind = relation.WhichOneof("rel_type")
    if kind == "with_relations":
        return _text_may_reset(relation.with_relations.root)
    return kind == "sql" and _may_reset(relation.sql.query)


def _may_reset(text: str) -> bool:
    words = text.replace("(", " ").split(None, 1)
    return not words or words[0].lower() not in _LEAVING
