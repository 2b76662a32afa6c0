"""A built-in judge that learned to answer a model's rubrics from the model's own answers."""
