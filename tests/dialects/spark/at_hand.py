"""Imported by tests that need an engine: the import fails where there is none, and says what to do."""

import importlib.util
import os
import shutil

from tests.dialects.spark.engines import ENGINE

if importlib.util.find_spec("pyspark") is None:
    raise ImportError("Spark is not installed: make test-sail, make test-spark")
if ENGINE == "sail" and importlib.util.find_spec("pysail") is None:
    raise ImportError("Sail is not installed: make test-sail")
if ENGINE == "spark":
    if importlib.util.find_spec("pyspark.core") is None:
        raise ImportError("the server of Spark is not installed: make test-spark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise ImportError("there is no Java, which Spark needs")
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # functions are those of Connect, where both are installed
