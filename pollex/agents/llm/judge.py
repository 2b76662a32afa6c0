"""The judge on a model.

LLM-Rubric's elicitation: one question in a call, answered by one letter with log-probabilities.

Source: Hashemi et al. 2024, section 2; 10.18653/v1/2024.acl-long.745.

Attention checks: questions that every attentive reader of the conversation answers correctly.

One goes with each judging call. A judge that fails it didn't read, or followed instructions in the
conversation: its other answers in the call are suspect. The canary takes the side that a planted
instruction would
not: among rubrics of satisfaction, where agreement may have been ordered, it is false; among those
of dissatisfaction it is true.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_uppercase
from typing import Protocol, Self

from pollex.agents.llm.asker import (
    ModelRole,
    PromptAsker,
    make_judge_id,
    make_unanswered_from_outcome,
)
from pollex.agents.llm.parsing import find_named_option
from pollex.agents.llm.sampling import (
    AnswerSheet,
    ask_and_pool_samples,
    make_asker_of_run,
    make_missing_logprobs_error,
    make_point_distribution,
)
from pollex.agents.roles import Judge, make_unanswered_for_all
from pollex.conversations.conversation import Conversation
from pollex.gateway.calls import Call, CompletedReply
from pollex.gateway.logprobs import AnswerTokens
from pollex.gateway.thoughts import remove_thoughts
from pollex.prompts.data_boundary import write_value_as_escaped_json_line
from pollex.prompts.judging import (
    explain_meaning_of_options,
    join_options_in_one_line,
    make_json_schema_of_several_answers,
    prefix_options_with_letters,
    write_lettered_options_one_per_line,
    write_numbered_texts,
    write_options_one_per_line,
    write_options_with_meanings,
)
from pollex.prompts.prompt import load_prompt
from pollex.rubrics.answers import (
    LIKERT_OPTIONS,
    NEVER_CAME_UP_OPTION,
    Answer,
    Question,
    ScaleName,
    Unanswered,
)
from pollex.rubrics.judge_settings import SETTING_NAMES_CHANGING_JUDGE_ANSWERS
from pollex.rubrics.rubric import Rubric

_WORD_REGEX = re.compile(r"[^\W\d_]{2,}")
_MAX_CANARY_WORD_CHARS = 12
_OPENING_CHARS_READ = 300
_WORDS_FOR_FALSE_CANARIES = (
    *(
        "accordion",
        "blizzard",
        "cathedral",
        "dolphin",
        "elevator",
        "fountain",
        "giraffe",
        "harvest",
        "iceberg",
    ),
    *(
        "jasmine",
        "kangaroo",
        "lighthouse",
        "marmalade",
        "nightingale",
        "orchestra",
        "pineapple",
        "quarry",
        "rhubarb",
    ),
    *(
        "saxophone",
        "trampoline",
        "umbrella",
        "volcano",
        "walnut",
        "xylophone",
        "yoghurt",
        "zeppelin",
    ),
)


@dataclass(frozen=True, slots=True)
class CanaryStatement:
    """A statement of known truth.

    Attributes:
        place: Where it stands among the other questions, from 1.
    """

    text: str
    true: bool
    place: int

    def passed(self, chosen: int) -> bool:
        """Return whether the Likert option `chosen` is on the right side.

        That it never came up is right of a word that nobody uses.
        """
        middle = len(LIKERT_OPTIONS) // 2
        agreed = middle < chosen < len(LIKERT_OPTIONS)
        return agreed if self.true else not agreed and chosen != middle


def choose_canary(
    conversation: Conversation,
    questions: Sequence[Question],
    salt: bytes,
) -> CanaryStatement | None:
    """Choose the canary of a call: deterministic, but unpredictable without the salt.

    None where the questions are not answered by agreeing: then no statement can stand among them.
    """
    if any(question.options != LIKERT_OPTIONS for question in questions):
        return None

    # one digest stands for all random draws: the side, the word and the place
    identity = "\x1f".join([conversation.text_hash, *(question.id for question in questions)])
    digest = hmac.digest(salt, identity.encode("utf-8", "replace"), "sha256")
    true = _choose_canary_truth(questions, digest[0])
    all_text = "\n".join(turn.content for turn in conversation.turns).casefold()
    # a true canary takes a word of the first message, a false one a word that no turn has
    if true:
        words = _list_opening_words(conversation)
    else:
        words = [word for word in _WORDS_FOR_FALSE_CANARIES if word not in all_text]

    word = ""
    if words:
        word = words[int.from_bytes(digest[1:9]) % len(words)]

    # It begins as rubrics do, so that a judge can't tell by the form which statement is checked.
    if word:
        text = f'The user uses the word "{word}" in their first message.'
    else:
        text = "The user writes a message."

    return CanaryStatement(
        text,
        # without a word, the statement holds of any conversation
        true or not word,
        1 + int.from_bytes(digest[9:17]) % (len(questions) + 1),
    )


def _choose_canary_truth(questions: Sequence[Question], byte: int) -> bool:
    polarities = set()
    for question in questions:
        polarities.add(question.rubric.polarity if question.rubric else None)

    # rubrics of both sides or of none: the digest decides
    if polarities != {"sat"} and polarities != {"dsat"}:
        return byte % 2 == 1
    return polarities == {"dsat"}


def _list_opening_words(conversation: Conversation) -> list[str]:
    """List words near the beginning of the user's first turn, long ones if possible."""
    opening = next((turn.content for turn in conversation.turns if turn.role == "user"), "")[
        :_OPENING_CHARS_READ
    ]
    words = sorted(
        {match.group()[:_MAX_CANARY_WORD_CHARS] for match in _WORD_REGEX.finditer(opening)}
    )
    # labels of options are left out: in a statement they would look like answers
    labels = {option.text.casefold() for option in LIKERT_OPTIONS}
    words = [word for word in words if word.casefold() not in labels]
    return [word for word in words if len(word) > 4] or words


