"""Use cases of the core that have a door in the browser, in the order in which people need them."""

from collections.abc import Callable

from pollex.text import JsonDict
from pollex.web.doors.hooks import DEFAULT_LIMITS, ResultView, UseCaseDoor
from pollex.web.hooks import TemplateValues


def make_result_view(name: str) -> Callable[[JsonDict], TemplateValues]:
    """Return a function of `pollex.web.results`, which needs the module of these hooks."""

    def figures(result: JsonDict) -> TemplateValues:
        from pollex.web import results  # as said

        shown: TemplateValues = getattr(results, name)(result)
        return shown

    return figures


HOOKS = (
    UseCaseDoor(
        "learn",
        "Learn from a log",
        "Finds the sentences that tell conversations with a thumb up from those with a thumb down.",
        "Learn",
        first=("logs", "domain", "review"),
        usual=DEFAULT_LIMITS,
        needs_set=False,
        result="rubrics.json",
        labels={"review": "Edit the sentences before they are judged"},
        helps={
            "review": "The run then waits for you once it has written them.",
            "rubrics_from": "Fit these instead: the name of a set that comes with pollex "
            "(generic, generic_debugging).",
        },
        answers={"review": {"": "no: judge them at once", "pool": "yes: wait for me"}},
    ),
    UseCaseDoor(
        "label queue",
        "Label conversations of a log",
        "Shows conversations at random, one at a time: a thumb each, by keys alone.",
        "Make the queue",
        quick=True,
        first=("logs", "name", "count"),
        usual={"count": 50},
        needs_set=False,
        labels={"name": "Name of the queue", "count": "How many conversations"},
    ),
    UseCaseDoor(
        "score",
        "Score a log",
        "Says of each conversation how likely it is good, by a rubric set, and why.",
        "Score",
        first=("logs", "rubrics"),
        usual=DEFAULT_LIMITS,
        result="scores.parquet",
    ),
    UseCaseDoor(
        "evaluate",
        "Evaluate a rubric set",
        "Says how well a rubric set tells thumbs of conversations that it hasn't seen.",
        "Evaluate",
        first=("logs", "rubrics"),
        usual=DEFAULT_LIMITS,
    ),
    UseCaseDoor(
        "compare",
        "Compare two logs",
        "Says which of two samples of conversations is better, in which rubrics, and how sure that is.",
        "Compare",
        first=("logs", "rubrics", "by", "baseline"),
        usual=DEFAULT_LIMITS,
        two_logs=True,
        labels={"by": "Or cut one log by", "baseline": "Value of before"},
        helps={
            "by": "Choose two logs above; or one, and name a field of it: release, started:week, "
            "country.",
            "baseline": "Of that field: what the others are compared with.",
        },
    ),
    UseCaseDoor(
        "check",
        "Check a release",
        "Says whether new conversations have become worse than those of before.",
        "Check",
        first=("new", "against", "rubrics", "fail_if"),
        usual=DEFAULT_LIMITS | {"fail_if": "mean(p) drops by 0.03"},
        labels={"new": "New conversations", "against": "Those of before"},
        helps={
            "against": "A log, or a run that has scored one: the run that learned will do.",
            "fail_if": "A condition a line: mean(p) drops by 0.03, share drops by 0.05 (labels at "
            "random), drift(p) above 0.25, unlike above 0.2.",
        },
    ),
    UseCaseDoor(
        "domain draft",
        "Draft a domain profile",
        "Has your model say what the assistant is for. You correct it before it is used.",
        "Draft it",
        first=("logs",),
        usual=DEFAULT_LIMITS,
        needs_set=False,
        needs_model=True,
        sends="The beginnings of 12 conversations, drawn at random, without their labels,",
        result="domain.toml",
    ),
    ResultView("domain draft", "web/result_profile.html", make_result_view("show_profile_draft")),
    ResultView("evaluate", "web/result_evaluation.html", make_result_view("show_evaluation")),
    ResultView("compare", "web/result_comparison.html", make_result_view("show_comparison")),
    ResultView("check", "web/result_check.html", make_result_view("show_check")),
)
