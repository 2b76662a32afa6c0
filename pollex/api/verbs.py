"""The use cases as functions of Python."""

from __future__ import annotations

from pollex.api.functions import function, spread
from pollex.usecases.check import CheckRelease
from pollex.usecases.compare import CompareSamples
from pollex.usecases.evaluate import EvaluateSet
from pollex.usecases.remedy import ProveRemedy
from pollex.usecases.share import EstimateShare

check = function(CheckRelease)
compare = spread(CompareSamples)
evaluate = function(EvaluateSet)
remedy = function(ProveRemedy)
share = function(EstimateShare)