MIN_ANSWERS_TO_DISTRUST, MANY_ANSWERS = 2, 10
"""Answers that can be alike at all, and rubrics from which on agreeing with all of them is a sign by itself."""
_NEUTRAL_OPTION_INDEX = len(LIKERT_OPTIONS) // 2


def detect_straight_lining(
    questions: Sequence[Question], answers: Sequence[Answer | Unanswered]
) -> str:
    """Return the sign that answers ignore the questions; empty if there is none.

    That answers are alike is no sign by itself: of a short reply a few rubrics are rightly all
    untrue, or all true. It is one beside a canary of the same conversation that was answered wrong;
    its own call was thrown away already, and now the others are. Whoever agrees with many rubrics,
    of satisfaction and dissatisfaction alike or all for one reason, contradicts them, whatever the
    canaries say. That no rubric's occasion came up is never a sign.
    """
    # only answers on the scale of agreement, to rubrics whose occasion came up
    pairs = []
    for question, answer in zip(questions, answers, strict=True):
        if (
            isinstance(answer, Answer)
            and question.options == LIKERT_OPTIONS
            and not answer.never_came_up
        ):
            pairs.append((question, answer))

    # too few, not all alike, or all in the middle: no sign
    options = {answer.chosen for _, answer in pairs}
    if (
        len(pairs) < MIN_ANSWERS_TO_DISTRUST
        or len(options) > 1
        or options == {_NEUTRAL_OPTION_INDEX}
    ):
        return ""

    chosen = options.pop()
    option = LIKERT_OPTIONS[chosen].text
    # a canary in another call about this conversation was answered wrong
    if any(isinstance(answer, Unanswered) and answer.outcome == "suspect" for answer in answers):
        return (
            f"{option} to all {len(pairs)} other rubrics, beside a canary that was answered wrong"
        )
    # few rubrics, or disagreement with all of them, contradict nothing
    if len(pairs) < MANY_ANSWERS or chosen < _NEUTRAL_OPTION_INDEX:
        return ""

    # agreement with both sides contradicts itself
    polarities = []
    for question, _ in pairs:
        if question.rubric:
            polarities.append(question.rubric.polarity)

    if min(polarities.count("sat"), polarities.count("dsat")) >= MIN_ANSWERS_TO_DISTRUST:
        return f"{option} to {len(pairs)} rubrics of satisfaction and dissatisfaction alike"

    reasons = set()
    for _, answer in pairs:
        reasons.add(" ".join(answer.justification.split()))

    if len(reasons) == 1 and reasons != {""}:
        return f"{option} to {len(pairs)} questions, all for the same reason"
    return ""


def replace_answers_by_suspect(
    answers: Sequence[Answer | Unanswered], why: str
) -> list[Answer | Unanswered]:
    """Replace all answers by `suspect` outcomes."""
    distrusted: list[Answer | Unanswered] = []
    for answer in answers:
        distrusted.append(
            Unanswered(
                question_id=answer.question_id, outcome="suspect", detail=why, judge=answer.judge
            )
            if isinstance(answer, Answer)
            else answer
        )
    return distrusted


