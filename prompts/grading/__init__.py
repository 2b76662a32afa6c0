"""What is asked where answers are graded against references: prompts, and profiles of scale, rules and dimensions."""
