"""Choose the conversations to label next, by a rubric set."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.view import views_of
from pollex.calibration.active_learning import select_queries, vectors_of
from pollex.conversations.conversation import DRAWN, Conversation, Label, messages_of
from pollex.conversations.logs import BadRow, Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.label_files import FORMATS, LOGGED, RANDOM, Request, drawn_of, sheet_for, write_requests
from pollex.formats.write import require_format
from pollex.graphs.context import Progress
from pollex.measures.arrays import Bools, Floats
from pollex.measures.distributions import entropy
from pollex.rubrics.answers import Answer
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score
from pollex.rubrics.thumb_model import judges_wanted
from pollex.services.logs import Sources, files_of, logs_from, names_of
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.plan import Planned, plan_scoring
from pollex.services.results import ModelUsage, Shown, counted, rows_told, support_json, used
from pollex.services.roles import embedder_for
from pollex.services.score import scored_by, unedited
from pollex.services.workspace import workspace
from pollex.text import Told, count


@dataclass(frozen=True, eq=False)
class LabelCandidates:
    """Conversations that have a probability, including labeled ones.

    Attributes:
        probability: Probability for each requested judge, or one column for an unknown judge `[conversation, judge]`.
    """

    conversations: list[Conversation]
    scores: list[Score]
    probability: Floats
    judges: tuple[str, ...]

    @property
    def labelled(self) -> Bools:
        """Mask of the conversations with a label `[conversation]`."""
        return np.array([c.label is not Label.NONE for c in self.conversations], dtype=bool)

    @property
    def known(self) -> Bools:
        """Mask of the known labels `[conversation, judge]`."""
        if not self.judges:
            return self.labelled[:, None]
        who = np.array([c.judge for c in self.conversations], dtype=object)
        return np.asarray(self.labelled[:, None] & (who[:, None] == np.array(self.judges, dtype=object)), dtype=bool)


@dataclass(frozen=True, kw_only=True, repr=False)
class NextConversations(Shown):
    """The conversations to label next.

    Attributes:
        rows: A row each: id, probability, entropy, how it begins and, where annotators were named, whom to ask.
        unlabelled: Conversations without a label.
    """

    fine = ("scored",)

    run: str
    rubrics: RubricSet
    rows: tuple[Request, ...]
    unlabelled: int
    out: Path | None
    outcomes: dict[str, int]
    bad_rows: tuple[BadRow, ...] = ()
    usage: ModelUsage | None = None

    @property
    def headline(self) -> str:
        return f"{len(self.rows)} of {self.unlabelled} without a label"

    def records(self) -> tuple[Request, ...]:
        return self.rows

    def told(self) -> Told:
        """Yield the conversations to label next."""
        yield from rows_told(self.rows, ("id", "probability", "entropy", "judge", "begins"))
        of = count(self.unlabelled, "conversation")
        listed = f"{len(self.rows)} of {of} without a label, those whose labels help most first"
        yield listed if self.unlabelled else "Every conversation has a label already."
        yield counted(self.outcomes)
        yield from used(self.usage)
        yield f"Probabilities: {self.rubrics.support}"
        if self.out is not None:
            yield f"Wrote {self.out}"

    def as_json(self) -> dict[str, Any]:
        about = ("next=rows", "run", "judge=rubrics.judge.name", "outcomes")
        return self.of(*about) | support_json(self.rubrics) | self.of("usage")


def next_conversations(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    *,
    count: int,
    judges: Sequence[str],
    out: Path | None,
    questionnaire: str | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> NextConversations:
    """Score unlabeled conversations, and pick those whose labels reduce uncertainty most."""
    rubric_set = unedited(rubrics)
    questions = sheet_for(questionnaire, out)
    if out is not None:
        require_format(out, *files_of(rubrics, logs), formats=FORMATS)
    wanted = judges_wanted(rubric_set.thumb_model, judges) if judges else ()  # to rebuild the model takes a second
    read = logs_from(logs, reading, progress)
    free = rubric_set.judge.built_in  # labeled ones are scored, too, if that costs nothing
    kept = tuple(c for c in read.conversations if free or c.label is Label.NONE)
    asked = Logs(conversations=kept, fingerprint=read.fingerprint)
    if run.dry_run:
        raise Planned(plan_scoring(asked.conversations, rubric_set, run, model))
    with workspace(run, progress, read) as opened:
        arguments = {"logs": names_of(logs), "rubrics": names_of(rubrics)[0]}
        scores = list[Score]()
        scored, usage = scored_by(opened, asked, rubric_set, model, arguments, "label", scores.extend, wanted)
        embedder = embedder_for(opened.store.folder, rubric_set.judge.options.embedding_model)
        embedder.watch(opened.progress)
        rows = picked_rows(candidates(asked.conversations, scores, wanted), embedder, count)
    if out is not None:
        write_requests(out, rows_to_fill_in(rows, read, reading), questions)
    return NextConversations(
        run=scored.run,
        rubrics=rubric_set,
        rows=tuple(rows),
        unlabelled=sum(c.label is Label.NONE for c in read.conversations),
        out=out,
        outcomes=dict(scored.counts),
        bad_rows=read.bad_rows,
        usage=usage,
    )


def candidates(conversations: Sequence[Conversation], scores: Any, judges: Sequence[str]) -> LabelCandidates:
    """Return the conversations that have a probability."""
    both = [(c, s) for c, s in zip(conversations, scores, strict=True) if s.probability is not None]
    each = [[s.judges[judge] for judge in judges] if judges else [s.probability] for _, s in both]
    probability = np.array(each, dtype=np.float64).reshape(len(both), max(1, len(judges)))
    return LabelCandidates([c for c, _ in both], [s for _, s in both], probability, tuple(judges))


def picked_rows(found: LabelCandidates, embedder: Embedder, count: int) -> list[Request]:
    """Return the conversations to label next, a row for each."""
    if not found.conversations:
        return []
    p = found.probability
    answers = [[a.expected() for a in s.answers if isinstance(a, Answer)] for s in found.scores]
    vectors = vectors_of(np.array(answers), embeddings_of(found.conversations, embedder))
    picked = select_queries(
        vectors,
        p * (1 - p),
        found.known,
        count,
        askable=np.broadcast_to(~found.labelled[:, None], p.shape),
    )
    return [_row(found, place, judge) for place, judge in zip(picked.row.tolist(), picked.judge.tolist(), strict=True)]


def embeddings_of(conversations: Sequence[Conversation], embedder: Embedder) -> Floats:
    """Return mean embeddings of user's and of assistant's turns `[row, 2 × width]`."""
    views = views_of(conversations, embedder, vectors=True)
    parts = [[view.vectors[view.of(party)].mean(axis=0) for party in ("user", "assistant")] for view in views]
    return np.asarray(parts, dtype=np.float64).reshape(len(views), -1)


def _row(found: LabelCandidates, place: int, judge: int) -> Request:
    one, p = found.conversations[place], float(found.probability[place, judge])
    row: Request = {"id": one.id, "probability": p, "entropy": float(entropy(np.array([1 - p, p])))}
    if found.judges:
        row["judge"] = found.judges[judge]
    return row | {"begins": " ".join(one.opening.split())[:80]}


def rows_to_fill_in(rows: Sequence[Request], logs: Logs, reading: ReadOptions) -> list[Request]:
    """Add each conversation's row of the log, under `LOGGED`.

    Field names are those of the log, so that the same options read both: a row that lost its group would be split from
    the others of its user.
    """
    wanted = {row["id"] for row in rows}
    kept = {one.id: one for one in logs if one.id in wanted}
    return [row | {LOGGED: as_logged(kept[row["id"]], row, logs.label_field, reading)} for row in rows]


def as_logged(one: Conversation, row: Request, label_field: str, reading: ReadOptions) -> Request:
    """Return a conversation as a row of a log, with predictions and an empty thumb."""
    said = {name: row[name] for name in ("probability", "entropy", DRAWN) if name in row}
    found = one.metadata | {reading.id_field or "id": one.id} | said
    if one.group is not None:
        found[reading.group_field or "group"] = one.group
    if "judge" in row:
        found[reading.judge_field or "judge"] = row["judge"]
    return found | {reading.messages_field or "messages": messages_of(one), label_field or "thumbs": None}


@dataclass(frozen=True, kw_only=True, repr=False)
class DrawnConversations(Shown):
    """Conversations drawn at random, to estimate a share from.

    Attributes:
        groups: Number of conversations drawn by group; empty where none was asked for.
        half_width: Half the 95 % interval that as many labels will give, by group; of all under the empty name.
        share: The share that the width is for: of the labels that there are, else one half, where it is widest.
    """

    rows: tuple[Request, ...]
    population: int
    groups: Mapping[str, int]
    half_width: Mapping[str, float]
    share: float
    out: Path | None
    bad_rows: tuple[BadRow, ...] = ()

    @property
    def headline(self) -> str:
        return f"{len(self.rows)} of {self.population} conversations, drawn at random"

    def records(self) -> Iterable[dict[str, Any]]:
        return self.rows

    def told(self) -> Told:
        """Yield what was drawn, and the interval that the labels will give."""
        number, of = len(self.rows), f"{self.population:,} conversations"
        yield f"{number:,} of {of}, drawn at random: only a random sample speaks for all."
        for name, half in self.half_width.items():
            drawn = f" of {name} ({self.groups[name]} labels)" if name else f" ({number} labels)"
            yield f"The share{drawn} will be known to about ±{half:.3f} (if it is {self.share:.2f})."
        if self.out is None:
            yield from rows_told(self.rows, ("id", "begins"))
        else:
            yield f"Wrote {self.out}. Fill in the thumbs, then: pollex share LOGS --labels {self.out}"

    def as_json(self) -> dict[str, Any]:
        shown = [{name: value for name, value in row.items() if name != LOGGED} for row in self.rows]
        return {"next": shown} | self.of("population", "groups", "half_width", "share")


def draw_for_share(
    logs: Sources | Logs,
    *,
    count: int,
    by: str | None = None,
    seed: int = 0,
    out: Path | None,
    questionnaire: str | None = None,
    reading: ReadOptions,
    progress: Progress,
) -> DrawnConversations:
    """Draw conversations at random to be labeled; with `by` as many of each group.

    Every conversation without a label at random has the same chance, those with a thumb, too: to leave these out would
    make the sample one of people who don't vote.
    """
    from pollex.measures.share import FEWEST, expected_half_width  # SciPy comes with it, and takes half a second
    from pollex.services.labeled_sample import grouped

    questions = sheet_for(questionnaire, out)
    if out is not None:
        require_format(out, *files_of(logs), formats=FORMATS)
    read = logs_from(logs, reading, progress)
    open_ = [c for c in read if not c.not_scorable and not (c.label is not Label.NONE and drawn_of(c) == RANDOM)]
    rng = np.random.default_rng(seed)
    masks = {"": np.ones(len(open_), dtype=bool)} if by is None else grouped(open_, by)
    places = {
        name: rng.permutation(np.flatnonzero(mask))[:count].tolist() for name, mask in masks.items() if mask.any()
    }
    known = [c.label is Label.POSITIVE for c in read if c.label is not Label.NONE]
    share = float(np.mean(known)) if len(known) >= FEWEST else 0.5
    rows = []
    for place in dict.fromkeys(place for chosen in places.values() for place in chosen):
        one = open_[place]
        row: Request = {"id": one.id, "drawn": RANDOM, "begins": " ".join(one.opening.split())[:80]}
        rows.append(row | {LOGGED: as_logged(one, row, read.label_field, reading)})
    if out is not None:
        write_requests(out, rows, questions)
    return DrawnConversations(
        rows=tuple(rows),
        population=len(open_),
        groups={name: len(chosen) for name, chosen in places.items() if name},
        half_width={name: expected_half_width(len(chosen), share, rest=len(open_)) for name, chosen in places.items()},
        share=share,
        out=out,
        bad_rows=read.bad_rows,
    )
