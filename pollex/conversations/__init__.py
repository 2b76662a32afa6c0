"""Conversations, their labels, splits, and questions with references."""
