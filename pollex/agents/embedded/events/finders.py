"""What happens in an exchange, by groups of `patterns.toml`: advice, questions, failures, reports, offers, troubles."""

import re
from collections.abc import Callable, Iterator

from pollex.agents.embedded.events.code import find_code_firings
from pollex.agents.embedded.events.patterns import Exchange, PatternFiring, TextSpan
from pollex.agents.embedded.events.sentences import ConversationMove, Sentence
from pollex.agents.embedded.events.values import (
    ASKED,
    DATE_REGEX,
    PRICE_REGEX,
    TIME_REGEX,
    list_values_asked_for,
    names_time_price_or_number,
)

FEATURE_QUESTION_REGEX = re.compile(
    r"\b(?:does|do|is|are|can|has|have|will|am|if|whether) (?:it|they|this|that|the|there be|i|we|you "
    r"know|he|she|any of)\b"
    r"|\b(?:allow|allowed|offer|serve|accept|include|provide|charge|policy|permitted|available at|have "
    r"(?:a|any|live|free))\b"
)
SEARCH_REQUEST_REGEX = re.compile(
    r"\b(?:find|looking for|search|recommend|suggest|another|other|any (?:other|good)|are there any"
    r"|what about|how about|instead)\b"
)


def asks_about_feature(move: ConversationMove | None) -> bool:
    """Return whether a user asks about a feature or price, without searching for anything."""
    if move is None or "asks" not in move.acts:
        return False

    low = move.acts["asks"].low
    return bool(FEATURE_QUESTION_REGEX.search(low)) and not SEARCH_REQUEST_REGEX.search(low)


def reports_empty_search(move: ConversationMove | None, before: ConversationMove | None) -> bool:
    """Return whether a move reports an empty search."""
    return move is not None and "none_found" in move.acts and not asks_about_feature(before)


def find_search_firings(x: Exchange) -> Iterator[PatternFiring]:
    """Empty searches of one exchange."""
    if not reports_empty_search(x.here, x.user) or x.here.has("fails"):
        return

    act_in_reply = (x.here, "none_found")
    yield x.fire("found_none", act_in_reply)
    # what the reply goes on with after the empty search; without it, the search is a dead end
    way = next(
        (act for act in ("offers_other", "offers", "proposes") if act in x.here.acts),
        "",
    )
    if not way and not x.here.has("asks_back", "confirms") and " but " not in x.here.low:
        yield x.fire("none_dead_end", act_in_reply)
    elif way == "offers_other" and "offers" not in x.here.acts:
        yield x.fire("none_widen", act_in_reply, (x.here, way))

    # the user takes what the reply named in place of what wasn't found
    if way == "offers" and x.after is not None and x.after.has("accepts"):
        yield x.fire(
            "none_taken",
            (x.here, way),
            act_in_reply,
            (x.after, "accepts"),
        )

    # the user's move before the assistant's earlier one: a feature that is lacking isn't a search
    before = x.moves[x.index - 3] if x.index > 2 else None
    if x.earlier is not None and reports_empty_search(x.earlier, before):
        yield x.fire("none_again", act_in_reply, (x.earlier, "none_found"))

    # the user drops the search, and neither asks on nor takes anything
    for act in ("gives_up", "leaves"):
        if (
            x.after is not None
            and act in x.after.acts
            and not x.after.has("requests", "asks", "accepts")
        ):
            yield x.fire("none_left", act_in_reply, (x.after, act))
            return


PATTERN_BY_COMEBACK_ACT = {
    "still_fails": "fix_fails",
    "new_trouble": "fix_new_trouble",
    "rules_out": "fix_ruled_out",
    "knows_already": "fix_known",
}
"""Acts by which a user comes back from advice with trouble, and what each is."""

LIST_ITEM_REGEX = re.compile(r"(?m)^\s*(?:\d+[.)]|[-*•])\s+\S")
CODE_NAME_REGEX = re.compile(
    r"`([^`\n]{3,80})`|\b([A-Za-z]+(?:[._][A-Za-z]\w+)+|[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w+)\b"
)
AGREEMENT_REGEX = re.compile(
    r"^(?:\W*(?:yes|yep|ok|okay|k|oh|ooh|ah|aha|nice|great|perfect|cool|that makes sense|makes sense"
    r"|understood|good|thanks|thank you|excellent|lovely|right)\b)"
)
TROUBLE_WORDS_REGEX = re.compile(
    r"\b(?:still|error|exception|fails?|failed|throws?|crash\w*|but|same|wrong|doesn't|didn't|not|no)\b"
)


def collect_code_names(text: str) -> frozenset[str]:
    """Collect names of code: inline code and words with an inner capital, dot or underscore."""
    return frozenset(a or b for a, b in CODE_NAME_REGEX.findall(text))


