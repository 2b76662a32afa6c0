"""The scoring service: scores for other programs, as conversations end."""
