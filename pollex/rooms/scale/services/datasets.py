"""Scores for those who have a pipeline on `ray.data`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs_from_rows
from pollex.rooms.scale.services.parts import write_parquet
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.score import read_unedited
from pollex.services.scorer import BatchScorer

if TYPE_CHECKING:
    from pyarrow import Table
    from ray.data import Dataset


def score_dataset(
    dataset: Dataset,
    rubrics: str | Path | RubricSet,
    *,
    judges: Sequence[str] = (),
    costs: tuple[float, float] = (1.0, 1.0),
    batch_size: int = 512,
    **options: object,
) -> Dataset:
    """Score a dataset of `ray.data`, one conversation a row.

    It promises less than `pollex score --engine ray`: Ray may do a batch again, or for ever, and
    keeps no order;
    nothing is resumed. A batch in which no row is a conversation, or two have one id, fails.

    Args:
        dataset: Rows as in a log: `messages`, or another shape with one conversation a row.
        rubrics: A set whose judge needs no model.
        judges: Annotators whose own probabilities are wanted; `["all"]` for all.
        costs: Of a bad conversation taken for good, and of a good one taken for bad.
        options: For `map_batches`, such as `concurrency`.

    Returns:
        A dataset with the columns that `pollex score` writes.

    Raises:
        WrongUse: The set's judge is a model.
    """
    rubric_set = read_unedited(Path(rubrics) if isinstance(rubrics, str) else rubrics)
    # a built-in judge costs nothing if a batch is done again
    if not rubric_set.judge.built_in:
        raise WrongUse(
            f"the set's judge is a model, {rubric_set.judge.name}, and Ray would pay for a batch again and again",
            hint="use `pollex score --engine ray`",
        )

    # made here, and sent to each worker once
    arguments = (BatchScorer(rubric_set, judges, costs),)
    ray_options = {"concurrency": 1, **options}
    return dataset.map_batches(
        _DatasetBatchScorer,
        fn_constructor_args=arguments,
        batch_format="pyarrow",
        batch_size=batch_size,
        **ray_options,
    )


class _DatasetBatchScorer:
    def __init__(self, scorer: BatchScorer) -> None:
        self._scorer = scorer

    def __call__(self, batch: Table) -> Table:
        # takes half a second to import, and is an extra
        from pyarrow import BufferReader, parquet

        # the forms of rows are found out anew in each batch
        logs = read_logs_from_rows(batch.to_pylist(), options=ReadOptions())
        scores = self._scorer.scores(logs.conversations)

        # the same Parquet as that of parts, so that columns and types are equal
        return parquet.read_table(
            BufferReader(
                write_parquet(
                    [scores],
                    self._scorer.rubrics,
                    self._scorer.judges,
                )
            )
        )
