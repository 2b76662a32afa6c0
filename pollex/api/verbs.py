"""The use cases as functions of Python."""

from __future__ import annotations

from pollex.api.functions import function, spread
from pollex.api.rubrics import RubricSet
from pollex.usecases.answer import AnswerQuestions
from pollex.usecases.ask import AskQuestionnaire
from pollex.usecases.check import CheckRelease
from pollex.usecases.compare import CompareSamples
from pollex.usecases.distill import DistillSet
from pollex.usecases.evaluate import EvaluateSet
from pollex.usecases.grade import GradeAnswers
from pollex.usecases.inspect import InspectLogs
from pollex.usecases.judge import JudgeLogs
from pollex.usecases.learn import LearnRubrics
from pollex.usecases.refit import RefitSet
from pollex.usecases.remedy import ProveRemedy
from pollex.usecases.review import ReviewRun
from pollex.usecases.rubrics import DiffSets, StateOfRubric
from pollex.usecases.score import ScoreLogs
from pollex.usecases.share import EstimateShare
from pollex.usecases.simulate import SimulateDialogues

answer = function(AnswerQuestions)
ask = function(AskQuestionnaire)
check = function(CheckRelease)
compare = spread(CompareSamples)
diff_sets = function(DiffSets)
distill = function(DistillSet)
evaluate = function(EvaluateSet)
grade = function(GradeAnswers)
inspect = function(InspectLogs)
judge = function(JudgeLogs)
learn = function(LearnRubrics, RubricSet.of)
refit = function(RefitSet, RubricSet.of)
remedy = function(ProveRemedy)
review = function(ReviewRun)
rubric_state = function(StateOfRubric)
score = function(ScoreLogs)
share = function(EstimateShare)
simulate = function(SimulateDialogues)