def is_advice(move: ConversationMove) -> bool:
    """Return whether a move gives advice: code, instructions, or an explanation with names of code."""
    return move.code or move.has("instructs") or (move.has("explains") and bool(move.names))


def find_advice_firings(x: Exchange) -> Iterator[PatternFiring]:
    """Advice of one exchange."""
    if lists_without_users_names(x):
        yield x.fire_at("general_list", x.here, list_advice_sentences(x.here), 0.85)
    # a report, an offer or a farewell without code is no advice
    if x.here.has("offers", "done", "confirms", "anything_else") and not x.here.code:
        return
    if x.here.has("asks_back") and brings_new_code(x):
        yield x.fire("asks_evidence", (x.here, "asks_back"))
    if is_advice(x.here):
        yield from _find_first_advice(x)
        yield from _find_verdicts_on_advice(x)


def brings_new_code(x: Exchange) -> bool:
    """Return whether the user answers with code or new names, and without objection."""
    if x.user is None or x.after is None or x.after.has("complains", *PATTERN_BY_COMEBACK_ACT):
        return False
    return x.after.code or bool(collect_code_names(x.after.text) - collect_code_names(x.user.text))


def lists_without_users_names(x: Exchange) -> bool:
    """Return whether a reply lists three or more things without using the user's names."""
    if x.user is None or not x.here.sentences or len(LIST_ITEM_REGEX.findall(x.here.text)) < 3:
        return False
    return bool(collect_code_names(x.user.text)) and not find_users_code_name_in_reply(
        x.user, x.here
    )


def _find_first_advice(x: Exchange) -> Iterator[PatternFiring]:
    if x.user is None:
        return

    shared = find_users_code_name_in_reply(x.user, x.here)
    if shared and x.opening and x.here.code:
        name, sentence = shared
        at = sentence.text.find(name)
        yield x.fire_at(
            "own_line",
            x.here,
            [sentence],
            0.85,
            (TextSpan(sentence.turn, sentence.start + at, sentence.start + at + len(name)),),
        )

    if x.here.has("explains") and x.here.code:
        yield x.fire("cause_shown", (x.here, "explains"))


def find_users_code_name_in_reply(
    user: ConversationMove, here: ConversationMove
) -> tuple[str, Sentence] | None:
    """Return a name of the user's own code that the reply uses, with its sentence."""
    user_names = collect_code_names(user.text)
    for sentence in here.sentences:
        # a long name may stand in the user's prose, where it isn't spelled as code
        shared_names = []
        for name in collect_code_names(sentence.text):
            if name in user_names or (len(name) > 5 and name in user.text):
                shared_names.append(name)

        shared = sorted(shared_names)
        if shared:
            return max(shared, key=len), sentence

    return None


def list_advice_sentences(move: ConversationMove) -> list[Sentence]:
    """Return the sentences that give advice; the first sentence if none is marked."""
    return [sentence for sentence in move.sentences if "instructs" in sentence.hits][
        :2
    ] or move.sentences[:1]


def _find_verdicts_on_advice(x: Exchange) -> Iterator[PatternFiring]:
    after = x.after
    if after is None:
        return

    yield from _find_comebacks_with_trouble(x, after)
    # one verdict at most: trouble that the user reports rules out that the advice works
    if after.has("solves_alone"):
        yield x.fire("solved_alone", (after, "solves_alone"))
    elif after.has(*PATTERN_BY_COMEBACK_ACT):
        return
    elif after.has("works_now"):
        yield x.fire("fix_works", (after, "works_now"))
    elif after.has("asks") and is_agreement(after.sentences[0].low):
        yield x.fire("next_problem", (after, "asks"), sure=0.8)


def _find_comebacks_with_trouble(x: Exchange, after: ConversationMove) -> Iterator[PatternFiring]:
    # of several acts, the first in the order of `PATTERN_BY_COMEBACK_ACT` counts
    back = next((act for act in PATTERN_BY_COMEBACK_ACT if act in after.acts), "")
    if back:
        yield x.fire("fix_back", (after, back))
        yield x.fire(PATTERN_BY_COMEBACK_ACT[back], (after, back))

    # the same trouble before and after this advice: it was the second try
    if "still_fails" in after.acts and x.user is not None and x.user.has("still_fails"):
        yield x.fire(
            "fix_fails_again",
            (after, "still_fails"),
            (x.user, "still_fails"),
        )


def is_agreement(low: str) -> bool:
    """Return whether a sentence accepts what was said and reports no trouble."""
    return bool(AGREEMENT_REGEX.search(low)) and not TROUBLE_WORDS_REGEX.search(low)


