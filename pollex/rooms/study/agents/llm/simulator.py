"""Simulated dialogues: a user with a topic and persona, and an assistant with documents or without."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from pollex.agents.checks import find_quoted_passage
from pollex.agents.llm.asker import PromptAsker
from pollex.conversations.conversation import Source, Turn
from pollex.errors import WrongUse
from pollex.prompts.data_boundary import DataItem
from pollex.rooms.study.prompts.simulate.systems import DialogueSystem, list_prompts, load_prompt
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.rubric import make_content_id
from pollex.text import is_visible

MAX_PASSAGE_CHARACTERS = 1500
"""Characters of a passage, unless one paragraph is longer."""


@dataclass(frozen=True)
class DocumentPassage:
    """A part of a document.

    Attributes:
        document: Name of its file.
    """

    document: str
    text: str

    def has(self, quote: str) -> bool:
        """Return whether the passage has these words; see `located` for what may differ."""
        return bool(find_quoted_passage(self.text, quote))


def split_into_passages(documents: Mapping[str, str]) -> list[DocumentPassage]:
    """Cut documents at empty lines into passages."""
    passages: list[DocumentPassage] = []
    for name, text in documents.items():
        part = ""
        # paragraphs are joined up to the longest passage; a longer one stays whole
        for paragraph in filter(None, (part.strip() for part in text.split("\n\n"))):
            if part and len(part) + len(paragraph) > MAX_PASSAGE_CHARACTERS:
                passages.append(DocumentPassage(name, part))
                part = ""
            part = f"{part}\n\n{paragraph}".strip()

        if part:
            passages.append(DocumentPassage(name, part))

    return passages


class PassageIndex:
    """An index of passages.

    Attributes:
        all: Every passage, in the order of the documents.
    """

    def __init__(self, passages: Sequence[DocumentPassage]) -> None:
        self.all = tuple(passages)
        if self.all and find_spec("bm25s") is None:
            raise WrongUse(
                "documents need a package: bm25s",
                hint='pip install "pollex[simulate]"',
            )

    def named(self, documents: Sequence[str], most: int) -> list[DocumentPassage]:
        """Return the first passages of these documents."""
        return [passage for passage in self.all if passage.document in documents][:most]

    def best(self, query: str, most: int) -> list[DocumentPassage]:
        """Return passages that share words with the query, the best first."""
        # the index refuses words that no passage has
        known_words = []
        for word in _tokenize_texts([query])[0]:
            if word in self._index.vocab_dict:
                known_words.append(word)

        if not known_words:
            return []

        scores = self._index.get_scores(known_words)
        # stable, so that equal scores keep the order of the documents
        order = np.argsort(-scores, kind="stable")[:most]
        passages: list[DocumentPassage] = []
        for i in order:
            # a score of 0 shares no word that tells anything
            if scores[i] > 0:
                passages.append(self.all[i])

        return passages

    @cached_property
    def _index(self) -> Any:
        from bm25s import BM25  # an extra

        index = BM25()
        index.index(
            _tokenize_texts([passage.text for passage in self.all]),
            show_progress=False,
        )

        return index


def _tokenize_texts(texts: list[str]) -> list[list[str]]:
    from bm25s import tokenize

    tokens: list[list[str]] = tokenize(
        texts,
        stopwords=None,
        show_progress=False,
        return_ids=False,
    )
    return tokens


MAX_PASSAGES_SHOWN = 5
"""Passages that an assistant sees, as in the paper."""
DEFAULT_TEMPERATURE = 0.7
QUALITY_QUESTION_NAMES = ("conversation", "pursues", "human")

DialogueEnding = Literal["whole", "user", "assistant", "turns", "repeat"]
"""Why a dialogue ended: one call wrote it, a side ended it, the limit of turns, or a user who says the same again."""


@dataclass(frozen=True)
class SimulatedTopic:
    """What a simulated user wants.

    Attributes:
        documents: Names of the documents that answer it, for oracle retrieval.
    """

    id: str
    text: str
    documents: tuple[str, ...] = ()


@dataclass(frozen=True)
class SimulatedPersona:
    """What kind of person a simulated user is."""

    id: str
    text: str


@dataclass(frozen=True)
class DialogueScene:
    """A dialogue to simulate."""

    system: DialogueSystem
    topic: SimulatedTopic
    persona: SimulatedPersona

    @property
    def id(self) -> str:
        """Return the dialogue's id."""
        return f"{self.system.name}-{self.topic.id}-{self.persona.id}"

    @property
    def items(self) -> list[DataItem]:
        """Return what the user knows, as data."""
        return [{"topic": self.topic.text}, {"persona": self.persona.text}]