def sort_questions_by_rubric(questions: Sequence[Question]) -> list[Question]:
    """Return questions in the order of their rubrics' ids; those about no rubric stay as they are.

    Which rubrics share a call must not depend on the order in which they were chosen, or the same
    rubrics in another order would be asked, and paid for, again.
    """
    return sorted(
        questions,
        key=lambda question: question.id if question.rubric else "",
    )


@dataclass
class Elicitation(ABC):
    """A way to ask questions in groups, side by side.

    Attributes:
        tally: What was put right or left out, by cause.
    """

    asker: PromptAsker
    tally: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.prompt = load_prompt(self._prompt)
        self.judge = make_judge_id(self.asker.name, self.prompt)

    async def answers(
        self,
        conversation: Conversation,
        questions: Sequence[Question],
        replicate: int,
    ) -> AnswersOrUnanswered:
        """Answer each question, in the questions' order."""
        groups = self._groups(questions)
        by_group = await asyncio.gather(
            *(self._group(conversation, group, replicate) for group in groups)
        )
        # groups are in another order than the questions, so answers are put back by id
        by_id = {}
        for answers in by_group:
            for answer in answers:
                by_id[answer.question_id] = answer

        return [by_id[question.id] for question in questions]

    @property
    @abstractmethod
    def _prompt(self) -> str: ...

    @abstractmethod
    def _groups(self, questions: Sequence[Question]) -> list[list[Question]]: ...

    @abstractmethod
    async def _group(
        self,
        conversation: Conversation,
        questions: Sequence[Question],
        replicate: int,
    ) -> AnswersOrUnanswered: ...


class IndependentElicitation(Elicitation):
    """Asks each question by itself; a canary once for all questions of a polarity."""

    _prompt = "judge_question"

    def _groups(self, questions: Sequence[Question]) -> list[list[Question]]:
        alike: defaultdict[str, list[Question]] = defaultdict(list)
        for question in questions:
            alike[question.rubric.polarity if question.rubric else ""].append(question)
        return [sort_questions_by_rubric(group) for group in alike.values()]

    async def _group(
        self,
        conversation: Conversation,
        questions: Sequence[Question],
        replicate: int,
    ) -> AnswersOrUnanswered:
        probe = None
        if self.asker.settings.canary:
            probe = choose_canary(conversation, questions, self.asker.salt)

        # What has a rubric is asked as a statement, and so must be what stands among them.
        rubric = None
        if probe:
            rubric = Rubric(id="canary", text=probe.text, polarity="sat")

        # the canary is asked on the scale of the questions that it stands among
        scale: ScaleName
        if any(question.may_never for question in questions):
            scale = "occasion"
        else:
            scale = "likert-domain"

        with_probe = [*questions, Question.about(rubric, scale)] if rubric else questions
        answers = await asyncio.gather(
            *(self._ask(conversation, question, replicate) for question in with_probe)
        )
        # nothing was checked, or nothing was answered: the canary's own answer is left out
        if probe is None or not any(isinstance(answer, Answer) for answer in answers):
            return answers[: len(questions)]

        checked = answers.pop()
        # A canary that was refused or got lost on the way proves nothing.
        proof = isinstance(checked, Answer) or checked.outcome == "unparsable"
        if not proof or (isinstance(checked, Answer) and probe.passed(checked.chosen)):
            return answers

        self.tally["failed canaries"] += 1
        return replace_answers_by_suspect(answers, f"the canary was answered wrong: {probe.text}")

    async def _ask(
        self,
        conversation: Conversation,
        question: Question,
        replicate: int,
    ) -> Answer | Unanswered:
        outcome = await self.asker.ask(self._call(conversation, question, replicate))
        if not isinstance(outcome, CompletedReply):
            return make_unanswered_from_outcome(outcome, self.judge, question.id)

        # what a model thinks before its answer is no part of it
        outcome = replace(outcome, text=remove_thoughts(outcome.text))
        option = _match_letter_or_option(outcome.text, _list_shown_options(question))
        if option is None:
            return Unanswered(
                question_id=question.id,
                outcome="unparsable",
                detail=f"not a letter of an option: {outcome.text.encode('utf-8', 'replace').decode()[:80]!r}",
                judge=self.judge,
            )

        return self._answer(question, option, outcome)

    def _call(
        self,
        conversation: Conversation,
        question: Question,
        replicate: int,
    ) -> Call:
        logprobs = self.asker.capabilities.logprobs
        # with log-probabilities one token, the letter, is all that is needed
        settings = self.asker.sampling(replicate) | ({"max_tokens": 1} if logprobs else {})
        options = _list_shown_options(question)
        evidence = self.asker.evidence(conversation)
        # a question about no rubric is no statement to agree with
        if question.rubric:
            without = evidence.without
        else:
            without = evidence.without | {"statement"}

        return self.asker.call(
            self.prompt,
            evidence.items,
            {
                "item": write_value_as_escaped_json_line(question.text),
                "options": write_lettered_options_one_per_line(options),
                **explain_meaning_of_options(options if question.rubric else ()),
                **({"middle": NEVER_CAME_UP_OPTION} if question.may_never else {}),
            },
            without=without,
            item=conversation.id,
            top_logprobs=logprobs or None,
            **settings,
        )

    def _answer(
        self,
        question: Question,
        option: int,
        outcome: CompletedReply,
    ) -> Answer | Unanswered:
        letters = list(ascii_uppercase[: len(_list_shown_options(question))])
        options = len(question.options)
        # the first token's alternatives give a probability to each letter
        tokens = AnswerTokens.of(outcome.logprobs, outcome.text)
        capital = outcome.text.strip()[:1] in letters
        distribution = None
        if tokens:
            distribution = tokens.distribution(0, letters, folded=not capital)

        # an endpoint may list no alternative that is a letter
        listed = distribution is not None and any(distribution)
        if not listed and self.asker.settings.require == "logprobs":
            return make_missing_logprobs_error(question, self.judge)

        # the option past the question's own says that the occasion never came up
        came_up = option < options
        self.tally["never came up"] += not came_up
        # without log-probabilities all mass lies on the letter that was written
        if distribution and listed:
            probabilities = distribution
        else:
            probabilities = make_point_distribution(option, len(letters))

        return Answer(
            question_id=question.id,
            # the mass of “never came up” is left out, so that the rest may sum to less than 1
            probabilities=probabilities[:options] if came_up else (0.0,) * options,
            chosen=option,
            source="logprobs" if listed else "point",
            judge=self.judge,
        )