POLITE_FORMULA_ACTS = frozenset({"anything_else", "says_bye", "proposes", "asks_back"})
QUESTION_OPENING_REGEX = re.compile(
    r"^(?:and|but|so|ok|okay|great|also|well|then)?,? ?(?:what|which|where|when|how|who|does|do (?!you)|is|are|has|have"
    r"|can (?!you|i (?:book|have|get|reserve)))\b.*\?"
)
YES_OPENING_REGEX = re.compile(
    r"^(?:yes|yeah|yep|yup|sure|indeed|of course|absolutely|definitely|certainly)\b"
)
ANSWER_OPENING_REGEX = re.compile(
    r"^(?:yes|yeah|yep|no|nope|not|none|there (?:is|are)|it(?:'s| is)|they|unfortunately|sure|you can)\b"
    r"|n't\b|\b(?:does|unable|information|info)\b"
)
MAX_CONTENT_WORDS_OF_FORMULA = 7
"""Content words of a formula such as "Would you like me to book a room for you?", at most."""
BOUND_BEFORE_VALUE_REGEX = re.compile(
    r"\b(?:after|before|by|around|about|until|till|between|from|past|or|either)\s+(?:\w+\s+)?$"
)
"""What stands before a value that leaves others open: who asks for the exact one asks for something else."""
END_OF_TRIP_REGEX = re.compile(
    r"\b(?:check(?:ing)? in|return|until|till|up to|out|arriv|leav|depart|start|end|from|back)(?=ing|e\b|ed|s\b|\b)"
)
"""Which end of a trip or stay a time or day is of."""
ALREADY_SAID_REGEX = re.compile(r"\b(?:already|just|i (?:said|told|mentioned|asked|wrote)|as i)\b")


def find_question_firings(x: Exchange) -> Iterator[PatternFiring]:
    """Yield firings for questions of both parties in one exchange."""
    if x.user is not None and "asks" in x.user.acts and not x.here.has("takes_back"):
        yield from _find_answers_to_user(x, x.user)
    if x.here.has("asks_back"):
        yield from _find_questions_of_assistant(x)


def _find_answers_to_user(x: Exchange, user: ConversationMove) -> Iterator[PatternFiring]:
    question = (user, "asks")
    marks = (TextSpan.of(user.acts["asks"]),)
    feature = asks_about_feature(user)
    # one case at most: how the reply deals with the question, the clearest case first
    if x.here.has("doesnt_know", "refers") and not x.here.has("offers", "done"):
        yield x.fire(
            "answer_unknown",
            (x.here, "doesnt_know" if x.here.has("doesnt_know") else "refers"),
            question,
        )
    elif feature and x.here.has("says_no"):
        yield from _find_negative_answers(x, question)
    elif feature and x.here.sentences and YES_OPENING_REGEX.search(x.here.sentences[0].low):
        yield x.fire_at("answer_yes", x.here, x.here.sentences[:1], 0.85)
    elif do_all_one_act(x.here.sentences, "asks_back") and not user.has(
        "requests", "accepts", "changes", "asks_other"
    ):
        yield x.fire("question_back", (x.here, "asks_back"), question)
    elif (
        x.here.sentences
        and not any(
            may_answer_question(sentence, user.acts["asks"]) for sentence in x.here.sentences
        )
        and QUESTION_OPENING_REGEX.search(user.acts["asks"].low)
        and not user.has("requests", "changes", "asks_other", "leaves", "accepts")
    ):
        yield x.fire_at(
            "question_passed",
            x.here,
            x.here.sentences,
            0.85,
            marks,
        )

    # values that the question asks for by name, and which of them the reply neither gives nor names
    asking_sentences = []
    for sentence in user.sentences:
        if "asks" in sentence.hits:
            asking_sentences.append(sentence.low)

    asked_values = list_values_asked_for(" ".join(asking_sentences))
    missing = []
    for name, value in asked_values:
        if not value.search(x.here.low) and not mentions_slot(name, x.here.low):
            missing.append(name)

    # the reply acts on the user's consent, and the question beside it is lost
    if (
        missing
        and user.has("accepts")
        and len(missing) == len(asked_values)
        and x.here.has("done", "fails", "unavailable")
    ):
        yield x.fire_at(
            "question_lost",
            x.here,
            x.here.sentences,
            0.9,
            marks,
            put_article_before_slot(missing[0]),
        )
    elif (
        len(asked_values) == 2
        and len(missing) == 1
        and not x.here.has("doesnt_know", "refers", "says_no", "asks_back")
    ):
        yield x.fire_at(
            "answer_half",
            x.here,
            x.here.sentences,
            0.85,
            marks,
            put_article_before_slot(missing[0]),
        )


