"""Names of people and places in texts, found by Presidio with a model of spaCy's that is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pollex.errors import WrongUse

if TYPE_CHECKING:
    from pollex.conversations.redaction import Found

KINDS = {"PERSON": "PERSON", "LOCATION": "PLACE"}
LEAST = 0.5
LANGUAGE = "en"


def names() -> Callable[[str], Iterator[Found]]:
    """Return what finds names and places.

    Raises:
        WrongUse: Presidio or a model of spaCy's is missing.
    """
    from pollex.conversations.redaction import Found

    try:
        import spacy
        from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
        from presidio_analyzer.nlp_engine import SpacyNlpEngine
        from presidio_analyzer.predefined_recognizers import SpacyRecognizer
    except ImportError:
        raise WrongUse(
            "names and places are found by a package that is not installed",
            remedy="install it (`pip install 'pollex[names]'`), or give `--set redact=yes`",
        ) from None
    models = sorted(one for one in spacy.util.get_installed_models() if one.startswith(f"{LANGUAGE}_"))
    if not models:
        raise WrongUse(
            "names and places are found by a model of spaCy's, and none is installed",
            remedy="install one (`python -m spacy download en_core_web_sm`), or give `--set redact=yes`",
        )
    # Only names: its other finders overlap with ours, and the one for mail addresses asks the network.
    registry = RecognizerRegistry(recognizers=[SpacyRecognizer(supported_entities=list(KINDS))])
    engine = SpacyNlpEngine(models=[{"lang_code": LANGUAGE, "model_name": models[-1]}])
    analyzer = AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[LANGUAGE])

    def find(text: str) -> Iterator[Found]:
        for one in analyzer.analyze(text, language=LANGUAGE, entities=list(KINDS), score_threshold=LEAST):
            yield Found(one.start, one.end, KINDS[one.entity_type])

    return find
