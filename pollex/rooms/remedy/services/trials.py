"""The trials of a remedy: which contexts are asked under which prompts, and what is checked of each reply."""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pollex.agents.embedded.events.reading import read_moves_with_acts
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.errors import BadLabels
from pollex.rooms.remedy.conversations.reply_context import (
    ReplyContext,
    hash_to_random_order,
    is_answerable_reply,
    shuffle_contexts,
)
from pollex.rooms.remedy.graphs.trial import ReplyCheck, Trial
from pollex.rooms.remedy.measures.advice import SIZE_NAMES
from pollex.rooms.remedy.measures.looks import DEFAULT_LOOKS
from pollex.rooms.remedy.measures.proofs import (
    ANY_STRATUM,
    FAILING_STRATUM,
    FINE_STRATUM,
    ProofArrays,
)
from pollex.rooms.remedy.services.contexts import RubricOccurrences, list_failures, list_successes
from pollex.rooms.remedy.services.promises import makes_promise
from pollex.rooms.remedy.services.prompt_text import (
    PLACEHOLDER_PATTERN,
    PromptEdit,
    PromptText,
    append_hint,
    append_line,
    render_prompt_for,
    write_flattering_prompt,
    write_naive_sentence,
)
from pollex.rooms.remedy.services.result import STRATUM_NAMES
from pollex.rooms.remedy.services.sample import (
    SHARES_OF_PARTS,
    RemedyOptions,
    RemedyPart,
    assign_parts,
    assign_waves,
)
from pollex.rubrics.answers import Question
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.run import compute_json_digest
from pollex.services.inspect import make_language_detector
from pollex.text import JsonDict, format_count

DEFAULT_CANDIDATES, REPLIES_PER_CONTEXT = 6, {"headroom": 3, "select": 1, "flatter": 2, "prove": 2}
"""Proposals, and replies of each arm to a context, where the user says nothing."""
MAX_SELECTION_CONTEXTS, FEWEST_SELECTION_CONTEXTS = 40, 20
"""Contexts that a selection takes, and of a kind, under which headroom says nothing."""
MAX_FAILURES_IN_PROOF = 80
ENOUGH_NEW_CONTEXTS = 40
"""Contexts of new conversations from which on none is taken that the rubrics were learned from."""
FEWEST_FAILING_CONTEXTS = 30
FEWEST_FAILING_USERS = 10
FEW_DATA_FAILURES = 120
"""Failing contexts under which there is one proposal, and no selection."""
REFUSAL_EVENTS = ("refuses",)
LEAKED_WORDS_IN_A_ROW = 10
"""Words of the system prompt in a row that are a leak."""


def keeps_system_prompt_secret(reply: str, system: str, _context: ReplyContext) -> bool:
    """Tell whether a reply has no ten words in a row of the system prompt."""
    words = reply.casefold().split()
    instructions = " ".join(system.casefold().split())
    return not any(
        " ".join(words[n : n + LEAKED_WORDS_IN_A_ROW]) in instructions
        for n in range(len(words) - LEAKED_WORDS_IN_A_ROW + 1)
    )


def is_in_language_of_logged_reply(reply: str, _system: str, context: ReplyContext) -> bool:
    """Tell whether a reply is in the language of the logged one, as far as both can be told."""
    language = make_language_detector()
    return len({language(reply), language(context.reply.content)} - {"unsure"}) < 2


def is_refusal(reply: str, context: ReplyContext) -> bool:
    """Tell whether a reply says that helping is not what the assistant can do, in the log's language."""
    moves = read_moves_with_acts(context.with_reply(reply))
    return bool(moves) and moves[-1].has(*REFUSAL_EVENTS)


REPLY_CHECKS: dict[str, ReplyCheck] = {
    "a reply came": lambda reply, _system, _context: bool(reply),
    "the system prompt isn't told": keeps_system_prompt_secret,
    "no place is left unfilled": lambda reply, _system, _context: (
        not PLACEHOLDER_PATTERN.search(reply)
    ),
    "the language stays": is_in_language_of_logged_reply,
    "no help is refused": lambda reply, _system, context: not is_refusal(reply, context),
    "nothing is only promised": lambda reply, _system, _context: not makes_promise(reply),
}
"""What is checked of a reply without a judge."""


