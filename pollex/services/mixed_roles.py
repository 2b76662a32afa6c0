"""A model's roles with the built-in ones beside them, in `learn`, and wherever the set is used afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pollex.agents.distilled.judge import LocalJudge
from pollex.agents.mixed import MixedJudge, mixed
from pollex.rubrics.rubric import BUILT_IN, Rubric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pollex.services.roles import Workers


def with_built_in(staff: Workers, built_in: Workers, without: frozenset[str]) -> Workers:
    """Return workers whose pool is of both sides; those that are given where no model works or the user wants that."""
    if staff.gateway is None or BUILT_IN in without:
        return staff
    staff.roles = mixed(staff.roles, built_in.roles)
    return _remembered(staff)


def with_built_in_judge(staff: Workers, rubrics: Iterable[Rubric], learned: Mapping[str, Any]) -> Workers:
    """Return workers whose judge leaves a set's built-in and distilled rubrics to judges without a model.

    Args:
        learned: By rubric, what these judges learned.
    """
    own = {rubric.id for rubric in rubrics if rubric.answered_by}
    if staff.gateway is None or not own:
        return staff
    judge = LocalJudge(staff.embedder, {id_: what for id_, what in learned.items() if id_ in own})
    staff.roles = replace(staff.roles, judge=MixedJudge(staff.roles.judge, judge))
    return _remembered(staff)


def _remembered(staff: Workers) -> Workers:
    options = staff.record.options.but(embedding_model=staff.embedder.model)
    staff.record = staff.record.model_copy(update={"options": options})
    return staff
