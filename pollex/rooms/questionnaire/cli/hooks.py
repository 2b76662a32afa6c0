"""What the stages of the room's runs are called."""

from pollex.cli.hooks import StageNames

HOOKS = (StageNames({"ask": "Asking the questions"}),)
