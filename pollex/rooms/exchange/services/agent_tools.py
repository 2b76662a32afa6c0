"""What coding agents may ask of a store: read-only, in small pages, and all of it sealed as data.

An answer is nothing but the boundary that prompts use, with JSON inside: what is shown of how much,
then the items.
Whatever came from a conversation, its id too, can't leave it, and no sentence of ours stands among
theirs.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.errors import WrongUse
from pollex.formats.read_logs import make_logs_of_conversations
from pollex.prompts.data_boundary import write_items_within_boundary
from pollex.rooms import list_hooks
from pollex.rubrics.records import ChosenRubric, DroppedRubric
from pollex.rubrics.rubric_set import RubricSet, get_arrays_path
from pollex.services.compare import compare_runs
from pollex.services.held import read_held_rubrics
from pollex.services.history import find_rubric_named
from pollex.services.hooks import AgentTool, RubricFacts, describe_figure
from pollex.store.resume import find_run, iterate_conversations, list_stored_runs
from pollex.store.rubric_sets import find_stored_rubric_set, list_stored_rubric_sets
from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.store.traces import build_span_tree, collect_conversation_trace
from pollex.text import make_json_values, replace_surrogates

ROWS_A_PAGE, MAX_TEXT_CHARACTERS, MAX_ID_CHARACTERS = 10, 1_500, 200
"""Items in an answer, and characters of a text and of a name in it."""
QUOTED_TEXT_FIELDS = frozenset(("text", "quote", "note", "reason", "said", "justification"))
"""Fields that hold what was said, or was made of it."""
SCORED_CONVERSATIONS_QUERY = (
    "SELECT * FROM (SELECT conversation AS id, probability, netsat, label, outcome FROM "
    "scores) ORDER BY probability"
)


@dataclass(frozen=True)
class AgentTools:
    """Tools over a store; each opens it anew, so that what runs meanwhile is seen.

    Attributes:
        sets: Files of rubric sets, beside those that the store's runs made.
        texts: Whether what was said is shown; else figures and ids alone.
    """

    folder: Path
    sets: Sequence[Path] = ()
    texts: bool = True
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def rubrics(self, rubric_set: str = "", offset: int = 0) -> str:
        """List the rubrics of a set (file name or run; the newest if empty): state, how often each holds, thumbs."""
        with self._store() as store:
            loaded_set = self._set(store, rubric_set)
            rows: list[dict[str, Any]] = []
            for rubric in loaded_set.rubrics:
                rows.append(
                    {
                        "id": rubric.id,
                        "polarity": rubric.polarity,
                        "text": rubric.text,
                    }
                )

            # other rooms add what they know of the rubrics, in the same order
            for hook in list_hooks(RubricFacts):
                facts = hook.facts_of(store, loaded_set.rubrics)
                rows = [row | more for row, more in zip(rows, facts, strict=True)]

        return self.answer(rows, offset, run=loaded_set.run)

    def why(self, rubric: str, rubric_set: str = "", offset: int = 0) -> str:
        """Tell where a rubric (its id, or how that begins) came from: reasons, with quotes and conversations."""
        with self._store() as store:
            loaded_set = self._set(store, rubric_set)

        # a rubric that was dropped has a name, and no reasons any more
        named_rubric: ChosenRubric | DroppedRubric = find_rubric_named(
            loaded_set,
            rubric,
            Path(rubric_set or loaded_set.run),
        )
        if isinstance(named_rubric, ChosenRubric):
            reason_ids = named_rubric.reason_ids
        else:
            reason_ids = ()

        # a row for each quote: a reason without quotes shows nothing
        rows = []
        for reason in loaded_set.reasons:
            if reason.id in reason_ids:
                for quote in reason.quotes:
                    rows.append(
                        {
                            "reason": reason.text,
                            "conversation": reason.conversation_id,
                            "turn": quote.turn,
                            "quote": quote.text,
                        }
                    )

        return self.answer(
            rows,
            offset,
            rubric=named_rubric.id,
            text=named_rubric.text,
            run=loaded_set.run,
        )

    def scores(
        self,
        run: str = "",
        below: float = 1.0,
        above: float = 0.0,
        thumb: str = "",
        holds: str = "",
        offset: int = 0,
    ) -> str:
        """List scored conversations of a run (the last one if empty), the least probable thumbs up first.

        Filters: probability below and above; thumb up, down or none; holds, the id of a rubric.
        """
        with self._store() as store:
            scored_run = self._run(store, run, ("score", "evaluate", "learn"))
            # labels and answers are read before the store is closed
            labels = {}
            for row in store.ask(scored_run.id, "SELECT id, label FROM conversations"):
                labels[row["id"]] = row["label"]
            held = None
            if holds:
                held = self._held(store, scored_run, holds)
            rows = store.ask(scored_run.id, SCORED_CONVERSATIONS_QUERY)

        # thumbs by the words of the tool, labels by those of the store
        label = {"": "", "up": "positive", "down": "negative", "none": "none"}.get(thumb)
        if label is None:
            raise WrongUse("no such thumb", hint="give up, down, none, or nothing")

        shown = []
        # conversations without a probability pass the limits: their outcome says why they have none
        for row in rows:
            if (
                (row["probability"] is None or above <= row["probability"] <= below)
                and (not label or labels.get(row["id"]) == label)
                and (held is None or row["id"] in held)
            ):
                shown.append(row | {"thumb": labels.get(row["id"], "none")})

        return self.answer(shown, offset, run=scored_run.id)

    def conversation(self, run: str, conversation: str, offset: int = 0) -> str:
        """Show the turns of a conversation of a run, from the turn `offset` on."""
        with self._store() as store:
            logged_run = self._run(store, run)
            logged_conversation = self._conversation(
                store,
                logged_run,
                conversation,
            )

        # turns are numbered as quotes and answers number them
        rows = []
        for n, turn in enumerate(logged_conversation.turns):
            rows.append({"turn": n, "role": turn.role, "said": turn.shown})

        return self.answer(
            rows,
            offset,
            run=logged_run.id,
            conversation=logged_conversation.id,
            thumb=logged_conversation.label.value,
            prompt=logged_conversation.prompt,
        )

    def compare(self, first: str, second: str, offset: int = 0) -> str:
        """Compare two scored runs, the second with the first: probability, NetSAT, and each rubric."""
        with self._store() as store:
            # both runs are compared by the rubric set of the second
            runs_ = [self._run(store, name) for name in (first, second)]
            rubric_set = self._set_of(store, runs_[1])
            self._require_arrays(store, rubric_set)
            comparison = compare_runs(
                store,
                runs_[0].id,
                runs_[1].id,
                rubric_set,
            )

        # shares of the rubrics before and after, and the difference with its interval
        rows = []
        for rubric in comparison.rubrics:
            rows.append(
                {
                    "id": rubric.id,
                    "polarity": rubric.polarity,
                    "text": rubric.text,
                    "before": rubric.before,
                    "after": rubric.after,
                    "difference": describe_figure(rubric.difference),
                    "more_than_chance": rubric.moved,
                }
            )

        about = {
            "first": comparison.first,
            "second": comparison.second,
            "sizes": list(comparison.sizes),
            "paired": comparison.paired,
        }
        figures = {
            "probability": describe_figure(comparison.probability),
            "netsat": describe_figure(comparison.netsat),
        }
        return self.answer(rows, offset, **about, **figures)

    def trace(self, run: str = "last", conversation: str = "", offset: int = 0) -> str:
        """Show the nodes and calls of a run with their times; with a conversation, its steps, score and answers."""
        with self._store() as store:
            traced_run = self._run(store, run)
            # with a conversation its own steps, without one the run's tree, a row each
            if conversation:
                logged_conversation = self._conversation(
                    store,
                    traced_run,
                    conversation,
                )
                trace = collect_conversation_trace(
                    store,
                    traced_run.id,
                    logged_conversation.id,
                )
                rows = [vars(step) for step in trace.steps] + (
                    [asdict(trace.score)] if trace.score else []
                )
                rows += [
                    {"text": trace.asked.get(id_)} | make_json_values(answer)
                    for id_, answer in trace.answers.items()
                ]
            else:
                rows = []
                for branch in build_span_tree(store, traced_run.id):
                    rows.extend(_iterate_branches(make_json_values(branch)))

        return self.answer(
            rows,
            offset,
            run=traced_run.id,
            command=traced_run.command,
            status=traced_run.status,
        )

    def of_rooms(self) -> dict[str, Callable[..., str]]:
        """Return the tools of rooms by name."""
        tools = [tool.of(self) for tool in list_hooks(AgentTool)]
        return {tool.__name__: tool for tool in tools}

    def scored(self, run: str) -> tuple[Run, RubricSet, Logs]:
        """Return a scored run, the last one for an empty name, its rubric set, and its conversations."""
        with self._store() as store:
            scored = self._run(store, run, ("score", "evaluate", "learn"))
            rubric_set = self._set_of(store, scored)
            return (
                scored,
                rubric_set,
                make_logs_of_conversations(iterate_conversations(store, scored.id)),
            )

    def _store(self) -> Store:
        return Store.open(self.folder, read_only=True)

    def _set(self, store: Store, name: str) -> RubricSet:
        """Return a set by the name of its file or its run; the newest where no name is given."""
        # sets that the agent was started with come before those of the store
        for path in self.sets:
            if name in ("", path.name, str(path)):
                return RubricSet.load(path, arrays=False)

        if (stored_set := find_stored_rubric_set(store, name or "last")) is None:
            runs_with_sets = (rubric_set.run for rubric_set in list_stored_rubric_sets(store))
            names = ", ".join([*(path.name for path in self.sets), *runs_with_sets][:8]) or "none"
            raise WrongUse(
                "there is no such rubric set",
                where=str(self.folder),
                hint=f"sets are {names}",
            )

        return stored_set

    def _set_of(self, store: Store, run: Run) -> RubricSet:
        # a set of another run fits if the run answered all of its rubrics
        ids = set()
        for row in store.rows("SELECT id FROM facts WHERE run = ? AND kind = 'rubric'", [run.id]):
            ids.add(row["id"])

        loaded = (RubricSet.load(path) for path in self.sets)
        stored = (rubric_set.read(store) for rubric_set in list_stored_rubric_sets(store))
        for candidate in (*loaded, *stored):
            if candidate.run == run.id or {rubric.id for rubric in candidate.rubrics} <= ids:
                return candidate

        raise WrongUse(
            f"the rubric set of {run.id} is not here",
            hint="start with its file",
            option="rubrics",
        )

    def _require_arrays(self, store: Store, rubric_set: RubricSet) -> None:
        """Refuse a set of the store whose calibrator's arrays stand in a file beside the set's own.

        Raises:
            WrongUse: They do; the message says which file that is. It isn't opened: a store may
                name any.
        """
        # without a calibrator, or with its arrays in the set, nothing is missing
        if rubric_set.calibrator is None or rubric_set.has_arrays:
            return

        # where the run that made the set was told to write it
        arguments = {run.id: run.arguments for run in list_stored_runs(store)}.get(
            rubric_set.run,
            {},
        )
        file = str(
            Path(
                str(arguments.get("folder") or ""),
                str(arguments.get("out") or "rubrics.json"),
            )
        )
        arrays = get_arrays_path(Path(file), rubric_set.calibrator.facts)
        what = f"the arrays of the set that {rubric_set.run} made are not in the store: they stand in {arrays}"
        raise WrongUse(
            what,
            hint="start with the set's own file",
            option={"rubrics": file},
        )

    def _run(self, store: Store, name: str, commands: Sequence[str] = ()) -> Run:
        if name:
            return find_run(store, name)

        # the last run of the commands that score
        run = next(
            (run for run in reversed(list_stored_runs(store)) if run.command in commands),
            None,
        )
        if run is None:
            raise WrongUse(
                "no run has scored anything",
                where=str(store.folder),
                hint="run `pollex score` first",
            )

        return run

    def _conversation(self, store: Store, run: Run, name: str) -> Conversation:
        conversation = next(iterate_conversations(store, run.id, ids=[name]), None)
        if conversation is None:
            raise WrongUse(
                "the run has no such conversation",
                where=run.id,
                hint="`scores` lists their ids",
            )

        return conversation

    def _held(self, store: Store, run: Run, rubric: str) -> set[str]:
        return {
            scored.id
            for scored in read_held_rubrics(store, run)
            if any(rubric_id.startswith(rubric) for rubric_id in scored.held)
        }

    def answer(self, rows: Sequence[Any], offset: int, **about: Any) -> str:
        """Return a page of rows, sealed as data."""
        if offset < 0:
            raise WrongUse(
                "offset is negative",
                hint="give 0, or the `next` of the answer before",
            )

        # a page of rows, each short enough for an agent's window
        page = []
        for row in rows[offset : offset + ROWS_A_PAGE]:
            page.append(self._short(row))

        # no `next` on the last page
        left = {"next": offset + ROWS_A_PAGE} if offset + ROWS_A_PAGE < len(rows) else {}
        head = {
            "shown": len(page),
            "from": offset,
            "of": len(rows),
            **left,
        }
        # the head is sealed, too: names of runs and ids come from elsewhere
        return write_items_within_boundary([self._short(head | about), *page], self.salt)

    def _short(self, value: object) -> Any:
        """Return a value with long texts and lists cut, by how much in `NAME_cut`; without texts where none are due."""
        if isinstance(value, Mapping):
            # without texts whole fields are left out, by their names
            shown = {}
            for key, content in value.items():
                if self.texts or key not in QUOTED_TEXT_FIELDS:
                    shown[str(key)] = content
            # how much of a value was cut stands beside it
            cut = {}
            for key, content in shown.items():
                if (most := _get_length_limit(content)) < _measure_length(content):
                    cut[f"{key}_cut"] = len(content) - most
            return {
                replace_surrogates(key[:MAX_ID_CHARACTERS]): self._short(content)
                for key, content in shown.items()
            } | cut
        if isinstance(value, list | tuple):
            return [self._short(entry) for entry in value[:ROWS_A_PAGE]]
        if isinstance(value, str):
            return replace_surrogates(value[:MAX_TEXT_CHARACTERS])
        # NaN and infinity have no form in JSON
        if isinstance(value, float):
            if isfinite(value):
                return round(value, 4)
            return None
        if isinstance(value, int | float | None):
            return value
        return str(value)[:MAX_TEXT_CHARACTERS]


def _get_length_limit(value: object) -> int:
    return MAX_TEXT_CHARACTERS if isinstance(value, str) else ROWS_A_PAGE


def _measure_length(value: object) -> int:
    if isinstance(value, str | list | tuple):
        return len(value)
    return 0


def _iterate_branches(branch: dict[str, Any], depth: int = 0) -> Iterable[dict[str, object]]:
    yield {name: value for name, value in branch.items() if name not in ("branches", "told")} | {
        "depth": depth
    }
    for inner in branch["branches"]:
        yield from _iterate_branches(inner, depth + 1)