def may_answer_question(sentence: Sentence, question: Sentence) -> bool:
    """Return whether a sentence of a reply may answer a question: whatever is no polite formula, or speaks of it."""
    if (
        not POLITE_FORMULA_ACTS & sentence.hits.keys()
        or "fails" in sentence.hits
        or ANSWER_OPENING_REGEX.search(sentence.low)
    ):
        return True
    return len(sentence.content) > MAX_CONTENT_WORDS_OF_FORMULA or bool(
        sentence.content & question.content
    )


def names_same_end_of_trip(question: str, answer: str) -> bool:
    """Return whether a question speaks of the same end of a trip or stay as a value that was given."""
    ways_of_question, ways_of_answer = (
        set(END_OF_TRIP_REGEX.findall(low)) for low in (question, answer)
    )
    if ways_of_question:
        return ways_of_question == ways_of_answer
    # a question that names no end may be of the end that was given
    return True


def put_article_before_slot(slot: str) -> str:
    return f"{'an' if slot[0] in 'aeiou' else 'the'} {slot}"


def mentions_slot(slot: str, low: str) -> bool:
    """Return whether a reply names what was asked for, even if its value isn't recognized."""
    return slot.split(maxsplit=1)[0] in low


def _find_negative_answers(
    x: Exchange, question: tuple[ConversationMove, str]
) -> Iterator[PatternFiring]:
    act_in_reply = (x.here, "says_no")
    # another way in the same reply, or a “but”, softens the no
    if (
        x.here.has("offers_other", "offers", "refers")
        or " but " in x.here.low
        or "however" in x.here.low
    ):
        yield x.fire("answer_no_but", act_in_reply, question)
    elif x.here.has("proposes"):
        yield x.fire(
            "answer_no_pushes",
            act_in_reply,
            (x.here, "proposes"),
            question,
        )
    else:
        yield x.fire("answer_no", act_in_reply, question)


def _find_questions_of_assistant(x: Exchange) -> Iterator[PatternFiring]:
    asking = []
    for sentence in x.here.sentences:
        if "asks_back" in sentence.hits:
            asking.append(sentence)

    # the reply asks for a value that the user's last move already gives
    if x.user is not None:
        for name, question, value in ASKED:
            for sentence in asking:
                if (
                    question.search(sentence.low)
                    and (user_value := value.search(x.user.low))
                    # “after five” and “five or six” leave the exact value open
                    and not BOUND_BEFORE_VALUE_REGEX.search(x.user.low[: user_value.start()])
                    and names_same_end_of_trip(sentence.low, x.user.low)
                    and " or " not in x.user.low[user_value.end() : user_value.end() + 5]
                    # after a failure another value is needed, so that asking again is right
                    and not x.here.has("fails", "unavailable", "offers")
                ):
                    marks = locate_match_in_move(x.user, user_value), TextSpan.of(sentence)
                    yield x.fire_at(
                        "ask_given",
                        x.here,
                        [sentence],
                        0.85,
                        marks=marks,
                        detail=name,
                    )

    if x.earlier is not None and (twin := find_repeated_question(asking, x.earlier)):
        yield x.fire_at("ask_again", x.here, [twin], 0.9)
    if len(asking) >= 2:
        yield x.fire_at("ask_many", x.here, asking, 0.9)

    # the user objects that it was said already
    if (
        x.after is not None
        and "complains" in x.after.acts
        and ALREADY_SAID_REGEX.search(x.after.acts["complains"].low)
    ):
        yield x.fire(
            "ask_complaint",
            (x.after, "complains"),
            (x.here, "asks_back"),
        )


def find_repeated_question(asking: list[Sentence], earlier: ConversationMove) -> Sentence | None:
    """Return a question that the assistant already asked in nearly the same words."""
    for sentence in asking:
        for old in earlier.sentences:
            shared = len(sentence.content & old.content)
            if (
                "asks_back" in old.hits
                and shared >= 2
                and shared >= 0.75 * len(sentence.content | old.content)
            ):
                return sentence

    return None


def do_all_one_act(sentences: list[Sentence], act: str) -> bool:
    """Return whether all sentences do one act."""
    return bool(sentences) and all(act in sentence.hits for sentence in sentences)


def locate_match_in_move(move: ConversationMove, match: re.Match[str]) -> TextSpan:
    """Map a match in a move's joined sentences back to its turns."""
    # `ConversationMove.low` joins the sentences by one space each
    offset = 0
    for sentence in move.sentences:
        if match.start() < offset + len(sentence.low) + 1:
            start = sentence.start + match.start() - offset
            return TextSpan(sentence.turn, start, start + len(match.group()))
        offset += len(sentence.low) + 1

    return TextSpan.of(move.sentences[-1])


ALTERNATIVE_WORDS_REGEX = re.compile(
    r"\b(?:another|different|other|instead|later|earlier|shorter|longer|alternative|next|available|closest|nearest)\b"
)
ALTERNATIVE_ACTS = ("offers_other", "offers", "confirms", "proposes", "asks_back")


