"""The life of a rubric in a store: how often it held by week and release, what became of it, and what people say it is.

A rubric is known by its family, whatever set has it: the pattern that its event is a case of, or
else its id.
"""

import getpass
import json
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from pollex.agents.embedded.events.signal import name_rubric_family
from pollex.conversations.conversation import NAME_OF_UNKNOWN_PROMPT_VERSION
from pollex.errors import BadRubrics, WrongUse
from pollex.measures.intervals import Figure
from pollex.rubrics.rubric import Rubric, is_built_in_source
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import compute_share_with_interval
from pollex.runs.options import RunOptions
from pollex.services.held import ScoredConversation, read_held_rubrics
from pollex.services.results import Result
from pollex.store.database import DATABASE_FILE_NAME
from pollex.store.resume import list_stored_runs
from pollex.store.runs import FINISHED_STATUSES, Run
from pollex.store.store import Store
from pollex.store.tables import FactRow, dump_json, format_current_time, load_json
from pollex.text import JsonDict, JsonObject, TerminalLine, TerminalLines, quote_unclear_name

StateOfRubric = Literal["open", "mending", "mended", "accepted"]
STATES_IN_WORDS = {
    "open": "open",
    "mending": "being mended",
    "mended": "mended",
    "accepted": "accepted",
    "back": "back again",
}
"""States as people read them; `back` is what `check` says of a mended one."""
SCORING_COMMANDS = ("score", "evaluate")
"""Runs whose answers count."""
STATE_FACT_KIND, EVENT_FACT_KIND = "state", "event"
"""Kinds of facts that no run has; see `make_state_row`."""


class LearnedSetWords(NamedTuple):
    """The words of a set's rubrics by id, and their ids by family."""

    run: Run
    texts: dict[str, str]
    families: dict[str, set[str]]


@dataclass(frozen=True)
class LifeEvent:
    """Something that happened to a rubric, when and in which run, or who said it."""

    time: str
    what: str
    where: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class RubricState:
    """What a person said of a rubric, or `check`."""

    family: str
    rubric: str
    state: str
    release: str = ""
    note: str = ""
    who: str = ""
    time: str = field(default_factory=format_current_time)

    def __str__(self) -> str:
        in_words = STATES_IN_WORDS[self.state]
        if self.release and self.state == "mended":
            return f"{in_words} in {self.release}"
        return in_words


@dataclass(frozen=True, kw_only=True)
class RubricLife(Result):
    """A rubric over time.

    Attributes:
        weeks: Share of conversations in which it holds, by ISO week; `releases` likewise, by the
            prompt's version.
        down_with: Share of thumbs down where it holds, and `down_without` elsewhere.
    """

    id: str
    text: str
    polarity: str
    family: str
    state: RubricState | None
    weeks: dict[str, Figure]
    releases: dict[str, Figure]
    down_with: Figure
    down_without: Figure
    events: tuple[LifeEvent, ...]

    @property
    def word(self) -> str:
        """The state in words; what nobody spoke of is open."""
        if self.state:
            return str(self.state)
        return STATES_IN_WORDS["open"]

    @property
    def words(self) -> list[tuple[str, str]]:
        """The states that a person may choose, as they read."""
        return [(word, STATES_IN_WORDS[word]) for word in get_args(StateOfRubric)]

    @property
    def is_open(self) -> bool:
        """Whether somebody has to do something about it."""
        return self.state is None or self.state.state not in ("mended", "accepted")

    @property
    def rank(self) -> tuple[bool, float]:
        """Sorts what is back again first, then the most thumbs down."""
        down = (self.down_with.value or 0.0) * (self.down_with.n or 0)
        return self.state is None or self.state.state != "back", -down

    def told(self) -> TerminalLines:
        """Yield its state, how often it held, thumbs, and what became of it."""
        yield TerminalLine(self.text, "bold")
        # who said so, when, and what they added
        note = ""
        if self.state and self.state.note:
            note = f": {self.state.note}"

        by = ""
        if self.state:
            by = f", by {self.state.who} on {self.state.time[:10]}{note}"

        yield f"State: {self.word}{by}"
        # shares by week and by release
        for title, shares in (("Week", self.weeks), ("Release", self.releases)):
            for name, share in shares.items():
                yield f"{title} {name}: holds in {share}"

        yield f"Thumbs down: {self.down_with} where it holds, {self.down_without} elsewhere"
        for event in self.events:
            where = " ".join(filter(None, [event.where, event.note]))
            yield f"{event.time[:10]} {event.what}{f' ({where})' if where else ''}"

    def as_json(self) -> JsonDict:
        return asdict(self) | {"word": self.word}