@dataclass
class SimulatedDialogue:
    """A dialogue as it is being held.

    Attributes:
        quotes: Quotes that their documents have, with turn, document and quote.
        unproven: Quotes that no document shown has; they are left out.
        sources: Passages that the assistant was shown, each once and in their order: the third is
            cited as `[3]`.
    """

    turns: list[Turn] = field(default_factory=list)
    quotes: list[dict[str, object]] = field(default_factory=list)
    unproven: int = 0
    ended: DialogueEnding = "whole"
    sources: list[Source] = field(default_factory=list)

    def show(self, passages: Sequence[DocumentPassage]) -> list[DataItem]:
        """Return passages for the next turn as data; one that was shown before keeps its number."""
        # numbers from 1, over the whole dialogue: a passage is known by name and text
        numbers = {}
        for number, source in enumerate(self.sources, 1):
            numbers[source.name, source.text] = number

        items: list[DataItem] = []
        for passage in passages:
            name = passage.document, passage.text
            # a new passage belongs to the turn that is about to be spoken
            if name not in numbers:
                self.sources.append(
                    Source(
                        text=passage.text,
                        name=passage.document,
                        turn=len(self.turns),
                    )
                )
                numbers[name] = len(self.sources)

            items.append(
                {
                    "document": numbers[name],
                    "name": passage.document,
                    "text": passage.text,
                }
            )

        return items

    @property
    def items(self) -> list[DataItem]:
        """Return the turns as data."""
        items: list[DataItem] = []
        for i, turn in enumerate(self.turns):
            items.append({"i": i, "role": turn.role, "text": turn.content})
        return items

    def say(self, role: Literal["user", "assistant"], text: str) -> None:
        """Add a turn."""
        self.turns.append(
            Turn(
                role=role,
                content=text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
            )
        )

    def quote(self, sources: object, shown: Sequence[DocumentPassage]) -> None:
        """Keep those sources of the last turn that their documents prove."""
        for source in sources if isinstance(sources, list) else []:
            # a model may write anything in place of a source
            number, quote = (
                (source.get("document"), source.get("quote"))
                if isinstance(source, dict)
                else (None, None)
            )
            if (
                isinstance(number, int)
                and isinstance(quote, str)
                and 1 <= number <= len(self.sources)
            ):
                named = self.sources[number - 1]
                # only passages that were shown for this turn can prove a quote
                passage = DocumentPassage(named.name, named.text)
                if passage in shown and passage.has(quote):
                    self.quotes.append(
                        {
                            "turn": len(self.turns) - 1,
                            "document": passage.document,
                            "quote": quote,
                        }
                    )
                    continue

            # a source without proof is counted, and not kept
            self.unproven += 1


