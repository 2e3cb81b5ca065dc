"""What a server is taught by one client: functions, views, tables. Commands come in, a Scope comes out.

A command that gives a name a new meaning is a Lesson: until the server has answered, nobody knows what the name means;
then it means what the command says, if its files were the same before and after. Law: whatever goes wrong in here,
names are forgotten rather than kept.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.sql.connect.proto import commands_pb2, relations_pb2

from nectar.dialects.spark.constants import facts_of
from nectar.dialects.spark.functions import known_as
from nectar.dialects.spark.keyed import Keyed
from nectar.dialects.spark.reads import FORMATS, read_of
from nectar.dialects.spark.relations import Step, registration_of, steps_of
from nectar.dialects.spark.scope import Registered, Scope, View, needed_by
from nectar.dialects.spark.sql.queries import is_query, read_ahead
from nectar.dialects.spark.sql.statements import Effect, effect_of
from nectar.dialects.spark.sql.words import Name, name_of
from nectar.errors import NectarError, UserError
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.recipes.folder import working_folder

# A definition as everything is now, what the names in it mean, and what names mean to the session; raises NectarError.
Look = Callable[[Sequence[Step], Scope, Scope], Keyed]

_ANY: Final = "this session may have functions or sources of its own under any name"
_APPEND: Final = commands_pb2.WriteOperation.SAVE_MODE_APPEND
_ANEW: Final = frozenset({
    commands_pb2.WriteOperation.SAVE_MODE_UNSPECIFIED, commands_pb2.WriteOperation.SAVE_MODE_OVERWRITE,
    commands_pb2.WriteOperation.SAVE_MODE_ERROR_IF_EXISTS,
})  # fmt: skip
_INSERT: Final = commands_pb2.WriteOperation.SaveTable.TABLE_SAVE_METHOD_INSERT_INTO
_HEAVY: Final = 1 << 16  # bytes
_PENDING: Final = "the server has not said yet whether it took it in"
_TWICE: Final = "it was made twice at the same time"
_CACHED: Final = "this session has cached tables, which may be older than their files"
_MADE_PLAINLY: Final = "it was made while Nectar was off"
_CATALOG_ASKS: Final = frozenset({
    "current_database", "list_databases", "list_tables", "list_functions", "list_columns", "get_database", "get_table",
    "get_function", "database_exists", "table_exists", "function_exists", "is_cached", "uncache_table",
    "clear_cache", "refresh_table", "refresh_by_path", "current_catalog", "list_catalogs", "list_partitions",
    "list_views", "get_table_properties", "get_create_table_string", "analyze_table",
})  # fmt: skip


Change = Callable[[Scope], Scope]
_NOTHING: Final[Mapping[bytes, bytes]] = {}


@dataclass(frozen=True, slots=True)
class Lesson:
    """Something the server is told. learned: what names mean after it has agreed. rejected: if it has not.

    states: what the files hold that it reads, for a server that remembers.
    """

    learned: Callable[[], Change]
    rejected: Change
    states: Mapping[bytes, bytes] = field(default_factory=dict)


class Taught:
    """What one session means by names. shared: others may teach the same server session."""

    def __init__(self, *, shared: bool) -> None:
        self._lock = threading.Lock()
        self._scope = Scope(unknown=_ANY if shared else "")

    @property
    def scope(self) -> Scope:
        """What names mean now."""
        return self._scope

    def inherit(self, other: Taught) -> None:
        """This session knows what the server was taught by another one, of which it is a copy."""
        self._scope = other._scope

    def notice(self, plan: Any, look: Look | None) -> Lesson | None:
        """Takes note of a plan that is sent. look: tells what files are like; None while Nectar is off."""
        try:
            return self._noticed(plan, look)
        except Exception:
            self._change(lambda _: Scope(unknown=_ANY))
            raise

    def learned(self, lesson: Lesson) -> None:
        """The server has agreed."""
        self._change(lesson.learned())

    def rejected(self, lesson: Lesson) -> None:
        """The server has refused, and nothing is different."""
        self._change(lesson.rejected)

    def _change(self, change: Change) -> None:
        with self._lock:
            self._scope = change(self._scope)

    def _noticed(self, plan: Any, look: Look | None) -> Lesson | None:
        kind = plan.WhichOneof("op_type")
        if kind == "root":
            return self._of_root(plan.root, look)
        command = plan.command.WhichOneof("command_type") if kind == "command" else None
        content: Any = None if command is None else getattr(plan.command, command)
        if command == "register_function":
            return self._of_function(content)
        if command == "create_dataframe_view":
            return self._of_view(content, look)
        if command == "sql_command":
            return self._of_sql_command(_input_of(content), look)
        if command == "write_operation":
            return self._of_write(content, look)
        if command == "register_table_function":
            refused = Registered(refusal=f"{content.function_name} is a table function of the user, which is not read")
            self._change(lambda scope: scope.with_function(content.function_name, refused))
        elif command in ("write_operation_v2", "merge_into_table_command"):
            self._change(Scope.without_tables)
        elif command == "register_data_source":
            self._register_source(content)
        elif command in (None, "extension", "execute_external_command", "pipeline_command"):
            self._change(lambda _: Scope(unknown=_ANY))
        return None

    def _of_function(self, function: Any) -> Lesson:
        name = function.function_name
        content, refusals, functions = registration_of(function)
        command = _remembered(commands_pb2.Command(register_function=function))
        registered = Registered(content, functions, "; ".join(refusals), command)
        before = self._scope
        pending = Registered(secrets.token_bytes(16), refusal=_PENDING)
        self._change(lambda scope: scope.with_function(name, pending))

        known, refused = before.functions.get(name.lower()), Registered(refusal=_TWICE)

        def is_alone(scope: Scope) -> bool:
            """Whether nobody else has taught the name anything, before the server answered or since."""
            others = known is not None and known.refusal == _PENDING
            return scope.functions.get(name.lower()) is pending and not others

        def learned(scope: Scope) -> Scope:
            return scope.with_function(name, registered if is_alone(scope) else refused)

        def rejected(scope: Scope) -> Scope:
            return scope.with_function_of(before, name) if is_alone(scope) else scope.with_function(name, refused)

        return Lesson(lambda: learned, rejected)

    def _register_source(self, source: Any) -> None:
        """A class reads data under a name from now on; if that is a name of the engine's, nothing is known any more."""
        known = known_as(source.python_data_source.command)
        if known is None or not known.digest or source.name.lower() in FORMATS | self._scope.sources.keys():
            self._change(lambda _: Scope(unknown=_ANY))
        else:
            self._change(lambda scope: scope.with_source(source.name, known))

    # views and tables

    def _of_root(self, relation: Any, look: Look | None) -> Lesson | None:
        """Some relations act: statements of SQL, and the calls of the catalog."""
        kind = relation.WhichOneof("rel_type")
        if kind in ("sql", "with_relations"):
            return self._of_sql(relation, look)
        if kind == "catalog":
            return self._of_catalog(relation.catalog, look)
        return None

    def _of_catalog(self, catalog: Any, look: Look | None) -> Lesson | None:
        kind = catalog.WhichOneof("cat_type")
        if kind in ("create_table", "create_external_table"):
            return self._of_catalog_table(getattr(catalog, kind), look)
        if kind == "drop_temp_view":
            name = (catalog.drop_temp_view.view_name,)
            self._change(lambda scope: scope.without_view(name))
        elif kind in ("set_current_database", "set_current_catalog"):
            self._change(Scope.without_tables)
        elif kind == "cache_table":
            self._change(lambda scope: replace(scope, cached=_CACHED))
        elif kind not in _CATALOG_ASKS:
            self._change(lambda scope: replace(scope, views={}))
        return None

    def _of_catalog_table(self, table: Any, look: Look | None) -> Lesson | None:
        name = name_of(table.table_name)
        if not name or not table.path or not table.source:
            self._change(lambda scope: scope.without_view(name) if name else replace(scope, views={}))
            return None
        content = joined("catalog", table.SerializeToString(deterministic=True))
        read = _files(table.source, table.path, {})
        return self._definition(name, read, content, look, is_temporary=False, by_text=True)

    def _of_view(self, command: Any, look: Look | None) -> Lesson | None:
        if command.is_global:
            self._change(lambda scope: scope.without_view((command.name,)))
            return None
        name = name_of(command.name)
        if len(name) != 1:
            self._change(lambda scope: replace(scope, views={}))
            return None
        made_by = _remembered(commands_pb2.Command(create_dataframe_view=command))
        return self._definition(name, command.input, b"", look, is_temporary=True, made_by=made_by)

    def _of_sql_command(self, relation: Any, look: Look | None) -> Lesson | None:
        lesson = self._of_sql(relation, look)
        sql = _sql_of(relation)
        if lesson is None and look is not None and sql is not None and is_query(sql.query):
            read_ahead(sql.query)  # while the server reads it too
        return lesson

    def _of_sql(self, relation: Any, look: Look | None) -> Lesson | None:
        sql = _sql_of(relation)
        if sql is None:
            return None
        effect = effect_of(sql.query)
        if effect.kind == "anything":
            self._change(lambda _: Scope(unknown=_ANY))
        elif effect.kind == "names":
            self._change(lambda scope: replace(scope, views={}))
        elif effect.kind == "cache":
            self._change(lambda scope: replace(scope, views={}, cached=_CACHED))
        elif effect.kind == "forget" or (effect.kind == "view" and len(effect.name) != 1):
            self._change(lambda scope: scope.without_view(effect.name))
        elif effect.kind == "view":
            definition, made_by = _with_query(relation, effect.query), _statement(relation)
            content = joined("view", effect.head)
            return self._definition(effect.name, definition, content, look, True, made_by, by_text=True)
        elif effect.kind == "table":
            return self._of_table(effect, look, _statement(relation))
        return None

    def _of_table(self, effect: Effect, look: Look | None, made_by: Any) -> Lesson | None:
        read, content = _files(effect.format, effect.path, effect.options), joined("table", effect.head)
        return self._definition(effect.name, read, content, look, effect.is_temporary, made_by, by_text=True)

    def _of_write(self, write: Any, look: Look | None) -> Lesson | None:
        """A table that is written anew is another one; writing more, or only files, changes no names."""
        if write.WhichOneof("save_type") != "table" or write.table.save_method == _INSERT:
            return None
        name = name_of(write.table.table_name)
        path = write.options.get("path", "")
        if write.mode == _APPEND and self._scope.view(name) is not None:
            return None
        if write.mode not in _ANEW or not name or not path or look is None:
            self._change(lambda scope: scope.without_view(name) if name else replace(scope, views={}))
            return None
        return self._of_written(name, write, _files(write.source or "parquet", path, {}), look)

    def _of_written(self, name: Name, write: Any, read: Any, look: Look) -> Lesson | None:
        """A table is known when its files are there; what was written says which columns it has."""
        scope = self._scope
        content = _written(write, scope, look)

        def learn() -> View:
            return View(refusal=content) if isinstance(content, str) else _defined(read, scope, look, content)

        return self._lesson(name, learn, is_temporary=False)

    def _definition(
        self, name: Name, definition: Any, content: bytes, look: Look | None, is_temporary: bool, made_by: Any = None,
        by_text: bool = False,
    ) -> Lesson | None:  # fmt: skip
        """A name that stands for a relation; what that reads must not change while the server takes it in."""
        view = replace(_defined(definition, self._scope, look, content), command=made_by, by_text=by_text)
        return self._lesson(name, lambda: _settled(view, look, self._scope), is_temporary, view.states)

    def _lesson(
        self, name: Name, learn: Callable[[], View], is_temporary: bool, states: Mapping[bytes, bytes] = _NOTHING
    ) -> Lesson | None:
        before = self._scope
        known = before.view(name)
        if known is not None and known.is_temporary and not is_temporary:  # the view stands before the table
            self._change(lambda scope: scope.without_view(name).with_view(name, known))
            return None
        pending = View(content=secrets.token_bytes(16), is_temporary=is_temporary, refusal=_PENDING)
        self._change(lambda scope: scope.with_view(name, pending))
        refused = View(is_temporary=is_temporary, refusal=_TWICE)

        def is_alone(scope: Scope) -> bool:
            """Whether nobody else has taught the name anything, before the server answered or since."""
            now = scope.view(name)
            others = known is not None and known.refusal == _PENDING
            return now is not None and now.content == pending.content and not others

        def learned() -> Change:
            view = replace(learn(), is_temporary=is_temporary)
            return lambda scope: scope.with_view(name, view if is_alone(scope) else refused)

        def rejected(scope: Scope) -> Scope:
            return scope.with_view_of(before, name) if is_alone(scope) else scope.with_view(name, refused)

        return Lesson(learned, rejected, states)


