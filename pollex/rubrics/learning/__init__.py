"""How a pool of rubrics and the answers to it become a rubric set: the choice, its models, its figures."""