def find_failing_act(move: ConversationMove | None, before: ConversationMove | None) -> str:
    """Return the act by which a move fails at a request; empty if it doesn't."""
    if move is None:
        return ""
    if "fails" in move.acts:
        return "fails"
    # what isn't available is a failure only where an action was asked for, and none is reported
    if (
        "unavailable" in move.acts
        and "done" not in move.acts
        and before is not None
        and requests_action(before)
    ):
        return "unavailable"

    return ""


def requests_action(move: ConversationMove) -> bool:
    """Return whether a user's move asks for an action rather than information."""
    return move.has("accepts") or (move.has("requests", "changes") and not move.has("asks"))


def find_alternative_act(here: ConversationMove, failed: str) -> str:
    """Return the act by which a failing move offers something else; empty if none."""
    start = here.acts[failed]
    for act in ALTERNATIVE_ACTS:
        sentence = here.acts.get(act)
        if (
            # an alternative stands in the sentence of the failure or behind it
            sentence is None
            or (sentence.turn, sentence.start) < (start.turn, start.start)
            or "anything_else" in sentence.hits
        ):
            continue

        # questions, read-backs and proposals count only where they name another value
        if (
            act in ("offers_other", "offers")
            or ALTERNATIVE_WORDS_REGEX.search(sentence.low)
            or names_time_price_or_number(sentence.low)
        ):
            return act

    return ""


def describe_offer(sentence: Sentence) -> str:
    """Describe what an alternative changes; empty if it names nothing."""
    # the noun behind “another” is used where the sentence names neither a time nor a day
    match = re.search(
        r"\b(?:another|a different|different|other) ((?:price |star )?[a-z]+)\b",
        sentence.low,
    )
    if TIME_REGEX.search(sentence.low) or re.search(
        r"\b(?:another|different|other|later|earlier) (?:time|slot|hour)", sentence.low
    ):
        return "another time"
    if DATE_REGEX.search(sentence.low) or re.search(
        r"\b(?:another|different|other) (?:day|date)", sentence.low
    ):
        return "another day"

    noun = match.group(1) if match else ""
    # words that follow “other” and name no thing
    if noun and noun not in (
        "or",
        "one",
        "for",
        "in",
        "at",
        "to",
        "that",
        "i",
        "you",
        "with",
        "option",
        "options",
        "than",
    ):
        return f"another {noun.removesuffix('s')}"

    return "another option"


def find_failure_firings(x: Exchange) -> Iterator[PatternFiring]:
    """Yield failures and recoveries of one exchange."""
    failed = find_failing_act(x.here, x.user)
    # whether the assistant's move before had failed
    before = find_failing_act(x.earlier, x.moves[x.index - 3] if x.index > 2 else None)
    if failed:
        yield from _find_plain_failure(x, failed, before)
    elif (
        before
        and x.earlier is not None
        and x.user is not None
        and x.here.has("done")
        and not x.user.has("rejects")
    ):
        # who found the way out: the assistant with its alternative, or the user with another try
        by_user = not find_alternative_act(x.earlier, before)
        if by_user and x.user.has("changes", "requests"):
            name = "recovered_by_user"
        else:
            name = "recovered"

        if not by_user or name == "recovered_by_user":
            yield x.fire(name, (x.here, "done"), (x.earlier, before))


def _find_plain_failure(x: Exchange, failed: str, before: str) -> Iterator[PatternFiring]:
    other = find_alternative_act(x.here, failed)
    act_in_reply = (x.here, failed)
    yield x.fire("failed", act_in_reply)

    if other:
        yield from _find_failure_with_alternative(x, failed, other)
    elif not x.here.has("asks_back", "proposes", "offers_other"):
        yield x.fire("fail_no_way", act_in_reply)
        if x.here.has("anything_else"):
            yield x.fire("fail_else", act_in_reply, (x.here, "anything_else"))

    # the user gives up, and neither tries again nor takes anything
    after = x.after
    if after is not None and not after.has("accepts", "changes", "requests", "asks", "asks_other"):
        for act in ("gives_up", "leaves"):
            if act in after.acts:
                yield x.fire("fail_left", act_in_reply, (after, act))
                break

    # the reply named nothing else, and the user comes up with another try
    if after is not None and not other and not after.has("leaves", "gives_up"):
        for act in ("changes", "requests"):
            if act in after.acts and (
                names_time_price_or_number(after.acts[act].low)
                or ALTERNATIVE_WORDS_REGEX.search(after.acts[act].low)
            ):
                yield x.fire("fail_user_retries", (after, act), act_in_reply)
                break

    if before and x.earlier is not None:
        yield x.fire("fail_again", act_in_reply, (x.earlier, before))

    # the user was made to confirm before the first failure, so the check came too late
    if (
        x.earlier is not None
        and x.earlier.has("confirms")
        and not before
        and x.user is not None
        and not x.user.has("changes", "corrects")
    ):
        yield x.fire("fail_confirmed", act_in_reply, (x.earlier, "confirms"))