def _match_letter_or_option(text: str, options: Sequence[str]) -> int | None:
    """Return the index of the option that is named by its letter, by letter and words, or by its words."""
    answer = _ANSWER_LEAD_REGEX.sub("", text.strip(" *_\n"))
    spellings: list[Sequence[str]] = [
        ascii_uppercase[: len(options)],
        prefix_options_with_letters(options),
        options,
    ]
    named_options = (find_named_option(answer, spelling) for spelling in spellings)
    return next((option for option in named_options if option is not None), None)


_ANSWER_LEAD_REGEX = re.compile(
    r"(?:the )?(?:final |correct )?(?:answer|option)(?: is)?\b[\s:*]*",
    re.IGNORECASE,
)
"""Words before a letter that say nothing."""


def _list_shown_options(question: Question) -> list[str]:
    return [option.text for option in question.options] + [
        NEVER_CAME_UP_OPTION
    ] * question.may_never


class BatchedElicitation(Elicitation):
    """Asks questions in batches of one polarity and one set of options."""

    @property
    def _prompt(self) -> str:
        if self.asker.settings.scale == "occasion":
            return "judge_batch"
        return "judge_batch_paper"

    def _groups(self, questions: Sequence[Question]) -> list[list[Question]]:
        alike: defaultdict[tuple[str, tuple[tuple[str, float], ...]], list[Question]] = defaultdict(
            list
        )
        for question in questions:
            # Tuples of an option's fields are hashed more quickly than the options themselves.
            options = tuple([(option.text, option.value) for option in question.options])
            alike[self._side(question), options].append(question)

        size = self.asker.settings.batch
        # each group is cut in the order of ids, so that the same rubrics share a call again
        batches: list[list[Question]] = []
        for group in map(sort_questions_by_rubric, alike.values()):
            for start in range(0, len(group), size):
                batches.append(group[start : start + size])

        return batches

    def _side(self, question: Question) -> str:
        return question.rubric.polarity if question.rubric else ""

    async def _group(
        self,
        conversation: Conversation,
        questions: Sequence[Question],
        replicate: int,
    ) -> AnswersOrUnanswered:
        """Answer one batch; ask once more for questions that the answer left out."""
        answers, missing = await self._ask(conversation, questions, replicate)
        if not missing:
            return answers

        self.tally["asked again"] += len(missing)
        # Another replicate: where all is missing the call would be the same, and its answer already
        # known.
        again, _ = await self._ask(
            conversation,
            missing,
            replicate + self.asker.settings.samples,
        )
        # second answers fill gaps only: the first ones stay
        second = {answer.question_id: answer for answer in again}
        return [second.get(answer.question_id, answer) for answer in answers]

    async def _ask(
        self,
        conversation: Conversation,
        questions: Sequence[Question],
        replicate: int,
    ) -> tuple[AnswersOrUnanswered, list[Question]]:
        probe = None
        if self.asker.settings.canary:
            probe = choose_canary(conversation, questions, self.asker.salt)

        outcome = await self.asker.ask(
            self._call(
                conversation,
                questions,
                probe,
                replicate,
            )
        )
        # a call that failed has no gaps to ask about again
        if not isinstance(outcome, CompletedReply):
            return [
                make_unanswered_from_outcome(outcome, self.judge, question.id)
                for question in questions
            ], []

        count = len(questions) + (probe is not None)
        sheet = AnswerSheet.of(outcome, self._labels(questions), count)
        self.tally["unknown answers"] += sheet.unknown
        # places of the questions on the sheet: all but the canary's
        places = []
        for place in range(1, count + 1):
            if probe is None or place != probe.place:
                places.append(place)

        pairs = list(zip(questions, places, strict=True))
        require = self.asker.settings.require == "logprobs"
        turns = len(conversation.turns)
        answers = []
        for question, place in pairs:
            answers.append(
                sheet.answer(
                    place,
                    question,
                    self.judge,
                    require_logprobs=require,
                    turns=turns,
                )
            )

        never_came_up = 0
        for answer in answers:
            never_came_up += isinstance(answer, Answer) and answer.never_came_up
        self.tally["never came up"] += never_came_up
        missing = []
        for question, place in pairs:
            if sheet.missing(place):
                missing.append(question)

        # an empty sheet says nothing of the canary
        if probe is None or len(missing) == len(questions):
            why = ""
        else:
            why = self._caught(sheet, probe)

        return replace_answers_by_suspect(answers, why) if why else answers, missing

    def _call(
        self,
        conversation: Conversation,
        questions: Sequence[Question],
        probe: CanaryStatement | None,
        replicate: int,
    ) -> Call:
        texts = [question.text for question in questions]
        # the canary stands among the other statements, without a mark
        if probe:
            texts.insert(probe.place - 1, probe.text)

        # the labels that are listed, and the plain words that the prompt explains
        labels = self._labels(questions)[0]
        spelled = self._labels(questions)[-1]
        evidence = self.asker.evidence(conversation)

        return self.asker.call(
            self.prompt,
            evidence.items,
            {
                "items": write_numbered_texts(texts),
                "options": self._listed(questions[0], labels),
                **explain_meaning_of_options(spelled if questions[0].rubric else ()),
            },
            schema=make_json_schema_of_several_answers(self.prompt.schema, len(texts), labels),
            without=evidence.without,
            item=conversation.id,
            top_logprobs=self.asker.capabilities.logprobs or None,
            **self.asker.sampling(replicate),
        )

    def _labels(self, questions: Sequence[Question]) -> list[list[str]]:
        """Return the spellings of the options, as listed; with log-probabilities first behind letters."""
        texts = [option.text for option in questions[0].options] + [
            NEVER_CAME_UP_OPTION
        ] * questions[0].may_never
        # a letter before each option lets the first token tell them apart
        if self.asker.capabilities.logprobs:
            return [prefix_options_with_letters(texts), texts]
        return [texts]

    def _listed(self, question: Question, labels: Sequence[str]) -> str:
        if self.prompt.name == "judge_batch_paper":
            return join_options_in_one_line(labels)
        if question.may_never:
            return write_options_with_meanings(labels)
        return write_options_one_per_line(labels)

    def _caught(self, sheet: AnswerSheet, probe: CanaryStatement) -> str:
        """Return the wrong answer to the canary; empty if it was right."""
        option = sheet.chosen(probe.place)
        if option is not None and probe.passed(option):
            return ""

        self.tally["failed canaries"] += 1
        answer_in_words = "nothing" if option is None else sheet.spellings[-1][option]
        return f"the canary was answered wrong: {answer_in_words} to {probe.text}"