def _statement(relation: Any) -> Any:
    """The command that has a statement of SQL carried out."""
    return _remembered(commands_pb2.Command(sql_command=commands_pb2.SqlCommand(input=relation)))


def _remembered(command: Any) -> Any:
    """The command, unless it holds so much data that it should not live as long as its session."""
    return command if command.ByteSize() <= _HEAVY else None


def _files(form: str, path: str, options: Mapping[str, str]) -> Any:
    return relations_pb2.Relation(read=read_of(form, path, options))


def _written(write: Any, scope: Scope, look: Look) -> bytes | str:
    """What is written into a table, and how; or why that is not known."""
    how = commands_pb2.WriteOperation()
    how.CopyFrom(write)
    how.ClearField("input")
    view = _defined(write.input, scope, look)
    return view.refusal or joined("written", how.SerializeToString(deterministic=True), view.made)


def _defined(definition: Any, scope: Scope, look: Look | None, content: bytes = b"") -> View:
    """The view of a definition, as everything is now."""
    if look is None:
        return View(refusal=_MADE_PLAINLY)
    try:
        steps = tuple(map(_lighter, steps_of(definition)))
        needed = needed_by(steps, scope)
        made = _made(steps, needed, look, scope)
        facts = facts_of(definition, made.facts)
        return View(steps, needed, made.root.keys[-1], content, working_folder(), states=made.states, facts=facts)
    except NectarError as error:
        return View(refusal=str(error))


