"""What a batch found, for its state: what each node came to, the first results, the worst, and means.

All of it is in the store, whole; a state has the first lines.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pollex.rubrics.answers import Answer, Question, Unanswered

MAX_RESULTS_SHOWN, MAX_WORST_RESULTS_SHOWN = 20, 10
"""Results that the state shows of a batch, and of all."""

MAX_TEXT_CHARACTERS = 160
"""Characters of a text in a result: a state with sixty questions a conversation stays far below 200 kB."""

MAX_REASON_CHARACTERS = 400
"""Characters of why a result is what it is."""

MAX_ANSWERS_SHOWN = 40
"""Answers of one result that the state shows."""

ResultRow = Mapping[str, object]


@dataclass
class Findings:
    """Results of a run, of which a state shows some.

    Attributes:
        shown_ids: Ids of the batch's first items.
        steps: By node, what it came to for these, by id; or a line that says where that stands.
        batch: Results of these, by id.
        ranked: The worst of all, each with its rank: the lowest first.
        sums: By figure, how many items have it, and their sum; those that an earlier session
            settled are not in it.
        is_new: Whether a result came that no state tells yet.
    """

    shown_ids: dict[str, None] = field(default_factory=dict)
    steps: dict[str, dict[str, ResultRow] | str] = field(default_factory=dict)
    batch: dict[str, ResultRow] = field(default_factory=dict)
    ranked: list[tuple[float, str, ResultRow]] = field(default_factory=list)
    sums: dict[str, tuple[int, float]] = field(default_factory=dict)
    is_new: bool = False

    def begin(self, batch: Sequence[str]) -> None:
        """Begin a batch."""
        self.shown_ids = dict.fromkeys(batch[:MAX_RESULTS_SHOWN])
        self.batch = {}
        self.steps = {}

    def note(self, node: str, id_: str, row: Callable[[], ResultRow]) -> None:
        """Note what a node came to for an item; nodes side by side may do so.

        Args:
            row: Makes what the state shows of it, where it does.
        """
        rows = self.steps.setdefault(node, {})
        if id_ in self.shown_ids and isinstance(rows, dict):
            rows[id_] = {"id": id_, **row()}

    def take(
        self,
        id_: str,
        row: Callable[[], ResultRow],
        *,
        rank: float | None = None,
        figures: Mapping[str, float | None] | None = None,
    ) -> None:
        """Take a result, in a node that has no other beside it.

        Args:
            row: Makes what the state shows of it, where it does.
            rank: The lower the worse; None where it is none of the worst.
            figures: What means are told of.
        """
        # sums, from which the state tells means
        self.is_new = True
        for name, value in (figures or {}).items():
            if value is not None:
                n, total = self.sums.get(name, (0, 0.0))
                self.sums[name] = n + 1, total + value

        # only rows that the state shows are made
        among_worst = rank is not None and (
            len(self.ranked) < MAX_WORST_RESULTS_SHOWN or rank < self.ranked[-1][0]
        )
        if id_ not in self.shown_ids and not among_worst:
            return

        # the first of the batch, and the worst of the run
        shown = {"id": id_, **row()}
        if id_ in self.shown_ids:
            self.batch[id_] = shown

        if among_worst and rank is not None:
            others = []
            for finding in self.ranked:
                if finding[1] != id_:
                    others.append(finding)

            self.ranked = sorted([*others, (rank, id_, shown)], key=lambda finding: finding[0])[
                :MAX_WORST_RESULTS_SHOWN
            ]

    def update(self, node: str) -> dict[str, object]:
        """Return what a node adds to the state: what it came to, and results that no state tells yet."""
        update: dict[str, object] = {}
        step = self.steps.get(node)
        if isinstance(step, dict) and step:
            shown_rows = []
            for id_ in self.shown_ids:
                if id_ in step:
                    shown_rows.append(step[id_])

            update["by_node"] = {node: shown_rows}
        elif step:
            update["by_node"] = {node: step}

        if self.is_new:
            self.is_new = False
            update |= self.as_state

        return update

    @property
    def as_state(self) -> dict[str, object]:
        """What the state tells: plain values."""
        means = {}
        for name, (n, total) in self.sums.items():
            means[name] = {"mean": round(total / n, 4), "n": n}

        first = []
        for id_ in self.shown_ids:
            if id_ in self.batch:
                first.append(self.batch[id_])

        return {
            "first": first,
            "worst": [row for _, _, row in self.ranked],
            "so_far": means,
        }


def shorten_text_to_state_line(text: str, longest: int = MAX_TEXT_CHARACTERS) -> str:
    """Return a text as a line that a state can hold."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    return f"{line[: longest - 1]}…"


def shorten_question_texts_by_id(questions: Sequence[Question]) -> dict[str, str]:
    """Return the texts of questions by id: what a state calls by an id."""
    texts: dict[str, str] = {}
    for question in questions[:MAX_ANSWERS_SHOWN]:
        texts[question.id] = shorten_text_to_state_line(question.text)
    return texts


def is_answer_applicable(answer: Answer | Unanswered) -> bool:
    """Tell whether a question was answered, and not put aside because its occasion never came up."""
    return isinstance(answer, Answer) and not answer.never_came_up


def describe_answers_by_question(
    questions: Sequence[Question], answers: Sequence[Answer | Unanswered]
) -> dict[str, str]:
    """Return what was answered to each question, in the words of its options; those that don't apply are left out."""
    by_id = {question.id: question for question in questions}
    words = {}
    for answer in answers:
        if isinstance(answer, Unanswered) or is_answer_applicable(answer):
            words[answer.question_id] = describe_answer(by_id.get(answer.question_id), answer)

    return dict(list(words.items())[:MAX_ANSWERS_SHOWN])


def describe_answer(question: Question | None, answer: Answer | Unanswered) -> str:
    """Return an answer in the words of its option, or why there is none."""
    if isinstance(answer, Unanswered):
        return shorten_text_to_state_line(describe_why_unanswered(answer))
    if question is None or answer.chosen >= len(question.options):
        if answer.never_came_up:
            return answer.word
        return str(answer.chosen)
    return shorten_text_to_state_line(question.options[answer.chosen].text)


def describe_why_unanswered(answer: Unanswered) -> str:
    """Return why there is no answer, in a line."""
    if answer.detail:
        return f"{answer.outcome}: {answer.detail}"
    return str(answer.outcome)


def get_first_failure_or_justification(
    answers: Sequence[Answer | Unanswered], *, texts: bool
) -> str:
    """Return why a question wasn't answered, or else the first justification, where texts are kept.

    Of questions that don't apply nothing is told, where another one was answered.
    """
    failures = []
    for answer in answers:
        if isinstance(answer, Unanswered):
            failures.append(describe_why_unanswered(answer))

    if failures:
        return shorten_text_to_state_line(failures[0], MAX_REASON_CHARACTERS)
    if not texts:
        return ""

    answered = []
    for answer in answers:
        if isinstance(answer, Answer):
            answered.append(answer)

    told = [answer for answer in answered if is_answer_applicable(answer)] or answered
    justifications = []
    for answer in told:
        if answer.justification:
            justifications.append(answer.justification)

    if justifications:
        return shorten_text_to_state_line(justifications[0], MAX_REASON_CHARACTERS)
    return ""
