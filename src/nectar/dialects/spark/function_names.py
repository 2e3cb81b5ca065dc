"""Functions of the engine by name: those whose results depend on their arguments alone, and those refused.

In: a name as a plan or a text has it. Out: why a call is not reused. Names that are not listed are refused, unless they
are those of functions that somebody was seen to register. A test compares the lists with the functions of the client.
"""

from __future__ import annotations

from typing import Final

from pyspark import __version__ as _client

# Where the client does not have them, a server may know others by these names.
SINCE_4_3: Final = frozenset({
    "collect_union", "counter_diff", "from_base32", "hmac", "jaro_winkler_similarity", "timestamp_nanos", "to_base32",
    "try_variant_array_append", "try_variant_insert", "try_variant_set", "unix_nanos", "variant_array_append",
    "variant_delete", "variant_insert", "variant_set", "variant_strip_nulls", "vector_avg", "vector_cosine_similarity",
    "vector_inner_product", "vector_l2_distance", "vector_norm", "vector_normalize", "vector_sum",
})  # fmt: skip
_ALWAYS: Final = frozenset({
    "%", "&", "*", "+", "-", "/", "<", "<=", "<=>", "==", ">", ">=", "^", "abs", "acos", "acosh", "add_months",
    "aes_decrypt", "aggregate", "and", "any_value", "approx_count_distinct", "approx_percentile", "array",
    "array_agg", "array_append", "array_compact", "array_contains", "array_distinct", "array_except", "array_insert",
    "array_intersect", "array_join", "array_max", "array_min", "array_position", "array_prepend", "array_remove",
    "array_repeat", "array_size", "array_sort", "array_union", "arrays_overlap", "arrays_zip", "ascii", "asin",
    "asinh", "assert_true", "atan", "atan2", "atanh", "avg", "base64", "bin", "bit_and", "bit_count", "bit_get",
    "bit_length", "bit_or", "bit_xor", "bitmap_and_agg", "bitmap_bit_position", "bitmap_bucket_number",
    "bitmap_construct_agg", "bitmap_count", "bitmap_or_agg", "bool_and", "bool_or", "bround", "btrim", "cardinality",
    "cbrt", "ceil", "ceiling", "char", "char_length", "character_length", "chr", "coalesce", "collate", "collation",
    "collect_list", "collect_set", "concat", "concat_ws", "contains", "conv", "convert_timezone", "corr", "cos",
    "cosh", "cot", "count", "count_if", "count_min_sketch", "covar_pop", "covar_samp", "crc32", "csc", "cume_dist",
    "date_add", "date_diff", "date_format", "date_from_unix_date", "date_part", "date_sub", "date_trunc", "dateadd",
    "datediff", "datepart", "day", "dayname", "dayofmonth", "dayofweek", "dayofyear", "decode", "degrees",
    "dense_rank", "e", "element_at", "elt", "encode", "endswith", "equal_null", "every", "exists", "exp", "explode",
    "explode_outer", "expm1", "extract", "factorial", "filter", "find_in_set", "first", "first_value", "flatten",
    "floor", "forall", "format_number", "format_string", "from_csv", "from_json", "from_unixtime",
    "from_utc_timestamp", "from_xml", "get", "get_json_object", "getbit", "greatest", "grouping", "grouping_id",
    "hash", "hex", "histogram_numeric", "hll_sketch_agg", "hll_sketch_estimate", "hll_union", "hll_union_agg", "hour",
    "hypot", "ifnull", "ilike", "in", "initcap", "inline", "inline_outer", "instr", "is_valid_utf8",
    "is_valid_variant", "is_variant_null", "isnan", "isnotnull", "isnull", "json_array_length", "json_object_keys",
    "json_tuple", "kurtosis", "lag", "last", "last_day", "last_value", "lcase", "lead", "least", "left", "length",
    "levenshtein", "like", "listagg", "ln", "locate", "log", "log10", "log1p", "log2", "lower", "lpad", "ltrim",
    "make_date", "make_dt_interval", "make_interval", "make_time", "make_timestamp", "make_timestamp_ltz",
    "make_timestamp_ntz", "make_valid_utf8", "make_ym_interval", "map", "map_concat", "map_contains_key",
    "map_entries", "map_filter", "map_from_arrays", "map_from_entries", "map_keys", "map_values", "map_zip_with",
    "mask", "max", "max_by", "md5", "mean", "median", "min", "min_by", "minute", "mode", "month", "monthname",
    "months_between", "named_struct", "nanvl", "negative", "next_day", "not", "nth_value", "ntile", "nullif",
    "nullifzero", "nvl", "nvl2", "octet_length", "or", "overlay", "parse_json", "parse_url", "percent_rank",
    "percentile", "percentile_approx", "pi", "pmod", "posexplode", "posexplode_outer", "position", "positive", "pow",
    "power", "printf", "product", "quarter", "quote", "radians", "raise_error", "rank", "reduce", "regexp",
    "regexp_count", "regexp_extract", "regexp_extract_all", "regexp_instr", "regexp_like", "regexp_replace",
    "regexp_substr", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx",
    "regr_sxy", "regr_syy", "repeat", "replace", "reverse", "right", "rint", "rlike", "round", "row_number", "rpad",
    "rtrim", "schema_of_csv", "schema_of_json", "schema_of_variant", "schema_of_variant_agg", "schema_of_xml", "sec",
    "second", "sentences", "sequence", "session_window", "sha", "sha1", "sha2", "shiftleft", "shiftright",
    "shiftrightunsigned", "sign", "signum", "sin", "sinh", "size", "skewness", "slice", "some", "sort_array",
    "soundex", "split", "split_part", "sqrt", "st_asbinary", "st_geogfromwkb", "st_geomfromwkb", "st_setsrid",
    "st_srid", "stack", "startswith", "std", "stddev", "stddev_pop", "stddev_samp", "str_to_map", "string_agg",
    "struct", "substr", "substring", "substring_index", "sum", "tan", "tanh", "theta_difference",
    "theta_intersection", "theta_intersection_agg", "theta_sketch_agg", "theta_sketch_estimate", "theta_union",
    "theta_union_agg", "time_bucket", "time_diff", "time_from_micros", "time_from_millis", "time_from_seconds",
    "time_to_micros", "time_to_millis", "time_to_seconds", "time_trunc", "timestamp_micros", "timestamp_millis",
    "timestamp_seconds", "timestampadd", "timestampdiff", "to_binary", "to_char", "to_csv", "to_date", "to_json",
    "to_number", "to_time", "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz", "to_unix_timestamp",
    "to_utc_timestamp", "to_varchar", "to_variant_object", "to_xml", "transform", "transform_keys",
    "transform_values", "translate", "trim", "trunc", "try_add", "try_aes_decrypt", "try_avg", "try_divide",
    "try_element_at", "try_make_interval", "try_make_timestamp", "try_make_timestamp_ltz", "try_make_timestamp_ntz",
    "try_mod", "try_multiply", "try_parse_json", "try_parse_url", "try_subtract", "try_sum", "try_to_binary",
    "try_to_date", "try_to_number", "try_to_time", "try_to_timestamp", "try_url_decode", "try_validate_utf8",
    "try_variant_get", "tuple_difference_double", "tuple_difference_integer", "tuple_difference_theta_double",
    "tuple_difference_theta_integer", "tuple_intersection_agg_double", "tuple_intersection_agg_integer",
    "tuple_intersection_double", "tuple_intersection_integer", "tuple_intersection_theta_double",
    "tuple_intersection_theta_integer", "tuple_sketch_agg_double", "tuple_sketch_agg_integer",
    "tuple_sketch_estimate_double", "tuple_sketch_estimate_integer", "tuple_sketch_summary_double",
    "tuple_sketch_summary_integer", "tuple_sketch_theta_double", "tuple_sketch_theta_integer",
    "tuple_union_agg_double", "tuple_union_agg_integer", "tuple_union_double", "tuple_union_integer",
    "tuple_union_theta_double", "tuple_union_theta_integer", "typeof", "ucase", "unbase64", "unhex", "unix_date",
    "unix_micros", "unix_millis", "unix_seconds", "unix_timestamp", "unwrap_udt", "upper", "url_decode", "url_encode",
    "validate_utf8", "var_pop", "var_samp", "variance", "variant_get", "weekday", "weekofyear", "when",
    "width_bucket", "window", "window_time", "xpath", "xpath_boolean", "xpath_double", "xpath_float", "xpath_int",
    "xpath_long", "xpath_number", "xpath_short", "xpath_string", "xxhash64", "year", "zeroifnull", "zip_with", "|",
    "~",
})  # fmt: skip
KNOWN: Final = _ALWAYS if _client.startswith("4.2.") else _ALWAYS | SINCE_4_3

