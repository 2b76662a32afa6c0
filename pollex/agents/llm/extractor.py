"""The extractor on a model."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pollex.agents.checks import (
    collapse_white_space,
    copies_words_from_sources,
    list_words_of_conversation,
    locate_quote_in_conversation,
    split_words,
)
from pollex.agents.llm.asker import (
    PROMPT_WORDS_BY_POLARITY,
    ModelRole,
    PromptAsker,
    load_prompts_by_polarity,
    name_prompt_version,
)
from pollex.agents.llm.evidence import (
    make_prompt_items_of_turns,
    make_prompt_items_of_user_feedback,
)
from pollex.agents.llm.parsing import read_objects
from pollex.agents.roles import Extraction
from pollex.conversations.conversation import Conversation, Label
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.rubric import QUOTE_PARTS, Polarity, Quote, Reason, make_content_id
from pollex.text import NUMBER_WORDS

MIN_QUOTES, MAX_QUOTES = 2, 4
"""Of an exchange: what called for it, what was done or left out, and what that did to the user."""
WORDS_FOR_NUMBERS_FROM_ONE = NUMBER_WORDS[1:11]
_POLARITY_BY_LABEL: dict[Label, Polarity] = {Label.POSITIVE: "sat", Label.NEGATIVE: "dsat"}


class LlmExtractor(ModelRole):
    """Finds why a labelled conversation was good or bad.

    Attributes:
        tally: Reasons left out, by cause: `without a quote`, `without an exchange` and `copies the
            conversation`; and conversations whose text shows no reason: `nothing found`.
    """

    def __init__(self, asker: PromptAsker) -> None:
        self.paper = asker.settings.prompts == "paper"
        self.prompts = load_prompts_by_polarity("extract", paper=self.paper)
        super().__init__(
            asker,
            self.prompts.values(),
            **asker.settings.facts(["reasons"]),
        )
        self.tally: Counter[str] = Counter()

    async def fit(self, training: Sequence[Conversation]) -> None:
        """Do nothing: each conversation is read by itself."""

    async def extract(self, conversation: Conversation) -> Extraction | Unanswered:
        """Extract a few reasons, each with quotes that are in the conversation."""
        polarity = _POLARITY_BY_LABEL.get(conversation.label)
        if polarity is None or conversation.not_scorable:
            why = conversation.not_scorable or "no label"
            return Unanswered(
                question_id="",
                outcome="not_scorable",
                detail=why,
                judge=self.name,
            )

        values = {
            "most": WORDS_FOR_NUMBERS_FROM_ONE[self.asker.settings.reasons - 1],
            **PROMPT_WORDS_BY_POLARITY[polarity],
        }
        items = [
            *make_prompt_items_of_turns(conversation),
            *make_prompt_items_of_user_feedback(conversation),
        ]
        fields = {"summary": str, "reasons": list}
        value = await self.asker.value(
            self.prompts[polarity],
            items,
            values,
            fields,
            item=conversation.id,
        )
        if isinstance(value, Unanswered):
            return value

        # the tally runs over all conversations; this one's part is the difference
        before = self.tally["without a quote"]
        parsed = []
        for entry in value["reasons"]:
            parsed.append(self._reason(conversation, polarity, entry))

        reasons = dict.fromkeys(reason for reason in parsed if reason)
        self.tally["nothing found"] += not value["reasons"]
        return Extraction(
            conversation_id=conversation.id,
            summary=collapse_white_space(value["summary"]),
            reasons=tuple(reasons)[: self.asker.settings.reasons],
            dropped=parsed.count(None),
            unquoted=self.tally["without a quote"] - before,
        )

    def _reason(
        self,
        conversation: Conversation,
        polarity: Polarity,
        entry: Any,
    ) -> Reason | None:
        """Parse a reason; None without text or exact quote, or if it is a quote."""
        text = ""
        if isinstance(entry, dict):
            text = collapse_white_space(str(entry.get("reason") or ""))

        # quotes without a text are no reason
        if text:
            quotes_or_none = []
            for quote_entry in read_objects(entry.get("quotes")):
                quotes_or_none.append(_locate_quote_of_entry(conversation, quote_entry))
        else:
            quotes_or_none = []

        quotes = tuple(dict.fromkeys(filter(None, quotes_or_none)))[:MAX_QUOTES]
        if not quotes:
            self.tally["without a quote"] += 1
            return None
        # the paper's prompt asks for no exchange
        if len(quotes) < MIN_QUOTES and not self.paper:
            self.tally["without an exchange"] += 1
            return None
        if copies_words_from_sources(split_words(text), [list_words_of_conversation(conversation)]):
            # What was planted in a conversation would otherwise travel on, word for word, into
            # rubrics.
            self.tally["copies the conversation"] += 1
            return None

        source = name_prompt_version(self.prompts[polarity])
        # the id covers all that makes the reason, so that equal ones are one
        parts: list[str] = []
        for quote in quotes:
            parts.extend((str(quote.turn), quote.text))
        return Reason(
            id=make_content_id(
                conversation.id, conversation.text_hash, polarity, text, source, *parts
            ),
            conversation_id=conversation.id,
            polarity=polarity,
            text=text,
            quotes=quotes,
            source=source,
        )


def _locate_quote_of_entry(conversation: Conversation, entry: Mapping[str, object]) -> Quote | None:
    text = entry.get("quote")
    turn = entry.get("turn")
    if not isinstance(text, str):
        return None

    # without a turn, the search begins at the first
    quote = locate_quote_in_conversation(conversation, text, turn if isinstance(turn, int) else 0)
    part = entry.get("part")
    if quote and isinstance(part, str) and part in QUOTE_PARTS:
        return quote.model_copy(update={"part": part})
    return quote