def _lighter(step: Step) -> Step:
    """The step, without data that it holds: views live long."""
    heavy = len(step.content) > _HEAVY
    content = joined("digest", digest_of(step.content)) if heavy else step.content
    message = step.message if step.message is not None and step.message.ByteSize() <= _HEAVY else None
    return replace(step, content=content, message=message)


def _made(steps: Sequence[Step], scope: Scope, look: Look, now: Scope) -> Keyed:
    made = look(steps, scope, now)
    if made.root.refusal:
        raise UserError(made.root.refusal)
    return made


def _settled(view: View, look: Look | None, scope: Scope) -> View:
    """The view as it is known from now on; what it reads must not have changed while the server took it in."""
    if view.refusal or look is None:
        return view
    try:
        now = _made(view.steps, view.scope, look, scope)
        same = view.made in now.root.keys and now.states == view.states
    except NectarError as error:
        return replace(view, refusal=str(error))
    return view if same else replace(view, refusal="files changed while it was made")


def _input_of(command: Any) -> Any:
    """The relation of a command of SQL, also as older clients write it."""
    if command.HasField("input"):
        return command.input
    relation = relations_pb2.Relation()
    relation.sql.query = command.sql
    return relation


def _sql_of(relation: Any) -> Any:
    kind = relation.WhichOneof("rel_type")
    if kind == "with_relations":
        return _sql_of(relation.with_relations.root)
    return relation.sql if kind == "sql" else None


def _with_query(relation: Any, query: str) -> Any:
    made = relations_pb2.Relation()
    made.CopyFrom(relation)
    _sql_of(made).query = query
    return made