_DIFFERS: Final = "gives something else each time"
_CLOCK: Final = "reads the clock"
_SURROUNDINGS: Final = "depends on who runs the program, and where"
_LAYOUT: Final = "depends on how the engine cuts its input"
_CALLS: Final = "calls code of the server"

REFUSED: Final[dict[str, str]] = {
    **dict.fromkeys(("rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "aes_encrypt"), _DIFFERS),
    **dict.fromkeys(
        ("now", "current_timestamp", "localtimestamp", "current_date", "curdate", "current_time", "localtime"), _CLOCK
    ),
    **dict.fromkeys(
        (
            "current_user", "user", "session_user", "current_catalog", "current_database", "current_schema",
            "current_path", "current_timezone", "version",
        ),
        _SURROUNDINGS,
    ),
    **dict.fromkeys(
        (
            "monotonically_increasing_id", "spark_partition_id", "input_file_name", "input_file_block_start",
            "input_file_block_length", "distributed_sequence_id",
        ),
        _LAYOUT,
    ),
    **dict.fromkeys(("reflect", "java_method", "try_reflect"), _CALLS),
    **{
        f"kll_{name}_{kind}": _DIFFERS
        for name in (
            "merge_agg", "sketch_agg", "sketch_get_n", "sketch_get_quantile", "sketch_get_rank", "sketch_merge",
            "sketch_to_string",
        )
        for kind in ("bigint", "double", "float")
    },
}  # fmt: skip
_CLOCK_WITHOUT_ARGUMENTS: Final = frozenset({"unix_timestamp", "to_unix_timestamp"})
# Words that engines take for a moment when they become a date.
_MOMENTS: Final = frozenset({"now", "today", "tomorrow", "yesterday", "current_date", "current_timestamp"})


def why_refused_call(name: str, arguments: int) -> str:
    """Why a call of a function of the engine is not reused; empty if it may be, or if there is no such function."""
    plain = name.lower()
    if plain in _CLOCK_WITHOUT_ARGUMENTS and not arguments:
        return f"{name}() {_CLOCK}"
    return f"{name}() {REFUSED[plain]}" if plain in REFUSED else ""


def why_unknown(name: str) -> str:
    """Why a call is not reused of a function that neither the engine has nor anybody was seen to register."""
    return f"the function {name} is not known, and may be one that somebody has registered"


def is_about_the_moment(name: str) -> bool:
    """Whether a function that is refused tells when, where or by whom it is run, and nothing about its input."""
    plain = name.lower()
    return plain in _CLOCK_WITHOUT_ARGUMENTS or REFUSED.get(plain) in (_CLOCK, _SURROUNDINGS)


METADATA: Final = "_metadata"


def why_refused_column(name: str) -> str:
    """Why a column is not reused: engines take some names for functions where there is no such column."""
    if METADATA in name.lower():  # of any relation, by whatever name
        return "_metadata tells where files lie"
    first = name.strip().strip("`").lower().partition(".")[0].strip("`")
    if first in REFUSED:
        return f"a column called {first} may be the function of that name, which {REFUSED[first]}"
    return ""


def why_refused_string(text: str) -> str:
    """Why a literal is not reused: some words stand for a moment."""
    word = text.strip().lower()
    return f"the word {word!r} may stand for the time of the run" if word in _MOMENTS else ""
