"""Words, counted and changed by Python functions: with a decorator, with a lambda, with a closure, in SQL."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, StringType

VOWELS = "aeiou"
spark = SparkSession.builder.getOrCreate()
words = spark.createDataFrame([("banana",), ("sky",), (None,), ("queue",)], ["word"])


def vowels(word):
    return sum(letter in VOWELS for letter in word)


@F.udf(returnType=IntegerType())
def count_vowels(word):
    return None if word is None else vowels(word)


def ending_with(suffix):
    return F.udf(lambda word: f"{word}{suffix}", StringType())


letters = F.udf(lambda word: sorted(set(word or "")), ArrayType(StringType()))

words.select("word", count_vowels("word").alias("vowels")).orderBy("word").show()
words.select(ending_with("!")("word").alias("loud")).orderBy("loud").show()
words.select(letters("word").alias("letters")).orderBy("letters").show()
words.filter(count_vowels("word") > 1).orderBy("word").show()

spark.udf.register("vowels_of", count_vowels)
words.createOrReplaceTempView("words")
spark.sql("select vowels_of(word) as n, count(*) as words from words group by 1 order by 1").show()
print(words.selectExpr("sum(vowels_of(word)) as all").first())
