"""The four roles on one model."""

from __future__ import annotations

from typing import NamedTuple

from pollex.agents.llm.asker import Asker
from pollex.agents.llm.deduplicator import Embedder, LlmDeduplicator
from pollex.agents.llm.extractor import LlmExtractor
from pollex.agents.llm.judge import LlmJudge
from pollex.agents.llm.summarizer import LlmSummarizer


class LlmRoles(NamedTuple):
    """The four roles on a model."""

    extractor: LlmExtractor
    summarizer: LlmSummarizer
    deduplicator: LlmDeduplicator
    judge: LlmJudge


def build_llm_roles(asker: Asker, embedder: Embedder) -> LlmRoles:
    """Build the four roles.

    Args:
        embedder: Finds candidates for the deduplicator.

    Raises:
        ModelRefused: Log-probabilities are required, and the endpoint gives none.
    """
    return LlmRoles(LlmExtractor(asker), LlmSummarizer(asker), LlmDeduplicator(asker, embedder), LlmJudge(asker))
