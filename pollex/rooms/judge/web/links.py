"""Addresses of the room's pages."""

WAITING_PATH = "/waiting"
