"""What the room hangs into the calibration network."""

from pollex.calibration.hooks import SearchOutcome, SettingsSearch, TrainingRecipe
from pollex.calibration.judgments import AnswerMatrix, Judgments
from pollex.calibration.models.network import CalibrationNetwork
from pollex.calibration.network.weights import Weights
from pollex.measures.arrays import Floats, Ints


def train_by_authors(network: CalibrationNetwork, inputs: Floats, sheets: AnswerMatrix) -> Weights:
    """Train a network as the authors of the paper do."""
    # PyTorch takes seconds to load, and predictions don't need it
    from pollex.rooms.questionnaire.calibration.network.paper_recipe import train_by_paper

    return train_by_paper(network, inputs, sheets)


def search_at_random(
    network: CalibrationNetwork,
    X: Floats,
    y: Judgments,
    groups: Ints,
) -> SearchOutcome:
    """Draw settings and try them, as many and as long as the network says."""
    # scikit-learn's model selection: a third of a second
    from pollex.rooms.questionnaire.calibration.network.search import search_settings

    return search_settings(network, X, y, groups, network.draws, network.search_seconds)


HOOKS = (
    TrainingRecipe("authors", train_by_authors),
    SettingsSearch("random", search_at_random),
)