@dataclass(frozen=True)
class DialogueSimulator:
    """Simulates dialogues with one model.

    Attributes:
        turns: Most turns of the user where turns are taken.
    """

    asker: PromptAsker
    passages: PassageIndex
    turns: int

    @property
    def name(self) -> str:
        """The model's name."""
        return self.asker.name

    @property
    def fingerprint(self) -> str:
        """See `Agent`."""
        texts = make_content_id(
            "passages",
            *(passage.text for passage in self.passages.all),
        )
        return self.asker.fingerprint(
            *list_prompts(),
            turns=self.turns,
            passages=texts,
        )

    async def dialogue(self, scene: DialogueScene) -> SimulatedDialogue | Unanswered:
        """Hold one dialogue."""
        return await (self._whole(scene) if scene.system.whole else self._by_turns(scene))

    async def quality(
        self, scene: DialogueScene, dialogue: SimulatedDialogue
    ) -> dict[str, str] | Unanswered:
        """Ask the questions of quality about a dialogue."""
        # the topic is evidence, too: whether the user pursues it is one of the questions
        items = [{"topic": scene.topic.text}, *dialogue.items]
        value = await self._ask(
            "quality",
            scene,
            items,
            dict.fromkeys(QUALITY_QUESTION_NAMES, str),
            temperature=0.0,
        )
        if isinstance(value, Unanswered):
            return value
        return {name: value[name] for name in QUALITY_QUESTION_NAMES}

    async def _whole(self, scene: DialogueScene) -> SimulatedDialogue | Unanswered:
        # one call writes both sides: the topic alone decides which documents it gets
        shown = self._found(scene, scene.topic.text)
        without = frozenset() if shown else frozenset({"documents"})
        dialogue = SimulatedDialogue()
        documents = dialogue.show(shown)
        value = await self._ask(
            "whole",
            scene,
            [*scene.items, *documents],
            {"turns": list},
            without=without,
        )
        if isinstance(value, Unanswered):
            return value

        # for all replies
        dialogue.sources = [source.model_copy(update={"turn": None}) for source in dialogue.sources]
        for turn in value["turns"]:
            # entries in another form are skipped
            if (
                isinstance(turn, dict)
                and turn.get("role") in ("user", "assistant")
                and isinstance(turn.get("text"), str)
                and is_visible(turn["text"])
            ):
                dialogue.say(turn["role"], turn["text"])
                dialogue.quote(turn.get("sources"), shown)

        # a dialogue takes both: a monologue can't be rated
        if {turn.role for turn in dialogue.turns} != {"user", "assistant"}:
            detail = "the dialogue has one side only"
            return Unanswered(
                question_id=scene.id,
                outcome="unparsable",
                detail=detail,
                judge=self.name,
            )

        return dialogue

    async def _by_turns(self, scene: DialogueScene) -> SimulatedDialogue | Unanswered:
        dialogue = SimulatedDialogue(ended="turns")
        # what the user said, without case and spaces
        utterances = set[str]()
        for _ in range(self.turns):
            # the user reads its topic and persona, and what was said so far
            user = await self._ask(
                "user",
                scene,
                [*scene.items, *dialogue.items],
                {"text": str, "ends": bool},
            )
            if isinstance(user, Unanswered):
                return user
            words = " ".join(user["text"].casefold().split())
            # a user who says the same again would go on for ever
            if not words or words in utterances:
                dialogue.ended = "repeat"
                break
            utterances.add(words)
            dialogue.say("user", user["text"])
            # A user who ends at once has not talked with anybody: the first turn is always
            # answered.
            if user["ends"] and len(dialogue.turns) > 1:
                dialogue.ended = "user"
                break
            ends = await self.answer(scene, dialogue)
            if isinstance(ends, Unanswered):
                return ends
            # the assistant's end comes first: the user has ended before it spoke
            if ends or user["ends"]:
                dialogue.ended = "assistant" if ends else "user"
                break

        # neither side spoke: there is nothing to keep
        if len(dialogue.turns) < 2:
            return Unanswered(
                question_id=scene.id,
                outcome="unparsable",
                detail="nobody spoke",
                judge=self.name,
            )

        return dialogue

    async def answer(
        self, scene: DialogueScene, dialogue: SimulatedDialogue, **settings: Any
    ) -> bool | Unanswered:
        """Add the assistant's turn, and return whether it ends the dialogue.

        Args:
            settings: Fields of `Call`; people who talk to a system have their own.
        """
        # without a query that is written, the words of all turns search
        query = " ".join(turn.content for turn in dialogue.turns)
        if scene.system.retrieval == "query":
            written = await self._ask(
                "query",
                scene,
                dialogue.items,
                {"query": str},
                **settings,
            )
            if isinstance(written, Unanswered):
                return written
            query = written["query"]

        # passages for this turn; their numbers go on from earlier turns
        shown = self._found(scene, query)
        fields = {"text": str, "sources": list, "ends": bool}
        # systems without documents have no word of them in their prompt
        settings["without"] = frozenset({"documents"} if scene.system.retrieval == "none" else ())
        documents = dialogue.show(shown)
        value = await self._ask(
            "assistant",
            scene,
            [*dialogue.items, *documents],
            fields,
            **settings,
        )
        if isinstance(value, Unanswered):
            return value

        dialogue.say("assistant", value["text"])
        dialogue.quote(value["sources"], shown)
        return bool(value["ends"])

    def _found(self, scene: DialogueScene, query: str) -> list[DocumentPassage]:
        if scene.system.retrieval == "none":
            return []
        if scene.system.retrieval == "named":
            return self.passages.named(scene.topic.documents, MAX_PASSAGES_SHOWN)

        return self.passages.best(
            scene.topic.text if scene.system.retrieval == "topic" else query,
            MAX_PASSAGES_SHOWN,
        )

    async def _ask(
        self,
        name: str,
        scene: DialogueScene,
        items: Sequence[DataItem],
        fields: dict[str, type],
        **settings: Any,
    ) -> dict[str, Any] | Unanswered:
        call_settings: dict[str, Any] = {
            "item": scene.id,
            "temperature": DEFAULT_TEMPERATURE,
        } | settings
        return await self.asker.value(
            load_prompt(name),
            items,
            {},
            fields,
            **call_settings,
        )
