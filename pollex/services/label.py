"""Choose what to label next: conversations by a rubric set, or texts and whom to ask by a custom calibrator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.view import make_conversation_views
from pollex.calibration.active_learning import (
    choose_texts_to_label_next,
    make_vectors_for_choosing_labels,
)
from pollex.conversations.conversation import (
    DRAW_METHOD_FIELD,
    Conversation,
    Label,
    format_openai_messages,
)
from pollex.conversations.logs import BadRow, Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.label_files import (
    LABEL_FILE_ENDINGS,
    LOGGED_CONVERSATION_ROW_KEY,
    RANDOM_DRAW_METHOD,
    LabelRequestRow,
    get_draw_method,
    load_sheet_questions,
    require_label_file_not_filled_in,
    write_label_requests,
)
from pollex.formats.write import require_known_ending
from pollex.graphs.context import Progress
from pollex.measures.arrays import Floats
from pollex.measures.distributions import compute_entropy_of_distributions
from pollex.rubrics.answers import Answer
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score, list_requested_judges
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.roles import get_embedding_model_name, make_embedder
from pollex.runs.usage import ModelUsage, render_usage_by_stage
from pollex.runs.workspace import open_workspace
from pollex.services.dry_run import DryRunEnded, plan_scoring_calls
from pollex.services.logs import Sources, list_file_names, list_source_names, logs_from
from pollex.services.results import (
    TabularResult,
    format_outcomes,
    make_calibration_support_json,
    tabulate_rows,
)
from pollex.services.score import read_unedited, score_in_run
from pollex.text import JsonDict, TerminalLines, format_count

if TYPE_CHECKING:
    # scikit-learn comes with it, and takes a second to import
    pass


@dataclass(frozen=True, kw_only=True, repr=False)
class NextConversations(TabularResult):
    """The conversations to label next.

    Attributes:
        rows: A row each: id, probability, entropy, how it begins and, where annotators were named,
            whom to ask.
        unlabelled: Conversations without a label.
    """

    fine = ("scored",)

    run: str
    rubrics: RubricSet
    rows: tuple[LabelRequestRow, ...]
    unlabelled: int
    out: Path | None
    outcomes: dict[str, int]
    bad_rows: tuple[BadRow, ...] = ()
    usage: ModelUsage | None = None

    @property
    def headline(self) -> str:
        return f"{len(self.rows)} of {self.unlabelled} without a label"

    def records(self) -> tuple[LabelRequestRow, ...]:
        return self.rows

    def told(self) -> TerminalLines:
        """Yield the conversations to label next."""
        yield from tabulate_rows(self.rows, ("id", "probability", "entropy", "judge", "begins"))
        of = format_count(self.unlabelled, "conversation")
        listed = f"{len(self.rows)} of {of} without a label, those whose labels help most first"
        yield listed if self.unlabelled else "Every conversation has a label already."
        yield format_outcomes(self.outcomes)
        yield from render_usage_by_stage(self.usage)
        yield f"Probabilities: {self.rubrics.support}"
        if self.out is not None:
            yield f"Wrote {self.out}"

    def as_json(self) -> JsonDict:
        about = ("next=rows", "run", "judge=rubrics.judge.name", "outcomes")
        return self.of(*about) | make_calibration_support_json(self.rubrics) | self.of("usage")


def choose_next_conversations(
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
    rubric_set = read_unedited(rubrics, run.store)
    questions = load_sheet_questions(questionnaire, out)
    if out is not None:
        require_known_ending(out, *list_file_names(rubrics, logs), formats=LABEL_FILE_ENDINGS)

    # to rebuild the model takes a second
    if judges:
        judges_needed = list_requested_judges(rubric_set.thumb_model, judges)
    else:
        judges_needed = ()

    read = logs_from(logs, reading, progress)
    require_label_file_not_filled_in(out, read.label_field)
    free = rubric_set.judge.built_in  # labeled ones are scored, too, if that costs nothing
    unlabeled = tuple(c for c in read.conversations if free or c.label is Label.NONE)
    unlabeled_logs = Logs(conversations=unlabeled, fingerprint=read.fingerprint)
    if run.dry_run:
        raise DryRunEnded(
            plan_scoring_calls(
                unlabeled_logs.conversations,
                rubric_set,
                run,
                model,
            )
        )

    with open_workspace(run, progress, read) as opened:
        arguments = {"logs": list_source_names(logs), "rubrics": list_source_names(rubrics)[0]}
        scores = list[Score]()
        scored, usage = score_in_run(
            opened,
            unlabeled_logs,
            rubric_set,
            model,
            arguments,
            "label",
            scores.extend,
            judges_needed,
        )
        # likeness of conversations is by the set's embedding model, once the user confirmed it
        embedder = make_embedder(
            opened.store.folder,
            get_embedding_model_name(rubric_set.judge, model.settings.embedding_model),
        )
        embedder.watch(opened.progress)
        rows = pick_rows(
            unlabeled_logs.conversations,
            scores,
            judges_needed,
            embedder,
            count,
        )

    # each row has its conversation as the log does, so that the labeled file can be read like it
    if out is not None:
        by_id = {conversation.id: conversation for conversation in read}
        logged = []
        for row in rows:
            logged.append(
                row
                | {
                    LOGGED_CONVERSATION_ROW_KEY: make_log_row(
                        by_id[row["id"]], row, read.label_field, reading
                    )
                }
            )

        write_label_requests(out, logged, questions, by_id)

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


def pick_rows(
    read: Sequence[Conversation],
    scores: Sequence[Score],
    judges: Sequence[str],
    embedder: Embedder,
    count: int,
) -> list[LabelRequestRow]:
    """Return the conversations to label next, a row for each; those with a label are known."""
    # without a probability nothing is known about what a label would tell
    both = []
    for c, s in zip(read, scores, strict=True):
        if s.probability is not None:
            both.append((c, s))

    if not both:
        return []

    # `[conversation, judge]`; one column where judges are not told apart
    p = np.array(
        [[s.judges[judge] for judge in judges] if judges else [s.probability] for _, s in both],
        np.float64,
    )
    # a label is known of its annotator alone, or of anybody where nobody is named
    labelled = np.array([[c.label is not Label.NONE] for c, _ in both], dtype=bool)
    who = np.array([[c.judge] for c, _ in both], dtype=object)
    if judges:
        is_known = labelled & np.asarray(who == np.array(judges, dtype=object), dtype=bool)
    else:
        is_known = labelled

    # likeness is by answers to rubrics and by embeddings
    answers = []
    for _, s in both:
        answers.append([a.expected() for a in s.answers if isinstance(a, Answer)])

    vectors = make_vectors_for_choosing_labels(
        np.array(answers),
        embed_sides([c for c, _ in both], embedder),
    )
    # the variance of a thumb is its doubt; a conversation with any label is not asked about again
    picked = choose_texts_to_label_next(
        vectors,
        p * (1 - p),
        is_known,
        count,
        askable=np.broadcast_to(~labelled, p.shape),
    )
    rows = []
    for place, judge in zip(picked.row.tolist(), picked.judge.tolist(), strict=True):
        conversation = both[place][0]
        up = float(p[place, judge])
        row: LabelRequestRow = {
            "id": conversation.id,
            "probability": up,
            "entropy": float(compute_entropy_of_distributions(np.array([1 - up, up]))),
        }
        judge_field = {"judge": judges[judge]} if judges else {}
        rows.append(row | judge_field | {"begins": " ".join(conversation.opening.split())[:80]})

    return rows


def embed_sides(conversations: Sequence[Conversation], embedder: Embedder) -> Floats:
    """Return mean embeddings of user's and of assistant's turns `[row, 2 × width]`."""
    views = make_conversation_views(conversations, embedder, vectors=True)
    parts = []
    for view in views:
        parts.append([view.vectors[view.of(party)].mean(axis=0) for party in ("user", "assistant")])

    return np.asarray(parts, dtype=np.float64).reshape(len(views), -1)


def make_log_row(
    conversation: Conversation,
    row: LabelRequestRow,
    label_field: str,
    reading: ReadOptions,
) -> LabelRequestRow:
    """Return a conversation as a row of a log, with predictions and an empty thumb.

    Field names are those of the log, so that the same options read both: a row that lost its group
    would be split from the others of its user.
    """
    # predictions are noted beside the conversation, as far as the row has them
    noted = {}
    for name in ("probability", "entropy", DRAW_METHOD_FIELD):
        if name in row:
            noted[name] = row[name]

    metadata = conversation.metadata | {reading.id_field or "id": conversation.id} | noted
    if conversation.group is not None:
        metadata[reading.named_group or "group"] = conversation.group
    if "judge" in row:
        metadata[reading.judge_field or "judge"] = row["judge"]

    # the thumb is left empty, for a person to fill in
    return metadata | {
        reading.messages_field or "messages": format_openai_messages(conversation),
        label_field or "thumbs": None,
    }


@dataclass(frozen=True, kw_only=True, repr=False)
class DrawnConversations(TabularResult):
    """Conversations drawn at random, to estimate a share from.

    Attributes:
        groups: Number of conversations drawn by group; empty where none was asked for.
        half_width: Half the 95 % interval that as many labels will give, by group; of all under the
            empty name.
        share: The share that the width is for: of the labels that there are, else one half, where
            it is widest.
        sheet: Whether the file is a sheet with the questions of a questionnaire.
        purpose: What the labels are for: a share, or the first model.
    """

    rows: tuple[LabelRequestRow, ...]
    population: int
    groups: Mapping[str, int]
    half_width: Mapping[str, float]
    share: float
    out: Path | None
    sheet: bool = False
    purpose: str = "share"
    bad_rows: tuple[BadRow, ...] = ()

    @property
    def headline(self) -> str:
        return f"{len(self.rows)} of {self.population} conversations, drawn at random"

    def records(self) -> Iterable[dict[str, object]]:
        return self.rows

    def told(self) -> TerminalLines:
        """Yield what was drawn, and the interval that the labels will give."""
        number = len(self.rows)
        of = f"{self.population:,} conversations"
        yield f"{number:,} of {of}, drawn at random: only a random sample speaks for all."

        # widths are of shares only; the empty name stands for all conversations
        for name, half in self.half_width.items() if self.purpose == "share" else ():
            if name:
                drawn = f" of {name} ({self.groups[name]} labels)"
            else:
                drawn = f" ({number} labels)"

            yield f"The share{drawn} will be known to about ±{half:.3f} (if it is {self.share:.2f})."

        if self.out is None:
            yield from tabulate_rows(self.rows, ("id", "begins"))
        elif self.sheet:
            yield f"Wrote {self.out}. Fill in the answers, then: pollex calibrate fit ANSWERS {self.out} --out DIR"
        else:
            then = f"pollex share LOGS --labels {self.out}"
            # the last row of an id wins, so that labels replace the rows without one
            if self.purpose == "model":
                then = f"pollex learn LOGS {self.out} --set on_duplicate=last"
            yield f"Wrote {self.out}. Fill in the thumbs, then: {then}"

    def as_json(self) -> JsonDict:
        # the conversation as the log has it is for the file alone
        shown = []
        for row in self.rows:
            shown_row = {}
            for name, value in row.items():
                if name != LOGGED_CONVERSATION_ROW_KEY:
                    shown_row[name] = value
            shown.append(shown_row)
        return {"next": shown} | self.of("population", "groups", "half_width", "share")


def draw_for_share(
    logs: Sources | Logs,
    *,
    count: int,
    by: str | None = None,
    purpose: str = "share",
    seed: int = 0,
    out: Path | None,
    questionnaire: str | None = None,
    reading: ReadOptions,
    progress: Progress,
) -> DrawnConversations:
    """Draw conversations at random to be labeled; with `by` as many of each group.

    Every conversation without a label at random has the same chance, those with a thumb, too: to
    leave these out would make the sample one of people who don't vote.
    """
    # SciPy comes with it, and takes half a second
    from pollex.measures.share import (
        MIN_LABELS_FOR_SHARE_ESTIMATE,
        compute_interval_half_width_of_random_labels,
    )
    from pollex.services.share import group_conversations

    questions = load_sheet_questions(questionnaire, out)
    if out is not None:
        require_known_ending(out, *list_file_names(logs), formats=LABEL_FILE_ENDINGS)

    read = logs_from(logs, reading, progress)
    require_label_file_not_filled_in(out, read.label_field)
    # left out: what can't be scored, and what was drawn at random and labeled before
    open_ = []
    for c in read:
        if not c.not_scorable and not (
            c.label is not Label.NONE and get_draw_method(c) == RANDOM_DRAW_METHOD
        ):
            open_.append(c)

    # a first model needs labels that aren't there yet
    if purpose == "model":
        open_ = [c for c in open_ if c.label is Label.NONE]

    rng = np.random.default_rng(seed)
    if by is None:
        masks = {"": np.ones(len(open_), dtype=bool)}
    else:
        masks = group_conversations(open_, by)

    # as many from each group, or all that it has
    places = {}
    for name, mask in masks.items():
        if mask.any():
            places[name] = rng.permutation(np.flatnonzero(mask))[:count].tolist()

    # the width depends on the share itself: any labels give a first idea of it
    positive = []
    for c in read:
        if c.label is not Label.NONE:
            positive.append(c.label is Label.POSITIVE)

    if len(positive) >= MIN_LABELS_FOR_SHARE_ESTIMATE:
        share = float(np.mean(positive))
    else:
        share = 0.5

    # segments may overlap: a conversation that two groups drew is listed once
    rows = []
    chosen_places = []
    for chosen in places.values():
        chosen_places.extend(chosen)
    for place in dict.fromkeys(chosen_places):
        conversation = open_[place]
        row: LabelRequestRow = {
            "id": conversation.id,
            "drawn": RANDOM_DRAW_METHOD,
            "begins": " ".join(conversation.opening.split())[:80],
        }
        rows.append(
            row
            | {
                LOGGED_CONVERSATION_ROW_KEY: make_log_row(
                    conversation, row, read.label_field, reading
                )
            }
        )

    if out is not None:
        write_label_requests(
            out,
            rows,
            questions,
            {conversation.id: conversation for conversation in open_},
        )

    half_widths = {}
    for name, chosen in places.items():
        half_widths[name] = compute_interval_half_width_of_random_labels(len(chosen), share)
    return DrawnConversations(
        rows=tuple(rows),
        population=len(open_),
        groups={name: len(chosen) for name, chosen in places.items() if name},
        half_width=half_widths,
        share=share,
        out=out,
        sheet=bool(questions),
        purpose=purpose,
        bad_rows=read.bad_rows,
    )
