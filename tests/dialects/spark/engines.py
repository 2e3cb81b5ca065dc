"""The engine that the tests of Spark programs run on: Sail in this process, or a Spark server that is started for them.

NECTAR_TEST_SPARK says which: `sail` (make test-sail), or `spark` (make test-spark).
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from importlib.metadata import distributions
from pathlib import Path

import pytest

ENGINE = os.environ.get("NECTAR_TEST_SPARK", "sail")
ROOT = Path(__file__).parents[3]

only_sail = pytest.mark.skipif(ENGINE != "sail", reason="of Sail")
# With and without Nectar: its Python workers and the server wait for each other.
not_spark_4_2 = pytest.mark.skipif(
    ENGINE == "spark" and any(each.version.startswith("4.2.") for each in distributions(name="pyspark")),
    reason="Spark 4.2.0 never answers some queries with Python functions",
)
only_spark = pytest.mark.skipif(ENGINE != "spark", reason="of Spark itself: make test-spark")


class Sail:
    """Sail in this process."""

    def __init__(self):
        from pysail.spark import SparkConnectServer

        self.inner = SparkConnectServer()
        self.inner.start(background=True)

    @property
    def address(self):
        return "sc://%s:%d" % self.inner.listening_address

    def stop(self):
        pass  # it ends with this process; stopping it takes longer than the tests


class Spark:
    """A Spark server in a process of its own, on a port of its own; it may be stopped and started again."""

    def __init__(self, memory="2g", **settings):
        import pyspark

        self.folder = Path(tempfile.mkdtemp(prefix="nectar-spark-"))
        self.home = Path(pyspark.__file__).parent
        self.memory = memory
        self.settings = settings
        self.port = _free_port()
        self.start()

    @property
    def address(self):
        return f"sc://127.0.0.1:{self.port}"

    def start(self):
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            "spark.driver.host": "127.0.0.1",
            **self.settings,
        }
        command = [
            str(self.home / "bin" / "spark-submit"), "--class",
            "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]", "--driver-memory",
            self.memory,
        ]  # fmt: skip
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        environment = {
            **os.environ, "SPARK_HOME": str(self.home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src"))), "SPARK_NO_DAEMONIZE": "1",
        }  # fmt: skip
        for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
            environment.pop(name, None)
        self.log = self.folder / "server.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "spark-internal"], cwd=self.folder, env=environment, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        self._wait()

    def _wait(self, seconds=180):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.2)
        said = self.log.read_text(errors="replace")[-3000:]
        self.stop()
        raise RuntimeError(f"Spark did not start:\n{said}")

    def kill(self):
        """It is gone, without a word."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def session_at(address):
    """Lines of a program that make `spark`: a session on Sail of its own, or on the server at an address."""
    if ENGINE == "spark":
        return f"""
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.remote("{address}").getOrCreate()
"""
    return """
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession, functions as F
server = SparkConnectServer()
server.start(background=True)
spark = SparkSession.builder.remote("sc://%s:%d" % server.listening_address).getOrCreate()
"""


def started():
    """The engine of all tests."""
    return Sail() if ENGINE == "sail" else Spark()


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
