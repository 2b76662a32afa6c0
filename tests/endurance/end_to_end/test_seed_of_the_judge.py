"""The judge of a rubric set is asked with the seed that θ was fitted with."""

from pollex.rubrics.judge_settings import JudgeSettings
from pollex.rubrics.records import JudgeRecord
from pollex.runs.options import ModelOptions
from pollex.runs.roles import get_judge_seed, restore_model_options


def test_a_judge_is_asked_again_as_it_was_asked() -> None:
    record = JudgeRecord(
        kind="llm",
        name="m",
        fingerprint="f",
        options=JudgeSettings(
            place="http://h/v1", samples=3, closing="merged", seed=7, without=frozenset({"ds"})
        ),
    )
    again = restore_model_options(ModelOptions(base_url="http://h/v1"), record)
    assert (
        again.model,
        again.settings.samples,
        again.settings.closing,
        again.settings.without,
    ) == (
        "m",
        3,
        "merged",
        frozenset({"ds"}),
    )
    assert get_judge_seed(record) == 7
