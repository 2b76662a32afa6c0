"""Addresses of the room's pages."""

TALK_PATH = "/talk"
