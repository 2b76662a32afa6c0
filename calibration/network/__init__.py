"""The calibration network: how it is trained, and the search for its settings."""