def get_rubric_family(rubric: Rubric | JsonObject) -> str:
    """Return what a rubric is known by in every set."""
    facts = _get_rubric_facts(rubric)
    source = str(facts.get("source", ""))
    name = name_rubric_family(source)
    if name != source or (is_built_in_source(source) and ":" in source and len(source) <= 60):
        rubric_key = name
    else:
        rubric_key = facts["id"]

    return f"{facts['polarity']} {rubric_key}"


def read_states(store: Store) -> dict[str, list[RubricState]]:
    """Return what was said of each family, in order."""
    states_by_family: dict[str, list[RubricState]] = {}
    for row in store.rows(
        "SELECT id, payload FROM facts WHERE kind = ? ORDER BY rowid", [STATE_FACT_KIND]
    ):
        states_by_family.setdefault(row["id"], []).append(RubricState(**load_json(row["payload"])))
    return states_by_family


def make_state_row(state: RubricState) -> FactRow:
    """Return a state as the store keeps it: with the facts, which `forget` looks through."""
    return FactRow("", STATE_FACT_KIND, state.family, dump_json(asdict(state)))


def make_proof_row(
    rubric: Rubric,
    run: str,
    edit: str,
    verdict: str,
) -> FactRow:
    """Return what a proof came to as the store keeps it."""
    # by family, so that other sets with the rubric have it, too
    event = LifeEvent(
        format_current_time(),
        f"change of the prompt proved: {verdict}",
        run,
        edit,
    )
    return FactRow("", EVENT_FACT_KIND, get_rubric_family(rubric), dump_json(asdict(event)))


def list_mended_rubrics(folder: Path, rubric_set: RubricSet) -> dict[str, RubricState]:
    """Return the rubrics of a set that somebody said are mended, by id; none where there is no store."""
    # a folder without a store has no remarks
    if not (folder / DATABASE_FILE_NAME).exists():
        return {}

    with Store.open(folder, read_only=True) as store:
        remarks = read_states(store)

    # remarks of other sets count where they are about the same family
    ids = {rubric.id for rubric in rubric_set.rubrics}
    last = {}
    for rubric in rubric_set.rubrics:
        # the last remark is the state
        if family_remarks := select_states_of_rubric(
            remarks, rubric.id, get_rubric_family(rubric), ids
        ):
            last[rubric.id] = family_remarks[-1]

    return {id_: state for id_, state in last.items() if state.state == "mended"}


def select_states_of_rubric(
    remarks: Mapping[str, list[RubricState]],
    id_: str,
    family_name: str,
    ids: Collection[str],
) -> list[RubricState]:
    """Return what was said of a rubric: under its id, or of one of its family that is not beside it in its set."""
    return [
        remark
        for remark in remarks.get(family_name, ())
        if remark.rubric == id_ or remark.rubric not in ids
    ]


def mark_rubrics_back(folder: Path, back: Iterable[RubricState], why: str) -> None:
    """Keep that mended rubrics are back again."""
    with Store.open(folder) as store:
        store.put(
            [
                make_state_row(
                    replace(remark, state="back", note=why, who="check", time=format_current_time())
                )
                for remark in back
            ]
        )
        store.flush()


def make_rubric_state(
    rubric: JsonObject,
    state: StateOfRubric,
    release: str,
    note: str,
    who: str,
) -> RubricState:
    """Return what somebody says of a rubric.

    Raises:
        WrongUse: It is mended, and nobody says in which release; or a release is named for another
            state.
    """
    # only states that somebody can say; others are found out
    if state not in get_args(StateOfRubric):
        raise WrongUse(
            f"no state is called {state!r:.40}",
            hint=f"give one of {', '.join(get_args(StateOfRubric))}",
        )

    # a release belongs to what is mended, and to nothing else
    if (state == "mended") != bool(release):
        if state == "mended":
            what = "mended in which release?"
        else:
            what = "only what is mended has a release"

        raise WrongUse(
            what,
            hint="give it with mended, as in 2.14",
            option="release",
        )

    # the name of the system's user stands in where nobody gave one
    who = who or getpass.getuser()
    return RubricState(
        family=get_rubric_family(rubric),
        rubric=rubric["id"],
        state=state,
        release=release,
        note=note,
        who=who,
    )