def _find_failure_with_alternative(x: Exchange, failed: str, other: str) -> Iterator[PatternFiring]:
    sentence = x.here.acts[other]
    act_in_reply = (x.here, failed)
    way = (x.here, other)
    # a value, or a word with a capital in an offer: a name
    named = names_time_price_or_number(sentence.low) or (
        other == "offers" and sentence.text[1:] != sentence.text[1:].lower()
    )
    if not named:
        yield x.fire("fail_open_choice", act_in_reply, way)
        return

    detail = describe_offer(sentence)
    if x.after is None:
        return

    if x.after.has("accepts") and not x.after.has("changes", "rejects"):
        yield x.fire(
            "fail_other_taken",
            act_in_reply,
            way,
            (x.after, "accepts"),
            detail=detail,
        )

    for act in ("rejects", "leaves", "gives_up"):
        if act in x.after.acts and "accepts" not in x.after.acts:
            yield x.fire(
                "fail_other_refused",
                act_in_reply,
                way,
                (x.after, act),
                detail=detail,
            )
            return


REFERENCE_NUMBER_REGEX = re.compile(
    r"\b(?:reference|confirmation|booking|order|tracking) (?:number|code|id|#)|\bref\b"
)


def find_outcome_firings(x: Exchange) -> Iterator[PatternFiring]:
    """Yield reports and read-backs of one exchange."""
    if x.here.has("done") and not x.here.has("fails", "unavailable"):
        yield from _find_reports_of_success(x)
    if x.here.has("confirms") and not x.here.has("fails"):
        yield from _find_read_backs(x)


def _find_reports_of_success(x: Exchange) -> Iterator[PatternFiring]:
    act_in_reply = (x.here, "done")
    yield x.fire("done", act_in_reply)
    # sentences that repeat when it is or what it costs
    telling = []
    for sentence in x.here.sentences:
        if not sentence.asking and (
            TIME_REGEX.search(sentence.low)
            or DATE_REGEX.search(sentence.low)
            or PRICE_REGEX.search(sentence.low)
        ):
            telling.append(sentence)

    # the most that the report tells counts: a reference, a detail, or no figure at all
    if REFERENCE_NUMBER_REGEX.search(x.here.low):
        yield x.fire("done_number", act_in_reply)
    elif telling:
        yield x.fire_at(
            "done_detail",
            x.here,
            [x.here.acts["done"], telling[0]],
            0.9,
        )
    elif not re.search(r"\d", x.here.low):
        yield x.fire("done_bare", act_in_reply)

    if x.user is not None and x.user.has("accepts"):
        yield x.fire("done_yes", act_in_reply, (x.user, "accepts"))
    if x.after is None:
        return

    # an objection counts before a question
    for act in ("corrects", "complains"):
        if act in x.after.acts:
            yield x.fire("done_wrong", (x.after, act), act_in_reply)
            return

    if (
        x.after.has("asks")
        and not x.after.has("requests", "leaves")
        and not REFERENCE_NUMBER_REGEX.search(x.after.low)
    ):
        yield x.fire("done_asked", (x.after, "asks"), act_in_reply)


def _find_read_backs(x: Exchange) -> Iterator[PatternFiring]:
    act_in_reply = (x.here, "confirms")
    if x.earlier is not None and x.earlier.has("confirms") and not x.earlier.has("fails"):
        yield x.fire("confirm_twice", act_in_reply, (x.earlier, "confirms"))
    # a read-back that the user accepts is neither wrong nor changed
    if x.after is None or x.after.has("accepts"):
        return

    if x.after.has("corrects") and names_time_price_or_number(x.after.low):
        yield x.fire("confirm_wrong", (x.after, "corrects"), act_in_reply)
    elif x.after.has("changes"):
        yield x.fire("confirm_changed", (x.after, "changes"), act_in_reply)


COUNTED_OPTIONS_REGEX = re.compile(
    r"\b(?:\d+|several|many|multiple|a lot of|lots of|quite a few|plenty of|a number of|various)\b"
)
PROPER_NAME_REGEX = re.compile(r"(?<=[a-z,;:] )[A-Z][\w']+|[A-Z]{2}\d{2,}")


