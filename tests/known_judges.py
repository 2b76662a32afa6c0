"""A rubric set whose calibrator knows people."""

import numpy as np

from pollex.calibration.candidates import PLAIN_NETSAT_NAME
from pollex.calibration.storage import serialize_calibrator
from pollex.calibration.thumbs import fit_calibration_model
from pollex.rubrics.rubric_set import RubricSet


def with_judges(rubrics: RubricSet, judges: list[str]) -> RubricSet:
    """The set with a calibrator that knows people; what it has learnt means nothing."""
    rng = np.random.default_rng(0)
    answers = rng.dirichlet(np.ones(5), (40, len(rubrics.rubrics)))
    ids = [rubric.id for rubric in rubrics.rubrics]
    signs = [1.0 if rubric.polarity == "sat" else -1.0 for rubric in rubrics.rubrics]
    positive = np.arange(40) % len(judges) > 0  # the first judge is never content
    who = [judges[number % len(judges)] for number in range(40)]
    pack = serialize_calibrator(
        fit_calibration_model(PLAIN_NETSAT_NAME, answers, signs, positive, who, ids)
    )
    facts = {name: value for name, value in pack.facts.items() if name != "questionnaire"}
    assert rubrics.calibrator is not None
    record = rubrics.calibrator.model_copy(update={"facts": facts, "rubrics": tuple(ids)})
    return rubrics.model_copy(update={"calibrator": record}).with_arrays(pack.arrays)