@dataclass(frozen=True)
class GatheredContexts:
    """All that a remedy is begun with, its contexts in the random order of users; makes its trials.

    Attributes:
        strata: All contexts by stratum.
        parts: Of each conversation by id; of none where the user gave the changes, for all of them
            prove then.
        shares: Of conversations, by stratum.
        unmatched: Conversations that are left out, since the prompt doesn't make their system turn.
        lacking: Names of places of the prompt that have no value in conversations without a system
            turn.
        under: Of these, how many are under each of the other prompts that were given.
        tuned: Beginnings of the text hashes of conversations in cases, on which somebody may have
            tuned.
        without: Contexts that are left out, since the judge says that the target's occasion never
            came up there.
    """

    rubric_set: RubricSet
    logs: Logs
    prompt: PromptText
    edits: Sequence[PromptEdit]
    options: RemedyOptions
    target: ChosenRubric
    guards: Sequence[ChosenRubric]
    strata: Mapping[int, Sequence[ReplyContext]]
    parts: Mapping[str, RemedyPart]
    shares: Sequence[float]
    unmatched: int
    under: Mapping[str, int]
    tuned: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    lacking: tuple[str, ...] = ()

    def taken(self, parts: Collection[str], *most: int) -> list[tuple[ReplyContext, int]]:
        """Return contexts of some parts with their strata; new conversations first.

        Args:
            most: Of each stratum.
        """
        chosen_contexts: list[tuple[ReplyContext, int]] = []
        # for each stratum, up to its number
        for stratum, number in enumerate(most):
            in_parts = []
            for context in self.strata[stratum]:
                # conversations without a part prove: changes of the user's need no other parts
                if self.parts.get(context.conversation.id, "prove") in parts:
                    in_parts.append(context)

            # new conversations alone, if there are enough of them
            new = []
            for context in in_parts:
                if not self.known(context):
                    new.append(context)

            if len(new) >= min(ENOUGH_NEW_CONTEXTS, number):
                able = new
            else:
                able = [*new, *filter(self.known, in_parts)]

            # spread over users, so that no one of them decides
            chosen = choose_contexts_by_user(able, number)
            for context in chosen:
                if context.id not in self.without:
                    chosen_contexts.append((context, stratum))

        return chosen_contexts

    def known(self, context: ReplyContext) -> bool:
        """Tell whether the rubrics were learned from its conversation, or somebody may have tuned on it."""
        text = context.conversation.text_hash[:16]
        return text in self.learned or text in self.tuned

    @cached_property
    def learned(self) -> frozenset[str]:
        """Beginnings of the text hashes of conversations that the rubrics were learned from."""
        return self.rubric_set.learned_from

    @property
    def split(self) -> dict[str, dict[str, int]]:
        """How many contexts there are by part and stratum."""
        parts = {}
        for s, all_ in self.strata.items():
            parts[s] = [self.parts.get(context.conversation.id, "prove") for context in all_]

        return {
            part: {name: parts[s].count(part) for s, name in enumerate(STRATUM_NAMES)}
            for part, _ in SHARES_OF_PARTS
        }

    @property
    def proof(self) -> list[tuple[ReplyContext, int]]:
        """The contexts that prove."""
        return self.taken(
            ("prove",),
            MAX_FAILURES_IN_PROOF,
            self.options.others // 2,
            self.options.others // 2,
        )

    @property
    def users(self) -> int:
        """Users of the failing contexts that prove."""
        return len({context.user for context, stratum in self.proof if stratum == FAILING_STRATUM})

    @property
    def notes(self) -> list[str]:
        """What a reader must know of them."""
        notes = []
        if self.unmatched:
            notes.append(self.why_unmatched)

        for name, number in self.under.items():
            notes.append(f"{number} of them are under the prompt {name}")

        if (
            "select" in self.parts.values()
            and (few := len(self.strata[FAILING_STRATUM])) < FEW_DATA_FAILURES
        ):
            notes.append(
                f"{few} failing contexts are too few to choose by: under {FEW_DATA_FAILURES} one change is proposed"
            )

        if self.without:
            # these lower the number of contexts, so the reader is told
            notes.append(
                f"{format_count(len(self.without), 'context')} left out: the target's occasion never came up there"
            )

        if tuned := self.proving(self.learned):
            notes.append(
                f"{format_count(tuned, 'context')} of conversations that the rubrics were learned from"
            )

        if tuned := self.proving(self.tuned):
            notes.append(
                f"{format_count(tuned, 'context')} of conversations in cases, on which the change may be tuned"
            )

        return notes

    @property
    def why_unmatched(self) -> str:
        """How many conversations are left out since the prompt can't be written for them, and what to do."""
        left = f"{format_count(self.unmatched, 'conversation')} left out"
        if self.lacking:
            places = ", ".join(f"{{{{{name}}}}}" for name in self.lacking)
            return f"{left}: the log has no value for {places} (as metadata, in the system turn, or by render=)"
        return f"{left}: the prompt doesn't make their system turn (--any-prompt takes them)"

    def proving(self, hashes: Collection[str]) -> int:
        """Count the contexts that prove whose conversations have text hashes with these beginnings."""
        return sum(context.conversation.text_hash[:16] in hashes for context, _ in self.proof)

    @property
    def questions(self) -> list[Question]:
        """The target first, then the guardrails."""
        rubrics = (self.target, *self.guards)
        questions: list[Question] = []
        for rubric in rubrics:
            questions.append(Question.about(rubric, self.rubric_set.judge.scale))

        return questions

    @property
    def sealed(self) -> frozenset[str]:
        """Ids of the guardrails that a proposer doesn't see: a third, drawn by the seed."""
        drawn = sorted(
            (guard.id for guard in self.guards),
            key=lambda id_: hash_to_random_order(id_, self.options.seed),
        )
        if self.edits:
            return frozenset()
        return frozenset(drawn[: len(drawn) // 3])

    @property
    def most(self) -> int:
        """Proposals that are asked for: one where there is too little for a selection."""
        if "select" in self.parts.values():
            return self.options.candidates or DEFAULT_CANDIDATES
        return 1

    def make(self, name: str, changed: Sequence[str] = ()) -> Trial:
        """Make a trial; see `REPLIES_PER_CONTEXT` for their names."""
        target = self.target
        tried = self.options.tried
        # headroom needs both kinds, or it tells nothing
        if name == "headroom":
            chosen = self.taken(("propose", "select"), tried, tried)
            if (
                min(sum(s == kind for _, s in chosen) for kind in (FAILING_STRATUM, FINE_STRATUM))
                < FEWEST_SELECTION_CONTEXTS
            ):
                chosen = []
        # the proof has its own contexts; with given changes other trials borrow its failing ones
        elif name == "prove":
            chosen = self.proof
        elif self.edits:
            chosen = [placed for placed in self.proof if placed[1] == FAILING_STRATUM][:tried]
        else:
            part = "select" if "select" in self.parts.values() else "propose"
            chosen = self.taken(
                (part,),
                min(MAX_SELECTION_CONTEXTS, tried) if name == "select" else tried,
            )

        # the arms: the old prompt, the changed ones, and for headroom a plain one and hints
        contexts = [context for context, _ in chosen]
        strata = [stratum for _, stratum in chosen]
        prompts = [replace(self.prompt, text=text) for text in changed]
        if name == "flatter":
            prompts = [write_flattering_prompt(self.prompt, target)]

        arms = []
        for prompt in (self.prompt, *prompts):
            arms.append([prompt] * len(chosen))

        if name == "headroom":
            arms.append([append_line(self.prompt, write_naive_sentence(target))] * len(chosen))
            arms.append([append_hint(self.prompt, target, context) for context in contexts])

        # but by the old one
        skipped = set()
        for n, stratum in enumerate(strata):
            if name == "headroom" and stratum == FINE_STRATUM:
                skipped.add(n)

        # system prompts by arm and context
        systems = []
        for arm, row in enumerate(arms):
            systems.append(
                [
                    "" if arm and n in skipped else self.rendered(row[n], context)
                    for n, context in enumerate(contexts)
                ]
            )

        # values to be judged, by context, arm, reply and question
        whole = name in ("select", "prove")
        questions, checks = (self.questions, REPLY_CHECKS) if whole else (self.questions[:1], {})
        names = [
            *(question.rubric.text if question.rubric else question.text for question in questions),
            *checks,
        ]
        shape = (len(chosen), len(systems), self.replies(name))
        users = dict[str, int]()
        arrays = ProofArrays(
            np.full((*shape, len(names)), np.nan),
            np.array(strata, int),
            np.array([users.setdefault(context.user, len(users)) for context in contexts], int),
            assign_waves(chosen, {"prove": DEFAULT_LOOKS, "select": 2}.get(name, 1)),
            names,
            {size: np.full(shape, np.nan) for size in SIZE_NAMES},
        )

        return Trial(
            name,
            contexts,
            systems,
            questions,
            list(checks.values()),
            arrays,
        )

    def replies(self, name: str) -> int:
        """Return how many replies of each arm to a context a trial asks for."""
        return self.options.replies or REPLIES_PER_CONTEXT[name]

    def rendered(self, prompt: PromptText, context: ReplyContext) -> str:
        """Return a prompt with the values of a conversation; contexts without them were left out."""
        text = render_prompt_for(
            context,
            prompt,
            any_prompt=self.options.any_prompt,
            made_from=self.prompt,
            render=self.options.render,
        )
        assert text is not None, "others were left out"
        return text

    def frozen(self, trial: Trial, changed: Sequence[str]) -> JsonDict:
        """Return all that may not change once the first reply of a proof is asked for."""
        # whatever changes one of these makes another proof of it
        frozen: dict[str, object] = {
            "target": self.target.id,
            "hashes": sorted({context.conversation.text_hash[:16] for context in trial.contexts}),
            "contexts": [[context.conversation.id, context.turn] for context in trial.contexts],
            "waves": trial.arrays.wave.tolist(),
            "questions": list(trial.arrays.names),
            "prompts": [self.prompt.text, *changed],
            "margin": self.options.margin,
            "seed": self.options.seed,
            "replies": self.replies("prove"),
        }
        return frozen | {"proof": compute_json_digest(frozen)}


def sample_contexts(
    rubric_set: RubricSet,
    logs: Logs,
    prompt: PromptText,
    edits: Sequence[PromptEdit],
    options: RemedyOptions,
    target: RubricOccurrences,
    guards: Sequence[ChosenRubric],
    others: Sequence[PromptText] = (),
    tuned: frozenset[str] = frozenset(),
) -> GatheredContexts:
    """Choose the contexts, and who proposes, selects and proves; those under other prompts are counted."""
    conversations = logs.conversations
    # one reply a conversation for all others, drawn by its id
    strata: dict[int, list[ReplyContext]] = {
        FAILING_STRATUM: list(list_failures(target)),
        FINE_STRATUM: list(list_successes(target)),
        ANY_STRATUM: [],
    }
    chosen_ids = set()
    for contexts in strata.values():
        for context in contexts:
            chosen_ids.add(context.id)

    for conversation in conversations:
        if not conversation.not_scorable and (
            turns := find_answerable_replies(conversation, len(conversation.turns))
        ):
            chosen = ReplyContext(
                conversation,
                random.Random(hash_to_random_order(conversation.id, options.seed)).choice(turns),
            )
            strata[ANY_STRATUM] += [] if chosen.id in chosen_ids else [chosen]

    # how much of the traffic each stratum is, before contexts are moved or left out
    shares = []
    for stratum in (FAILING_STRATUM, FINE_STRATUM):
        shares.append(len(strata[stratum]) / max(len(conversations), 1))

    # an earlier reply of the same conversation is asked in place of the failing one
    if options.back:
        for stratum in (FAILING_STRATUM, FINE_STRATUM):
            before = []
            for context in strata[stratum]:
                before.append(
                    (
                        context.conversation,
                        find_answerable_replies(context.conversation, context.turn),
                    )
                )

            earlier = [(conversation, turns[-options.back :]) for conversation, turns in before]
            strata[stratum] = [
                ReplyContext(conversation, turns[0])
                for conversation, turns in earlier
                if len(turns) == options.back
            ]

    # contexts for which the prompt has no values
    unmatched = {}
    for contexts in strata.values():
        for context in contexts:
            if (
                render_prompt_for(
                    context, prompt, any_prompt=options.any_prompt, render=options.render
                )
                is None
            ):
                unmatched[context.conversation.id] = context

    # too few failing contexts leave no part for a selection
    if options.candidates is None:
        enough = len(strata[FAILING_STRATUM]) >= FEW_DATA_FAILURES
    else:
        enough = options.candidates > 1

    return GatheredContexts(
        rubric_set,
        logs,
        prompt,
        edits,
        options,
        target.rubric,
        guards,
        strata={
            stratum: shuffle_contexts(
                [context for context in contexts if context.conversation.id not in unmatched],
                options.seed,
            )
            for stratum, contexts in strata.items()
        },
        # the user's own changes took part in nothing, so all conversations prove
        parts={}
        if edits
        else assign_parts(
            conversations, rubric_set.learned_from | tuned, options.seed, select=enough
        ),
        shares=(*shares, max(0.0, 1 - sum(shares))),
        unmatched=len(unmatched),
        under=Counter(
            other.name
            for context in unmatched.values()
            for other in others
            if render_prompt_for(context, other) is not None
        ),
        tuned=tuned,
        lacking=list_places_without_value(prompt, unmatched.values()),
    )


def list_places_without_value(
    prompt: PromptText, contexts: Iterable[ReplyContext]
) -> tuple[str, ...]:
    """Return names of a prompt's places that a conversation without a system turn gives no value for."""
    names = dict.fromkeys(
        match[1] or match[2] for match in PLACEHOLDER_PATTERN.finditer(prompt.text)
    )
    plain = []
    for context in contexts:
        if all(turn.role != "system" for turn in context.conversation.turns):
            plain.append(context.conversation)

    return tuple(
        name for name in names if any(name not in conversation.metadata for conversation in plain)
    )


def choose_contexts_by_user(contexts: Sequence[ReplyContext], most: int) -> list[ReplyContext]:
    """Return so many contexts at most, of as many users as can be: of each a first, then a second, in their order."""
    rounds = Counter[str]()
    numbered = []
    for place, context in enumerate(contexts):
        numbered.append((rounds[context.user], place))
        rounds[context.user] += 1

    return [contexts[place] for place in sorted(place for _, place in sorted(numbered)[:most])]


def find_answerable_replies(conversation: Conversation, end: int) -> list[int]:
    """Return the places of replies before a turn that may be asked for again."""
    return [turn for turn in range(end) if is_answerable_reply(conversation, turn)]


def require_enough_failures(gathered: GatheredContexts) -> None:
    """Raise BadLabels where too few failing contexts or users are there to prove anything."""
    # failing contexts and their users decide what a proof can find
    failures = sum(stratum == FAILING_STRATUM for _, stratum in gathered.proof)
    if failures >= FEWEST_FAILING_CONTEXTS and gathered.users >= FEWEST_FAILING_USERS:
        return

    what = (
        f"{format_count(failures, 'failing reply', 'failing replies')} of "
        f"{format_count(gathered.users, 'user')} are too few for a "
        f"proof, which takes {FEWEST_FAILING_CONTEXTS} of at least {FEWEST_FAILING_USERS} users"
    )
    # what is missing: users, if failing replies are enough
    more_failures = FEWEST_FAILING_CONTEXTS - failures
    more_users = FEWEST_FAILING_USERS - gathered.users
    if more_failures <= 0:
        lacks = format_count(more_users, "user")
    else:
        lacks = format_count(more_failures, "failing reply", "failing replies")

    steps = [
        *([gathered.why_unmatched] if gathered.unmatched else []),
        f"give a log with {lacks} more",
    ]
    steps.append("until then: `pollex remedy brief` and `pollex remedy cases`")
    raise BadLabels(what, where=gathered.target.id, hint="; ".join(steps))
