"""Addresses of the room's pages."""

WAITING = "/waiting"
