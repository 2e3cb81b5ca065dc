"""A cash book in the words of pandas, on Spark."""

import warnings

from pyspark.sql import SparkSession

warnings.simplefilter("ignore")
spark = SparkSession.builder.getOrCreate()

frame = spark.createDataFrame(
    [("rent", 900, 1), ("food", 250, 1), ("food", 300, 2), ("rent", 900, 2)], "what string, euros long, month int"
)
book = frame.pandas_api(index_col="month")
print(book.columns.tolist())
print(book["euros"].sum(), book["euros"].max())
print(book.groupby("what")["euros"].sum().sort_index().to_pandas().to_dict())
print(book[book["euros"] > 280].sort_values(["euros", "what"]).to_pandas().to_string())
book["cents"] = book["euros"] * 100
print(book["cents"].mean(), len(book))
book.to_spark(index_col="month").orderBy("month", "what").show()
