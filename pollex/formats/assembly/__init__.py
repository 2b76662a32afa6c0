"""Conversations put together from the rows of all files of a reading."""
