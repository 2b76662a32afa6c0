"""Prompts of simulated users and assistants, and the systems that use them."""
