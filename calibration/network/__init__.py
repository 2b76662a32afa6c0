"""The calibration network: many networks trained as one, and their search."""
