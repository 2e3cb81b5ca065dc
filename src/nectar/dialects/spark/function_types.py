"""Functions of the engine by name: which of them make timestamps of texts, and what they give.

Whoever is on no list is taken for one that brings its arguments to one type, and may give anything.
"""

from __future__ import annotations

from typing import Final

# Functions that make a timestamp of a text that they are given.
TAKES_TIMES: Final = frozenset({
    "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz", "try_to_timestamp", "timestamp", "hour", "minute", "second",
    "date_format", "date_trunc", "from_utc_timestamp", "to_utc_timestamp", "convert_timezone", "months_between",
    "extract", "date_part", "datepart", "timestampadd", "timestampdiff", "dateadd", "date_add", "datediff", "date_diff",
    "unix_micros", "unix_millis", "unix_seconds", "unix_nanos", "window", "session_window", "window_time",
    "time_bucket", "make_timestamp", "make_timestamp_ltz", "make_timestamp_ntz", "try_make_timestamp",
    "try_make_timestamp_ltz", "try_make_timestamp_ntz", "variant_get", "try_variant_get", "from_json", "from_csv",
    "from_xml",
})  # fmt: skip
# With a pattern they take what the pattern does not name from the first day of 1970.
BY_PATTERN: Final = frozenset({
    "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz", "try_to_timestamp"
})  # fmt: skip
PARSES: Final = frozenset({"from_json", "from_csv", "from_xml", "variant_get", "try_variant_get"})  # by a type
# Functions whose arguments are not brought to one type.
APART: Final = frozenset({
    "and", "or", "not", "struct", "named_struct", "count", "concat_ws", "format_string", "printf", "max_by", "min_by",
    "hash", "xxhash64", "to_json", "to_csv", "isnull", "isnotnull", "*", "/", "%", "&", "|", "^",
})  # fmt: skip
# What functions give: no text and no moment; what they are given; texts; moments. All others may give anything.
PLAIN: Final = frozenset({
    "==", "<=>", "<", "<=", ">", ">=", "!=", "and", "or", "not", "in", "like", "ilike", "rlike", "isnull", "isnotnull",
    "isnan", "contains", "startswith", "endswith", "array_contains", "exists", "forall", "equal_null", "*", "/", "%",
    "&", "|", "^", "~", "count", "count_if", "sum", "avg", "mean", "std", "stddev", "stddev_samp", "stddev_pop",
    "variance", "var_samp", "var_pop", "corr", "covar_pop", "covar_samp", "approx_count_distinct", "abs", "ceil",
    "ceiling", "floor", "round", "bround", "sqrt", "exp", "ln", "log", "log10", "log2", "pow", "power", "pmod",
    "length", "size", "cardinality", "hash", "xxhash64", "crc32", "year", "month", "quarter", "day", "dayofmonth",
    "dayofweek", "dayofyear", "weekofyear", "weekday", "hour", "minute", "second", "datediff", "date_diff", "date_add",
    "date_sub", "add_months", "last_day", "next_day", "trunc", "to_date", "try_to_date", "make_date", "months_between",
    "unix_timestamp", "to_unix_timestamp", "unix_seconds", "unix_millis", "unix_micros", "unix_date", "row_number",
    "rank", "dense_rank", "ntile", "percent_rank", "cume_dist", "bool_and", "bool_or", "every", "some", "any",
    "instr", "locate", "levenshtein", "bit_and", "bit_or", "grouping", "grouping_id", "rint", "signum", "sign",
})  # fmt: skip
SAME: Final = frozenset({
    "max", "min", "first", "last", "first_value", "last_value", "any_value", "nth_value", "lag", "lead", "coalesce",
    "nvl", "nvl2", "ifnull", "nullif", "when", "if", "greatest", "least", "array", "collect_list", "collect_set",
    "array_agg", "struct", "named_struct", "map", "explode", "explode_outer", "posexplode", "element_at", "get",
    "slice", "sort_array", "array_sort", "array_distinct", "flatten", "reverse", "max_by", "min_by", "mode", "negative",
    "positive", "map_keys", "map_values", "array_max", "array_min", "window",
})  # fmt: skip
TEXTUAL: Final = frozenset({
    "upper", "lower", "ucase", "lcase", "concat_ws", "substring", "substr", "trim", "ltrim", "rtrim", "lpad", "rpad",
    "regexp_replace", "regexp_extract", "split", "split_part", "format_string", "printf", "date_format", "initcap",
    "replace", "translate", "md5", "sha1", "sha2", "base64", "hex", "from_unixtime", "to_json", "get_json_object",
    "left", "right", "repeat", "substring_index", "listagg", "string_agg", "to_char",
})  # fmt: skip
TIMELY: Final = frozenset({
    "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz", "try_to_timestamp", "timestamp_seconds", "timestamp_millis",
    "timestamp_micros", "from_utc_timestamp", "to_utc_timestamp", "convert_timezone", "date_trunc", "make_interval",
    "make_dt_interval", "make_ym_interval", "make_timestamp", "make_timestamp_ltz", "make_timestamp_ntz", "window_time",
})  # fmt: skip
