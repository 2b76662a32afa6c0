"""Who does the work of a command: the embedded roles, or an LLM's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pollex.agents.embedded.deduplicator import EmbeddedDeduplicator
from pollex.agents.embedded.embedder import DEFAULT_MODEL, Embedder
from pollex.agents.embedded.extractor import EmbeddedExtractor
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.embedded.summarizer import EmbeddedSummarizer
from pollex.agents.roles import Judge
from pollex.errors import WrongUse
from pollex.graphs.rubric_set import JudgeRecord, RubricSet
from pollex.graphs.runtime import Roles
from pollex.prompts.profile import DomainProfile

EMBEDDINGS = "embeddings"
"""Folder of cached embeddings inside a store."""


def embedded_roles(profile: DomainProfile, embedder: Embedder, seed: int = 0) -> Roles:
    """All four roles without an LLM."""
    return Roles(
        extractor=EmbeddedExtractor(embedder, seed),
        summarizer=EmbeddedSummarizer(profile.words()),
        deduplicator=EmbeddedDeduplicator(embedder),
        judge=EmbeddedJudge(embedder),
    )


def embedded_record(embedder: Embedder) -> JudgeRecord:
    """How a rubric set remembers the embedded judge, before it has learnt anything."""
    return JudgeRecord(kind="embedded", name="embedded", fingerprint="", options={"embedding_model": embedder.model})


def embedder_for(store: Path | None, model: str = DEFAULT_MODEL) -> Embedder:
    """The embedding model with the store's cache."""
    return Embedder(model, None if store is None else store / EMBEDDINGS)


def embedded_judge(rubric_set: RubricSet, store: Path | None) -> Judge:
    """The embedded judge as the rubric set remembers it."""
    record = rubric_set.judge
    if record.kind != "embedded":
        raise WrongUse(
            f"these rubrics were learnt with the judge {record.name}, and so was θ",
            remedy=f"give --model {record.name}, or fit θ for the embedded judge: `pollex refit`",
        )
    return EmbeddedJudge(embedder_for(store, model_of(record.options)), record.learned)


def model_of(options: Mapping[str, object]) -> str:
    """The embedding model that a judge was made with."""
    return str(options.get("embedding_model", DEFAULT_MODEL))


def profile_at(path: Path | None) -> DomainProfile:
    """The domain profile of a file, or the neutral one."""
    return DomainProfile.neutral() if path is None else DomainProfile.load(path)
