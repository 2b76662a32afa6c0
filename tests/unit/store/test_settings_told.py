"""What two runs differ in is told in words."""

import pytest

from pollex.store.settings_told import describe_fingerprint_differences

BEFORE = {
    "model": "m",
    "can logprobs": 0,
    "can json_schema": True,
    "setting samples": 5,
    "prompt judge": "3",
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"can logprobs": 20}, "judge: the model gives log-probabilities now"),
        ({"can json_schema": False}, "judge: the model obeys no JSON schema now"),
        ({"setting samples": 1}, "judge: samples was 5 and is 1 now"),
        ({"prompt judge": "4"}, "judge: the prompt judge is another version"),
        ({"model": "n"}, "judge: model was m and is n now"),
    ],
)
def test_what_changed_behind_the_digest_of_a_role_is_told(
    change: dict[str, object], words: str
) -> None:
    assert describe_fingerprint_differences(
        {"judge": "1f2e"}, {"judge": "ab12"}, BEFORE, {**BEFORE, **change}
    ) == [words]


def test_settings_are_told_with_both_values_and_digests_by_what_they_stand_for() -> None:
    before = {"budget": "[7, 8]", "data": "00aa11bb22cc", "judge": "1f2e", "seed": "1"}
    now = {"budget": "null", "data": "99aa11bb22cc", "judge": "ab12", "seed": "1"}
    told = describe_fingerprint_differences(before, now)
    assert told == [
        "budget: 7, 8, and now not set",
        "data: other conversations, or read or labeled in another way",
        "judge: another model, prompt or setting",
    ]