def set_rubric_state(
    run: RunOptions,
    rubric: str,
    state: StateOfRubric | None = None,
    *,
    release: str = "",
    note: str = "",
    who: str = "",
) -> RubricLife:
    """Say what a rubric is now, if a state is given; return its life.

    Args:
        rubric: Its id, or how that begins.
        release: In which it is mended.

    Raises:
        WrongUse: No rubric of the store has such an id, or the state lacks its release.
    """
    # opened to write only if something is said
    with Store.open(run.store, read_only=state is None) as store:
        facts = find_rubric_in_store(store, rubric)
        if state is not None:
            store.put([make_state_row(make_rubric_state(facts, state, release, note, who))])
            store.flush()
        elif release or note:
            raise WrongUse(
                "there is no state",
                hint=f"give one of {', '.join(get_args(StateOfRubric))} before them",
            )

        return next(iter(build_lives(store, [facts])))


def find_rubric_in_store(store: Store, name: str) -> dict[str, object]:
    """Return the rubric whose id begins with `name`, as the last run has it.

    Raises:
        BadRubrics: The store has none, or several.
    """
    # ids in their last wording
    payloads = {}
    for row in store.rows(RUBRIC_BY_PREFIX_QUERY, [len(name), name]):
        payloads[row["id"]] = row["payload"]

    # the whole id, or a beginning that only one has
    if name in payloads or len(payloads) == 1:
        rubric: dict[str, object] = load_json(payloads.get(name) or next(iter(payloads.values())))
        return rubric

    if payloads:
        several = f"{len(payloads)} rubrics have ids that begin"
    else:
        several = "no rubric of the store has an id that begins"

    if payloads:
        hint = f"give one of {', '.join(list(payloads)[:8])}"
    else:
        hint = "`pollex rubrics list` shows the ids of a set"

    raise BadRubrics(
        f"{several} with {quote_unclear_name(name[:40])!r}",
        where=str(store.folder),
        hint=hint,
    )


RUBRIC_BY_PREFIX_QUERY = (
    "SELECT id, payload FROM facts WHERE kind = 'rubric' AND substr(id, 1, ?) = ? ORDER BY rowid"
)


def build_lives(
    store: Store,
    rubrics: Sequence[Rubric | Mapping[str, object]],
    read_seen: Callable[[Run], list[ScoredConversation]] | None = None,
    *,
    counted_runs: Container[str] | None = None,
) -> list[RubricLife]:
    """Return the lives of some rubrics of an open store.

    A conversation that several runs scored counts once, as the last of them has it.

    Args:
        read_seen: Returns what `read_held_rubrics` does, where somebody keeps it.
        counted_runs: Ids of the runs whose conversations count; None for all.
    """
    # conversations by id: a later run's scores take the place of an earlier one's
    every = list_stored_runs(store)
    scored_by_id: dict[str, tuple[ScoredConversation, dict[str, set[str]]]] = {}
    for run in every:
        counts = counted_runs is None or run.id in counted_runs
        if counts and run.command in SCORING_COMMANDS and run.status in FINISHED_STATUSES:
            rows = store.rows(
                "SELECT payload FROM facts WHERE run = ? AND kind = 'rubric'",
                [run.id],
            )
            families = _group_ids_by_family(load_json(row["payload"]) for row in rows)
            for scored in read_seen(run) if read_seen else read_held_rubrics(store, run):
                scored_by_id[scored.id] = (scored, families)

    # what people said, which sets there were, and what proofs came to
    remarks = read_states(store)
    sets = list(_iterate_learned_sets(store, every))
    events = store.rows(
        "SELECT id, payload FROM facts WHERE kind = ? ORDER BY rowid", [EVENT_FACT_KIND]
    )
    kept_events = []
    for row in events:
        kept_events.append((row["id"], LifeEvent(**load_json(row["payload"]))))

    lives: list[RubricLife] = []
    for rubric in rubrics:
        lives.append(
            _build_life(
                _get_rubric_facts(rubric),
                scored_by_id.values(),
                remarks,
                sets,
                kept_events,
            )
        )

    return lives


def _get_rubric_facts(rubric: Rubric | Mapping[str, object]) -> JsonObject:
    if isinstance(rubric, Mapping):
        return rubric

    facts: dict[str, object] = {}
    for n in ("id", "text", "polarity", "source"):
        facts[n] = getattr(rubric, n)

    return facts


def _group_ids_by_family(rubrics: Iterable[JsonObject]) -> dict[str, set[str]]:
    families: dict[str, set[str]] = {}
    for rubric in rubrics:
        families.setdefault(get_rubric_family(rubric), set()).add(rubric["id"])
    return families


