"""Learned objects and their scoring: questions, answers, rubrics, rubric sets, NetSAT."""
