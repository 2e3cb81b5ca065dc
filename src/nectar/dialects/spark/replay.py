"""A plan sent again, to an engine like the one that computed it, in a session that is told what it was told then.

In: a recipe whose environment and files were looked at. Out: its result in the catalog. Law: the plan is keyed anew, as
any plan is, and nothing is computed unless its key is the one on record. Engines promise no order of rows: results are
compared row by row in any order, and those that an engine wrote by itself by the number of rows.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import grpc
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.proto import commands_pb2, relations_pb2
from pyspark.sql.connect.session import SparkSession

from nectar.catalog.handover import Handover
from nectar.catalog.service import Kept, NotKept
from nectar.dialects.rebuilding import Order, because
from nectar.dialects.spark import functions
from nectar.dialects.spark.checksum import are_comparable
from nectar.dialects.spark.circumstances import settings_of
from nectar.dialects.spark.default import address
from nectar.dialects.spark.flat import restored
from nectar.dialects.spark.fresh import refreshed
from nectar.dialects.spark.incremental.files import Extent, Folders, link_of, linked
from nectar.dialects.spark.incremental.server import Server
from nectar.dialects.spark.messages import messages_in, named
from nectar.dialects.spark.own_requests import of_our_own
from nectar.dialects.spark.prescription import Prescription
from nectar.dialects.spark.query import Query, query_of
from nectar.dialects.spark.reads import FORMATS, Source, source_of
from nectar.dialects.spark.recipe import checksum_of_result, environment_of
from nectar.dialects.spark.servers import Engine, engine_of
from nectar.dialects.spark.writing import write
from nectar.errors import NectarError, RebuildError
from nectar.recipes.code import suspects_in
from nectar.recipes.difference import difference
from nectar.recipes.inputs import RecordedInputs, files_of
from nectar.recipes.rebuild import Answer
from nectar.recipes.recipe import Checksum
from nectar.report.run import Part
from nectar.store.inputs.identity import Identity

_PATIENCE: Final = 10.0  # seconds
_OTHER_FILES: Final = "other files are found where it read: some came or went"


def replayed(order: Order, prescription: Prescription, changes: tuple[str, ...]) -> Answer:
    """The result is kept, and this is what there is to say about it. changes: of the environment, that were allowed."""
    _surround(prescription)
    if order.recipe.folder:
        with suppress(OSError):  # then relative paths lead nowhere, and their files are told to be missing
            os.chdir(order.recipe.folder)
    folders = Folders()
    try:
        return _Replay(order, prescription, changes, folders).answer()
    except RebuildError:
        raise
    except (NectarError, grpc.RpcError, PySparkException, OSError) as error:
        raise because(f"running it failed: {type(error).__name__}: {error}") from error
    finally:
        folders.close()


def _surround(prescription: Prescription) -> None:
    """The variables of the environment that the engine sees are those it saw."""
    for name in [name for name in os.environ if name.startswith("SAIL_")]:
        del os.environ[name]
    os.environ.update({name: value for name, value in prescription.variables.items() if value})
    if not prescription.variables.get("TZ"):
        os.environ.pop("TZ", None)
    if hasattr(time, "tzset"):  # not on Windows
        time.tzset()
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # functions are those of Connect


class _Replay:
    def __init__(self, order: Order, prescription: Prescription, changes: tuple[str, ...], folders: Folders) -> None:
        self._order, self._prescription, self._changes, self._folders = order, prescription, changes, folders
        self._recipe = order.recipe
        self._originals: dict[str, str] = {}
        self._plan = restored(relations_pb2.Relation, prescription.plan)
        self._commands = [restored(commands_pb2.Command, pieces) for pieces in prescription.commands]
        self._recall_functions()
        self._read_only_what_was_read()
        self._client = self._connected()

    def answer(self) -> Answer:
        query = self._proven()
        try:
            begun = time.perf_counter()
            if self._prescription.is_part:
                told, expected = self._written_again(query)
            else:
                table = self._computed(query)
                told, expected = self._compared(query, checksum_of_result(table))
                self._keep(query, table, time.perf_counter() - begun)
        finally:
            query.release()
        return Answer((), told, expected, self._changes)

    # before it runs

    def _recall_functions(self) -> None:
        """Functions of the plan are what their pickled forms stand for here."""
        for message in (self._plan, *self._commands):
            for each in messages_in(message):
                if named(each, "PythonUDF"):
                    try:
                        functions.recall(each.command)
                    except Exception as error:  # of modules that are imported
                        raise because(f"a function cannot be read: {type(error).__name__}: {error}") from error

    def _read_only_what_was_read(self) -> None:
        """Reads see the files that were read, and none that came later."""
        read = {file.url for file in files_of(self._recipe)}
        for message in (self._plan, *self._commands):
            for each in messages_in(message):
                if named(each, "Read") and each.data_source.format.lower() in FORMATS:
                    self._narrow(each.data_source, source_of(each), read)
        self._order.session.use_inputs(
            RecordedInputs(
                self._order.catalog, self._order.session.clock, self._recipe, self._order.by_content(), self._originals,
                identity=self._order.session.settings.identity, shared=self._order.session.settings.shared,
                host=socket.gethostname(),
            )
        )  # fmt: skip

    def _narrow(self, read: Any, source: Source, wanted: set[str]) -> None:
        if all(file in wanted for file in source.files):
            return
        if any(listing.shown.partition("\0")[0] for listing in source.listings):
            raise because(_OTHER_FILES)  # the path itself is part of the result, and links have another
        extents = [
            Extent(0, number, at, file, _NOBODY, 0)
            for number, listing in enumerate(source.listings)
            for at, file in enumerate(listing.files)
            if file in wanted
        ]
        folder = self._folders.new()
        paths = linked(source.listings, extents, folder)
        self._originals.update({link_of(source.listings, each, folder): each.path for each in extents})
        for name in [name for name in read.options if name.lower() == "path"]:
            del read.options[name]
        del read.paths[:]
        read.paths.extend(paths)

    def _connected(self) -> Any:
        """A client of an engine like the one that computed the result, whose session has the settings of then."""
        is_spark = self._recipe.environment.engine == "Spark"
        session = SparkSession.builder.remote(_server_named() if is_spark else address()).create()
        client = session.client
        engine = _engine_of(client)
        self._expect_alike(engine)
        now = settings_of(client, engine)
        for name, value in self._prescription.settings.items():
            if now.get(name) != value:
                with suppress(PySparkException):  # one that cannot be set is told below
                    session.conf.set(name, value)
        self._expect_settings(settings_of(client, _engine_of(client)))
        for command in self._commands:
            client.execute_command(command)
        return client

    def _expect_alike(self, engine: Engine) -> None:
        then, here = self._recipe.environment, environment_of(engine)
        if then.engine != here.engine or (then.engine_version != here.engine_version and not self._order.allow):
            raise because(
                f"it was made by {then.engine} {then.engine_version}, and this is {here.engine} {here.engine_version}"
            )

    def _expect_settings(self, now: Mapping[str, str]) -> None:
        then = self._prescription.settings
        other = [
            f"the setting {name} was {then.get(name, 'not made')!r}, and is {now.get(name, 'not made')!r} here"
            for name in sorted(then.keys() | now.keys())
            if then.get(name) != now.get(name)
        ]
        if other:
            raise because(*other)

    def _proven(self) -> Query:
        """The query, whose key is the one on record. In another environment it cannot be."""
        try:
            query = query_of(self._order.session, self._client, self._plan, self._client._nectar.scope, Part("rebuilt"))
        except NectarError as error:
            raise because(str(error)) from error
        refusal = query.keyed.root.refusal
        if refusal:
            raise because(refusal)
        if {file.url for file in query.keyed.identities} != {file.url for file in files_of(self._recipe)}:
            raise because(_OTHER_FILES)
        root = query.keyed.root
        if not self._changes and (root.program != self._recipe.program or self._recipe.key not in root.keys):
            raise because(*self._differing(query))
        return query

    def _differing(self, query: Query) -> list[str]:
        """What is not what it was."""
        if query.keyed.frame != self._prescription.frame:
            return ["the libraries that data is handed over with are not those it was made with"]
        nodes, known = query.keyed.program.nodes, set(self._recipe.proof.parts)
        other = [
            f"the step {node.text!r} is not what it was: it depends on something that the text of its functions does "
            "not say, such as a variable that was set later, or a setting"
            for node in nodes
            if node.program not in known and all(nodes[below].program in known for below in node.inputs)
        ]
        return other or ["its files, or the views that it reads, are not what they were"]

    # running it

    def _computed(self, query: Query) -> pa.Table:
        client = self._client
        request = client._execute_plan_request_with_metadata()
        metadata = client._builder.metadata()
        server = Server(client, request, lambda asked: client._stub.ExecutePlan(asked, metadata=metadata))
        try:
            with of_our_own():
                return server.run(self._sent(query))
        except NectarError as error:
            raise because(str(error)) from error

    def _sent(self, query: Query) -> Any:
        """The plan as it is sent to a server that remembers."""
        old = query.why_old()
        if old:
            raise because(old)
        return refreshed(self._plan, query.keyed.states) if query.keyed.states else self._plan

    def _written_again(self, query: Query) -> tuple[str, bool]:
        """The engine has written the result by itself once more, and it is kept."""
        place = self._order.catalog.handover(self._recipe.key, sum(file.size or 0 for file in query.keyed.identities))
        if isinstance(place, NotKept):
            raise because(place.reason)
        with place:
            seconds = write(self._client, self._sent(query), place)
            if isinstance(seconds, str):
                raise because(seconds)
            told, expected = self._compared(query, checksum_of_result(place))
            self._keep(query, place, seconds)
        return told, expected

    def _compared(self, query: Query, now: Checksum | None) -> tuple[str, bool]:
        """How the result differs from the one that was deleted, and whether nobody promised that it would not."""
        recipe, elsewhere = self._recipe, bool(self._changes)
        if recipe.checksum is None or now is None:
            told = "it has no checksum to be compared with"
        else:
            comparable = are_comparable(recipe.packages)
            told = difference(recipe.checksum, now, ordered=recipe.ordered, comparable=comparable, engine="pandas")
            if elsewhere and not recipe.checksum.unordered:
                told = "only the number of its rows can be compared"
        name = recipe.environment.engine
        return self._order.judged(
            told, name, elsewhere, lambda: suspects_in([each.function for each in query.keyed.functions])
        )

    def _keep(self, query: Query, value: pa.Table | Handover, seconds: float) -> None:
        changed = query.keyed.what_changed(self._order.session.inputs) or [query.why_another()]
        if any(changed):
            raise because(*changed)
        recipe = self._recipe
        kept = self._order.catalog.keep(
            recipe.key, recipe.program, value, table=True, seconds=seconds, recipe=self._order.written.identity,
            about=recipe.about, made=query.began,
        )  # fmt: skip
        if not isinstance(kept, Kept):
            raise because(kept.reason)


def _engine_of(client: Any) -> Engine:
    """The engine of a client, and the settings of its session, as they are now."""
    engine = engine_of(client)
    if isinstance(engine, str):
        raise because(engine)
    return engine


def _server_named() -> str:
    """The address of the server that the environment names, once it is known that one is there: clients wait long."""
    named = os.environ["SPARK_REMOTE"]
    host, _, port = DefaultChannelBuilder(named).endpoint.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
    except OSError as error:
        raise because(f"there is no server at {host}:{port}, which SPARK_REMOTE names: {error}") from error
    return named


_NOBODY: Final = Identity("", None, None, None, b"")
