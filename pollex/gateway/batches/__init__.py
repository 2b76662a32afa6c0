"""Providers' batches: calls that nobody waits for, at half the price. One module for each kind of provider."""
