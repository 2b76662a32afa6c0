"""What a set says it costs."""

from pollex.reports.learning import cost_of
from pollex.rubrics.rubric import Rubric


def rubric(source: str, text: str = "The user is happy.") -> Rubric:
    return Rubric(id=source, text=text, polarity="sat", source=source)


def test_a_set_without_vectors_says_so_and_one_by_likeness_costs_its_embedding() -> None:
    plain = [rubric("signal:thanks"), rubric("phrase:user:thank you")]
    assert cost_of(plain) == "about 1 ms of CPU a conversation of 25 turns, no embedding"
    assert cost_of([*plain, rubric("person")]).endswith("a conversation of 25 turns, its turns embedded")
