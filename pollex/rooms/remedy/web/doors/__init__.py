"""What of the room can be begun in the browser."""