def find_suggestion_firings(x: Exchange) -> Iterator[PatternFiring]:
    """Yield suggestions and proposals of one exchange."""
    if x.here.has("offers") and not x.here.has("fails", "none_found", "unavailable", "done"):
        yield from _find_offers_of_options(x)
    if x.here.has("asks_back"):
        yield from _find_questions_instead_of_offers(x)
    if x.here.has("proposes") and not x.here.has("fails", "offers_other"):
        yield from _find_proposals(x)

    # the user wants another suggestion, and there is none
    if x.user is not None and "asks_other" in x.user.acts and x.here.has("none_found", "fails"):
        yield x.fire(
            "offer_no_next",
            (x.here, "none_found" if x.here.has("none_found") else "fails"),
            (x.user, "asks_other"),
        )


def _find_offers_of_options(x: Exchange) -> Iterator[PatternFiring]:
    act_in_reply = (x.here, "offers")
    # a number of options without the name of one is no suggestion yet
    counted = COUNTED_OPTIONS_REGEX.search(
        x.here.acts["offers"].low
    ) and not PROPER_NAME_REGEX.search(x.here.text)
    if counted and x.here.has("asks_back", "offers_other"):
        yield x.fire("many_options", act_in_reply)
        return

    # a first reply that names a suggestion at once
    concrete = None
    for sentence in x.here.sentences:
        if "offers" in sentence.hits and PROPER_NAME_REGEX.search(sentence.text):
            concrete = sentence
            break
    if (
        x.opening
        and concrete
        and x.user is not None
        and x.user.has("requests")
        and not x.here.has("asks_back")
    ):
        yield x.fire_at("offer_first", x.here, [concrete], 0.85)

    if x.user is not None and "doesnt_mind" in x.user.acts:
        yield x.fire("picks_for_user", act_in_reply, (x.user, "doesnt_mind"))
    if x.after is None:
        return

    # an objection, or the wish for another, counts before consent and refusal
    for act, name in (
        ("knows_already", "offer_known"),
        ("complains", "offer_against"),
        ("asks_other", "offer_other"),
    ):
        if act in x.after.acts:
            yield x.fire(name, act_in_reply, (x.after, act))
            return

    # beside a proposal or a question, the no may be to that
    if x.after.has("rejects") and not x.here.has(
        "proposes", "confirms", "asks_back", "anything_else", "offers_other"
    ):
        yield x.fire("offer_refused", act_in_reply, (x.after, "rejects"))

    if x.after.has("accepts") and not x.here.has("proposes", "anything_else"):
        yield x.fire("offer_taken", act_in_reply, (x.after, "accepts"))
        if x.user is not None and "asks_other" in x.user.acts:
            yield x.fire(
                "offer_next_taken",
                act_in_reply,
                (x.user, "asks_other"),
                (x.after, "accepts"),
            )


def _find_questions_instead_of_offers(x: Exchange) -> Iterator[PatternFiring]:
    act_in_reply = (x.here, "asks_back")
    if (
        x.opening
        and x.user is not None
        and x.user.has("requests")
        and not x.here.has("offers", "proposes")
    ):
        yield x.fire("ask_first", act_in_reply, (x.user, "requests"))

    if x.after is not None and "doesnt_mind" in x.after.acts:
        yield x.fire("ask_indifferent", act_in_reply, (x.after, "doesnt_mind"))

    if (
        x.user is not None
        and "doesnt_mind" in x.user.acts
        and not x.here.has("offers", "proposes", "offers_other")
    ):
        yield x.fire("asks_on", act_in_reply, (x.user, "doesnt_mind"))


def _find_proposals(x: Exchange) -> Iterator[PatternFiring]:
    act_in_reply = (x.here, "proposes")
    again = (
        x.earlier is not None
        and x.earlier.has("proposes")
        and x.user is not None
        and x.user.has("rejects")
    )
    if (
        again
        and x.earlier is not None
        and x.user is not None
        and not x.user.has("accepts", "requests")
    ):
        # what the two proposals are about: the same verb twice is insisting
        verbs = []
        for move in (x.here, x.earlier):
            verbs.append(move.acts["proposes"].hits["proposes"].detail)

        if verbs[0] == verbs[1]:
            yield x.fire("pushed_again", act_in_reply, (x.user, "rejects"))

    if x.after is None:
        return

    if x.after.has("rejects") and not x.after.has("accepts"):
        yield x.fire("pushed", act_in_reply, (x.after, "rejects"))
    elif x.after.has("accepts"):
        yield x.fire("proposal_taken", act_in_reply, (x.after, "accepts"))
    elif x.after.has("asks") and not x.after.has("requests"):
        yield x.fire("pushed_past_question", act_in_reply, (x.after, "asks"))


COURTESY_ACTS = frozenset({"anything_else", "says_bye", "thanks", "apologizes"})
MIN_TWIN_SENTENCE_LIKENESS = 0.8