AnswersOrUnanswered = list[Answer | Unanswered]
ELICITATIONS_BY_NAME: dict[str, type[Elicitation]] = {
    "batched": BatchedElicitation,
    "independent": IndependentElicitation,
}


class AnswerMemory(Protocol):
    """Answers that were paid for in earlier runs."""

    def find(
        self, fingerprint: str, text_hashes: Collection[str]
    ) -> Mapping[str, Mapping[str, Answer | Unanswered]]:
        """Return what a judge answered about texts, by text and by the question's digest.

        Args:
            fingerprint: Of the judge, which covers prompt, model and settings.
        """


class LlmJudge(ModelRole, Judge):
    """Answers questions about conversations, as distributions where the endpoint lets it.

    What the memory has is not asked again, whatever it was asked beside: a call is made for the
    questions that are left.

    Args:
        elicitation: How they are asked; None for what the settings say.
        memory: Answers of earlier runs; None to ask everything anew.

    Raises:
        ModelRefused: Log-probabilities are required, and the endpoint gives none.
    """

    def __init__(
        self,
        asker: PromptAsker,
        elicitation: Elicitation | None = None,
        memory: AnswerMemory | None = None,
    ) -> None:
        self.elicitation = elicitation or ELICITATIONS_BY_NAME[asker.settings.elicitation](asker)
        self.memory = memory
        self.known_answers = 0
        self._remembered: dict[str, Mapping[str, Answer | Unanswered]] = {}
        super().__init__(
            asker,
            [self.elicitation.prompt],
            **asker.settings.facts(SETTING_NAMES_CHANGING_JUDGE_ANSWERS),
        )
        self.replicates = asker.replicates

    @property
    def tally(self) -> Counter[str]:
        """Corrections and omissions so far, by cause."""
        return self.elicitation.tally

    def again(self, replicate: int) -> Self:
        """Return the judge that is asked once more, with another number of the run."""
        return type(self)(make_asker_of_run(self.asker, replicate, self.replicates))

    async def prepare(self, conversations: Sequence[Conversation]) -> None:
        """Recall what is known of the conversations to come, with one query for all of them."""
        text_hashes = [conversation.text_hash for conversation in conversations]
        self._remembered = await self._recall(text_hashes)

    async def judge(
        self, conversation: Conversation, questions: Sequence[Question]
    ) -> AnswersOrUnanswered:
        """Answer each question, in order; make no call for an unscorable conversation."""
        if why := conversation.not_scorable:
            return make_unanswered_for_all(
                questions,
                "not_scorable",
                why,
                self.elicitation.judge,
            )

        # known answers are not asked for again, and go back to their places among the fresh ones
        stored = await self.known_about(conversation)
        left = []
        for question in questions:
            if question.digest not in stored:
                left.append(question)

        self.known_answers += len(questions) - len(left)

        if left:
            fresh_answers = await ask_and_pool_samples(
                left,
                self.replicates,
                lambda r: self._sample(conversation, left, r),
            )
        else:
            fresh_answers = []

        by_id = {answer.question_id: answer for answer in fresh_answers}
        # answers are known by the question's digest; its id may be another one now
        answers_in_order = []
        for question in questions:
            answers_in_order.append(
                stored[question.digest].model_copy(update={"question_id": question.id})
                if question.digest in stored
                else by_id[question.id]
            )

        return answers_in_order

    async def known_about(self, conversation: Conversation) -> Mapping[str, Answer | Unanswered]:
        """Return what is known of a conversation, by the question's digest."""
        text_hash = conversation.text_hash
        if text_hash not in self._remembered:  # nobody prepared for it
            self._remembered |= await self._recall([text_hash])
        return self._remembered[text_hash]

    async def _recall(
        self, text_hashes: Sequence[str]
    ) -> dict[str, Mapping[str, Answer | Unanswered]]:
        # texts without any answer are kept, too: they are not looked up a second time
        nothing: dict[str, Mapping[str, Answer | Unanswered]] = {
            text_hash: {} for text_hash in text_hashes
        }
        if self.memory is None or not text_hashes:
            return nothing

        stored = await asyncio.to_thread(
            self.memory.find,
            self.fingerprint,
            text_hashes,
        )
        return nothing | dict(stored)

    async def _sample(
        self,
        conversation: Conversation,
        questions: Sequence[Question],
        replicate: int,
    ) -> AnswersOrUnanswered:
        answers = await self.elicitation.answers(
            conversation,
            questions,
            replicate,
        )
        # all answers about the conversation are compared, while a canary covers one call
        why = ""
        if self.asker.settings.straight_lining:
            why = detect_straight_lining(questions, answers)
        if not why:
            return answers

        self.tally["straight-lined"] += sum(isinstance(answer, Answer) for answer in answers)
        return replace_answers_by_suspect(answers, why)
