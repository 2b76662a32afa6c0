"""Learning with the built-in roles from all conversations that are given, few labels or many."""

from collections.abc import Sequence

from pollex.conversations.conversation import Conversation
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import make_logs_of_conversations
from pollex.graphs.context import NullProgress
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import ModelOptions, RunOptions
from pollex.services.learn import learn


def learn_from(
    conversations: Sequence[Conversation], run: RunOptions, *, starter: RubricSet | None = None
) -> RubricSet:
    """Learn a set; two labels of each class are enough, nothing is held out, and no halves are drawn for stability."""
    return learn(
        make_logs_of_conversations(conversations),
        out=None,
        domain=None,
        rubrics_from=None,
        settings=LearnSettings(test_fraction=0.0, minimum=2, stability=False),
        starter=starter,
        reading=ReadOptions(),
        run=run,
        model=ModelOptions(),
        progress=NullProgress(),
    ).rubrics
