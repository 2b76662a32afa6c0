"""Addresses of the room's pages."""

TALK = "/talk"