def _build_life(
    rubric: JsonObject,
    scored: Iterable[tuple[ScoredConversation, dict[str, set[str]]]],
    remarks: Mapping[str, list[RubricState]],
    sets: Sequence[LearnedSetWords],
    events: Sequence[tuple[str, LifeEvent]],
) -> RubricLife:
    # counts by (week, held), (release, held) and (held, thumb down)
    name = get_rubric_family(rubric)
    weeks: Counter[tuple[str, bool]] = Counter()
    releases: Counter[tuple[str, bool]] = Counter()
    thumbs: Counter[tuple[bool, bool]] = Counter()
    # the rubric itself if the run asked it, else others of its family
    for conversation, families in scored:
        ids = (
            {rubric["id"]} if rubric["id"] in conversation.asked else families.get(name, set())
        ) & conversation.asked
        if not ids:
            continue
        # it holds if any of them does
        held = bool(ids & conversation.held)
        weeks[conversation.week, held] += 1
        releases[conversation.release, held] += 1
        if conversation.down is not None:
            thumbs[held, conversation.down] += 1

    # texts of the last set that has the rubric
    beside = next(
        (rubric_set.texts for rubric_set in reversed(sets) if rubric["id"] in rubric_set.texts),
        {},
    )
    own_remarks = select_states_of_rubric(remarks, rubric["id"], name, beside)
    return RubricLife(
        id=rubric["id"],
        text=rubric["text"],
        polarity=rubric["polarity"],
        family=name,
        state=own_remarks[-1] if own_remarks else None,
        weeks=_compute_shares(weeks),
        releases=_compute_shares(releases),
        # thumbs down where it holds, and elsewhere
        down_with=compute_share_with_interval(
            thumbs[True, True], thumbs[True, True] + thumbs[True, False]
        ),
        down_without=compute_share_with_interval(
            thumbs[False, True], thumbs[False, True] + thumbs[False, False]
        ),
        events=tuple(
            sorted(
                _iterate_life_events(rubric["id"], name, own_remarks, sets, events),
                key=lambda event: event.time,
            )
        ),
    )


def _compute_shares(counts: Counter[tuple[str, bool]]) -> dict[str, Figure]:
    names = sorted({name for name, _ in counts} - {NAME_OF_UNKNOWN_PROMPT_VERSION})
    shares: dict[str, Figure] = {}
    for name in names:
        shares[name] = compute_share_with_interval(
            counts[name, True],
            counts[name, True] + counts[name, False],
        )

    return shares


def _iterate_life_events(
    id_: str,
    name: str,
    remarks: Sequence[RubricState],
    sets: Sequence[LearnedSetWords],
    events: Sequence[tuple[str, LifeEvent]],
) -> Iterator[LifeEvent]:
    # Its text in one set after another tells what became of it. What a log doesn't tell of is not
    # gone from another one, which may be of another assistant.
    last_text: dict[frozenset[str], str] = {}
    for run, texts, families in sets:
        logs = name_learned_logs(run)
        text = texts.get(id_) or next(
            (texts[id_of_family] for id_of_family in families.get(name, ())), ""
        )
        ever = logs in last_text
        before = last_text.get(logs, "")
        if text and not before:
            yield LifeEvent(
                run.started,
                "back again" if ever else "found",
                run.id,
                text,
            )
        elif text and text != before:
            yield LifeEvent(run.started, "edited", run.id, text)
        elif before and not text:
            yield LifeEvent(run.started, "gone", run.id)

        # before it was found in a log, nothing is known of it there
        if text or ever:
            last_text[logs] = text

    # proofs of changes, then what people said
    for family_name, event in events:
        if family_name == name:
            yield event

    for remark in remarks:
        yield LifeEvent(remark.time, str(remark), remark.who, remark.note)


def name_learned_logs(run: Run) -> frozenset[str]:
    """Return the logs that a set was learned from, as they were given; none where nobody knows."""
    logs = run.arguments.get("logs")
    return frozenset(map(str, logs if isinstance(logs, list) else [logs] if logs else []))


def _iterate_learned_sets(store: Store, every: Sequence[Run]) -> Iterator[LearnedSetWords]:
    # the payload of a set, by the run that made it
    payloads = {}
    for row in store.rows("SELECT run, payload FROM facts WHERE kind = 'rubric_set'"):
        payloads[row["run"]] = row["payload"]

    for run in every:
        if run.id in payloads and isinstance(payload := json.loads(payloads[run.id]), dict):
            rubrics = payload.get("rubrics", ())
            yield LearnedSetWords(
                run,
                {rubric["id"]: rubric["text"] for rubric in rubrics},
                _group_ids_by_family(rubrics),
            )
