"""What kinds of relations, expressions and commands the protocol of Spark Connect has, and what becomes of each.

An allow-list: a kind that is neither listed here as known nor as refused is refused as unknown. A test compares the
lists with the protocol of the installed client. Only Sort promises an order of rows; what the order has to do with a
relation is said by its Order.
"""

from __future__ import annotations

from typing import Final

from nectar.program.tree import POSITIONAL, ROW_WISE, Order

_SCRAMBLED: Final = Order(scrambles=True, carries=False)
_SORTED: Final = Order(carries=False, arbitrary=True)  # ties come in any order; a text may sort or not
UNSORTED: Final = Order(scrambles=True, carries=False, arbitrary=True)  # a text that says nothing of order
_OPEN: Final = Order(scrambles=True, carries=False, arbitrary=True)  # sums of floats, first values, ties
_BY_PARTITION: Final = Order(sensitive=True, arbitrary=True)  # a function sees how the engine cut its input

RELATIONS: Final[dict[str, Order]] = {
    "read": _SCRAMBLED,
    "local_relation": ROW_WISE,
    "cached_local_relation": ROW_WISE,  # the client names its data by their hash
    "chunked_cached_local_relation": ROW_WISE,
    "range": ROW_WISE,
    "project": ROW_WISE,
    "filter": ROW_WISE,
    "subquery_alias": ROW_WISE,
    "to_df": ROW_WISE,
    "to_schema": ROW_WISE,
    "with_columns": ROW_WISE,
    "with_columns_renamed": ROW_WISE,
    "with_relations": ROW_WISE,
    "drop": ROW_WISE,
    "hint": ROW_WISE,
    "unpivot": ROW_WISE,
    "parse": ROW_WISE,
    "fill_na": ROW_WISE,
    "drop_na": ROW_WISE,
    "replace": ROW_WISE,
    "sort": _SORTED,
    "sql": _SORTED,
    "limit": POSITIONAL,
    "offset": POSITIONAL,
    "tail": POSITIONAL,
    "show_string": POSITIONAL,
    "html_string": POSITIONAL,
    "transpose": POSITIONAL,
    "join": _SCRAMBLED,
    "as_of_join": _OPEN,
    "lateral_join": _SCRAMBLED,
    "set_op": _SCRAMBLED,
    "repartition": _SCRAMBLED,
    "repartition_by_expression": _SCRAMBLED,
    "deduplicate": _OPEN,
    "aggregate": _OPEN,
    "group_map": _OPEN,
    "co_group_map": _OPEN,
    "map_partitions": _BY_PARTITION,
    "common_inline_user_defined_table_function": _BY_PARTITION,
    "summary": _OPEN,
    "describe": _OPEN,
    "crosstab": _SCRAMBLED,
    "cov": _OPEN,
    "corr": _OPEN,
    "approx_quantile": _OPEN,
    "freq_items": _OPEN,
}

REFUSED_RELATIONS: Final[dict[str, str]] = {
    "sample": "which rows a sample takes depends on how the engine cuts its input, whatever the seed",
    "sample_by": "which rows a sample takes depends on how the engine cuts its input, whatever the seed",
    "collect_metrics": "it observes metrics, which a known result would not give",
    "with_watermark": "it is a stream",
    "apply_in_pandas_with_state": "it is a stream",
    "cached_remote_relation": "it refers to data on the server",
    "relation_changes": "it reads the history of a table",
    "zip": "it puts rows of two frames side by side, which is not understood",
    "nearest_by_join": "a join by nearness is not understood",
    "common_inline_user_defined_data_source": "it reads a data source of the user",
    "unresolved_table_valued_function": "it has a table-valued function, which is not read",
    "catalog": "it asks or changes the catalog of the server",
    "ml_relation": "it refers to a model on the server",
    "extension": "it has an extension of the protocol",
    "unknown": "the client does not know what it is",
}

# What is done above them could not have been done below them, so that nothing is lost by keeping their results.
BREAKERS: Final = frozenset({
    "aggregate", "deduplicate", "join", "as_of_join", "group_map", "co_group_map", "set_op", "summary", "describe",
    "crosstab", "freq_items",
})  # fmt: skip
SEES_LAYOUT: Final = frozenset(
    {"map_partitions", "common_inline_user_defined_table_function"}
)  # how its input is cut shows in what it gives
# Kinds of Python functions that are handed one piece of a partition after the other, and may remember the last.
ITERATING: Final = frozenset({204, 205, 207, 251})
PRINTING: Final = frozenset({"show_string", "html_string"})
# What is in them may be meant for others, by names or plan ids.
SHARING: Final = frozenset({"with_relations", "lateral_join"})

EXPRESSIONS: Final = frozenset({
    "literal", "unresolved_attribute", "unresolved_function", "expression_string", "unresolved_star", "alias", "cast",
    "unresolved_regex", "sort_order", "lambda_function", "window", "unresolved_extract_value", "update_fields",
    "unresolved_named_lambda_variable", "common_inline_user_defined_function", "call_function",
    "named_argument_expression", "subquery_expression",
})  # fmt: skip

REFUSED_EXPRESSIONS: Final[dict[str, str]] = {
    "merge_action": "it changes a table",
    "typed_aggregate_expression": "it has an aggregate of Scala",
    "direct_shuffle_partition_id": "it depends on how the engine cuts its input",
    "extension": "it has an extension of the protocol",
}

# Commands act, so they are handed on as they are. Those that teach the server a function make its name a name of the
# user's from then on.
COMMANDS: Final = frozenset({
    "register_function", "register_table_function", "register_data_source", "write_operation", "write_operation_v2",
    "create_dataframe_view", "sql_command", "write_stream_operation_start", "streaming_query_command",
    "streaming_query_manager_command", "streaming_query_listener_bus_command", "get_resources_command",
    "create_resource_profile_command", "checkpoint_command", "remove_cached_remote_relation_command",
    "merge_into_table_command", "ml_command", "execute_external_command", "pipeline_command", "extension",
})  # fmt: skip


def why_refused(kind: str | None) -> str:
    """Why a relation of a kind is not reused; empty if it may be."""
    if kind in RELATIONS:
        return ""
    return REFUSED_RELATIONS.get(kind or "", f"it has a relation of the kind {kind}, which is not known")


def why_refused_expression(kind: str | None) -> str:
    """Why an expression of a kind is not reused; empty if it may be."""
    if kind in EXPRESSIONS:
        return ""
    return REFUSED_EXPRESSIONS.get(kind or "", f"it has an expression of the kind {kind}, which is not known")
