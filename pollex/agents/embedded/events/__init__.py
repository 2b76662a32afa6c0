"""Events of a log's domain: what happened, to what, what followed, with supporting quotes."""

from pollex.agents.embedded.events.learning import study
from pollex.agents.embedded.events.model import Answers, EventModel, EventRubric

__all__ = ["Answers", "EventModel", "EventRubric", "study"]