USERS_OWN_SLIP_REGEX = re.compile(
    r"\bsorry,? i (?:meant|mean)\b|\bmy (?:mistake|bad|fault|error)\b|\bi (?:mis\w+|forgot)\b"
)
CORRECTION_OF_REPLY_REGEX = re.compile(
    r"\b(?:that(?:'s| is| was)(?: not|n't)|not (?:what|the \w+) i|wrong|incorrect|i (?:said|asked for|told)"
    r"|you (?:said|gave|booked|got|picked))\b"
)


def find_trouble_firings(x: Exchange) -> Iterator[PatternFiring]:
    """Yield troubles of one exchange."""
    if x.here.has("takes_back"):
        yield x.fire("took_back", (x.here, "takes_back"))
    if x.here.has("refuses") and not x.here.has("anything_else", "offers"):
        yield x.fire("refused", (x.here, "refuses"))

    yield from _find_repeated_sentences(x)
    # the user takes leave and wants nothing more, and the reply starts something all the same
    if (
        x.user is not None
        and x.user.has("leaves")
        and not x.user.has("requests", "asks", "changes", "accepts")
    ):
        for act in ("proposes", "asks_back", "offers"):
            if act in x.here.acts and not x.here.has("says_bye", "anything_else", "apologizes"):
                yield x.fire(
                    "went_on",
                    (x.here, act),
                    (x.user, "leaves"),
                    sure=0.85,
                )
                break

    if x.after is not None:
        yield from _find_reactions_of_user(x)


def _find_reactions_of_user(x: Exchange) -> Iterator[PatternFiring]:
    after = x.after
    if after is None:
        return
    if after.has("complains"):
        yield x.fire("complained", (after, "complains"))

    # a no to a read-back, a proposal or an offer is an answer to it
    if (
        after.has("corrects")
        and not x.here.has("confirms", "proposes", "offers")
        and corrects_reply(x.here, after)
    ):
        yield x.fire("contradicted", (after, "corrects"))

    if after.has("gives_up"):
        yield x.fire("given_up", (after, "gives_up"))


def corrects_reply(reply: ConversationMove, after: ConversationMove) -> bool:
    """Return whether a correction is of the reply: a no to its question, or a slip of the user's own, is not."""
    if USERS_OWN_SLIP_REGEX.search(after.low):
        return False
    return not any(sentence.asking for sentence in reply.sentences) or bool(
        CORRECTION_OF_REPLY_REGEX.search(after.low)
    )


def _find_repeated_sentences(x: Exchange) -> Iterator[PatternFiring]:
    # a request or question of the user's that comes back in nearly the same words
    if x.user is not None and x.after is not None:
        for sentence in x.after.sentences:
            if {"requests", "asks"} & sentence.hits.keys() and (
                old := find_twin_sentence(sentence, x.user.sentences)
            ):
                yield x.fire_at(
                    "user_repeats",
                    x.after,
                    [sentence],
                    0.9,
                    marks=(TextSpan.of(sentence), TextSpan.of(old)),
                )
                break

    # courtesy and questions may be alike without repeating anything
    if x.earlier is not None:
        for sentence in x.here.sentences:
            if (
                not COURTESY_ACTS & sentence.hits.keys()
                and not sentence.asking
                and (old := find_twin_sentence(sentence, x.earlier.sentences))
            ):
                yield x.fire_at(
                    "same_reply",
                    x.here,
                    [sentence],
                    0.9,
                    marks=(TextSpan.of(sentence), TextSpan.of(old)),
                )
                break


def find_twin_sentence(sentence: Sentence, others: list[Sentence]) -> Sentence | None:
    """Return a sentence of nearly the same words; None for short ones."""
    if len(sentence.content) < 3:
        return None

    for other in others:
        # shared stems over all stems of both
        if len(sentence.content & other.content) >= MIN_TWIN_SENTENCE_LIKENESS * len(
            sentence.content | other.content
        ):
            return other
    return None


def _find_tool_firings(x: Exchange) -> Iterator[PatternFiring]:
    """Yield what happened with tools in one exchange."""
    if not x.here.tools and not x.here.calls:
        return

    from pollex.agents.embedded.events.tools import (
        find_tool_firings,  # few logs have calls of tools
    )

    yield from find_tool_firings(x)


Finder = Callable[[Exchange], Iterator[PatternFiring]]
FINDERS_BY_GROUP: dict[str, Finder] = {
    "advice": find_advice_firings,
    "answers": find_question_firings,
    "code": find_code_firings,
    "failures": find_failure_firings,
    "outcomes": find_outcome_firings,
    "searches": find_search_firings,
    "suggestions": find_suggestion_firings,
    "tools": _find_tool_firings,
    "troubles": find_trouble_firings,
}
"""What finds the patterns of each group of `patterns.toml`."""
