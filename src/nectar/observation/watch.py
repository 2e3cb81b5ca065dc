"""Watching one computation: what the audit hook and comparisons before and after tell of it.

In: what the computation has declared. Out: observations, each something that its key does not show. Law: what happened
in a thread that nobody can attribute counts against every computation under way, but is not certain: the result is not
kept this time, and nothing is remembered against the function.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Collection, Iterable
from typing import Final

from nectar.keys import caches
from nectar.observation import hook, monitoring
from nectar.observation.effects import Allowed, Observation, observations_of
from nectar.observation.imports import modules_that_came
from nectar.observation.named import NamedFiles
from nectar.observation.process import State, differences, is_importing, state_now
from nectar.observation.profile import Elsewhere, Profile, listen_to_draws, told
from nectar.observation.reach import Source
from nectar.observation.texts import moment_in
from nectar.threads import is_of_nectar

NOTHING: Final = Allowed()
_NAMED: Final = "names the module {} in a text, by which a library may import it"
_UNSEEN: Final = "may run library code that {}, where nobody can follow it"


class Watch(hook.Watched):
    """A computation that is watched while a block runs; afterwards `observations()` tells what was seen.

    texts: what may name files, which code that is not Python's could open. cooperative: it is a coroutine. vouched: it
    holds functions that somebody has declared to be pure, so that what it changed may be their doing, and is
    not remembered. sources: library code that it may run and that reads a clock or the like, so that its
    calls are followed. elsewhere: it runs in threads of an engine, which call its functions; called: by `profile.call`.
    named: a module of the application that library code may import by a text. known: what library code may read, as
    it is told, because the key holds it as it is in this thread.
    """

    __slots__ = (
        "_allowed", "_before", "_called", "_caches", "_elsewhere", "_known", "_modules", "_moment", "_named",
        "_profile", "_seen", "_sources", "_vouched",
    )  # fmt: skip

    def __init__(
        self,
        allowed: Allowed = NOTHING,
        texts: Iterable[str] = (),
        *,
        cooperative: bool = False,
        vouched: bool = False,
        sources: Collection[Source] = (),
        elsewhere: bool = False,
        called: bool = False,
        named: str = "",
        known: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(cooperative)
        self._allowed, self._vouched = allowed, vouched
        held = list(texts)
        self._named = NamedFiles(held)
        self._moment = moment_in(held)
        self._seen: list[Observation] = []
        if named:
            self._seen.append(Observation(_NAMED.format(named), certain=False))
        self._sources, self._elsewhere, self._called = sources, elsewhere, called
        self._profile: Profile | Elsewhere | None = None
        self._known = known

    def __enter__(self) -> Watch:
        self.begin()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.end(error)

    def begin(self) -> None:
        """The computation is about to run, in this thread."""
        try:
            self._named.begin(self._allowed)
            self._modules = 0 if is_importing() else len(sys.modules)
            self._before: State = state_now()
            self._caches = caches.noted()
            listen_to_draws()
            hook.begin(self)
        except BaseException:
            self._named.close()
            raise
        if self._sources and not self._follow():
            self._seen.append(self._unseen())

    def _unseen(self) -> Observation:
        """What cannot be followed: the first by name stands for all."""
        first = min((told(each.what, each.code) for each in self._sources), default="reads the clock or the like")
        return Observation(_UNSEEN.format(first), certain=False)

    def _follow(self) -> bool:
        """Notes from now on what library code reads; False if that cannot be had."""
        try:
            if monitoring.IS_THERE:
                return monitoring.follow(self._sources)
            if self.cooperative or (self._elsewhere and not self._called):
                return False
            profile = Elsewhere(self._sources) if self._elsewhere else Profile(self._sources)
            if not profile.begin():
                return False
        except Exception:  # the computation runs all the same, and is not kept
            return False
        self._profile = profile
        return True

    def end(self, error: BaseException | None = None) -> None:
        """The computation has run; a second time says nothing."""
        if self.done:
            return
        if self._profile is not None:
            self._profile.end()
        hook.end(self)
        caches.note_what_was_added(self._caches)
        known = self.excused.union(*((event.subject, event.target) for event in self.events))
        opened = self._named.end(known, self.others)
        if error is None:  # otherwise nothing is kept
            imported = len(sys.modules) != self._modules
            changed = list(differences(self._before, imported))
            came = modules_that_came(self._modules) if imported and self._modules else []
            self._seen += [Observation(f"imports {name}, which its code does not name", certain=False) for name in came]
            alone = self.alone and not self.cooperative and not self._vouched
            certain = alone and not imported and not (changed and _others_run())  # modules draw and set things too
            self._seen += [Observation(text, certain) for text in changed]
            self._seen += self._read_by_libraries()
            self._seen += [each._replace(certain=each.certain and not self._vouched) for each in opened]

    def _read_by_libraries(self) -> list[Observation]:
        if self._profile is None:
            return []
        certain = not self.cooperative and not self._vouched and len(sys.modules) == self._modules  # imports read too
        if isinstance(self._profile, Elsewhere):
            certain = certain and self.alone
        followed = self._profile.complete and not self.threads  # calls of other threads are not noted
        unseen = [] if followed else [self._unseen()]
        known = self._read_known()
        return [Observation(text, certain) for text in self._profile.found if text not in known] + unseen

    def _read_known(self) -> frozenset[str]:
        """What the key holds of what library code reads: as it is in this thread, and in no other."""
        return frozenset() if self.threads or self.cooperative else self._known

    def names_made(self) -> list[str]:
        """Names of the files and folders that the computation made, without those that lie in one of these folders."""
        made = {event.subject for event in self.events if event.kind in (hook.MAKE, hook.WRITE) and not event.existed}
        return [os.path.basename(path) for path in made if os.path.dirname(path) not in made]

    def observations(self) -> list[Observation]:
        """What the computation did that its key does not show, each once; to be asked right after the block."""
        known = self._read_known()
        events = [
            each for each in self.events if not (each.kind == hook.SOURCE and each.certain and each.subject in known)
        ]
        found = [*observations_of(events, self._allowed), *self._seen]
        if self._moment:
            text = f"holds a query that asks for {self._moment}, which is another each time"
            found.append(Observation(text, not self._vouched))
        left = [thread.name for thread in self.threads if thread.is_alive()]
        if left:
            found.append(Observation(f"leaves a thread running: {left[0]}", certain=False))
        return list(dict.fromkeys(found))


def _others_run() -> bool:
    """Whether the program has threads besides this one, which may have changed what the process keeps."""
    here = threading.get_ident()
    return any(number != here and not is_of_nectar(thread) for number, thread in list(threading._active.items()))  # type: ignore[attr-defined]
