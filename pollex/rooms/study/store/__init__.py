"""What the room `study` keeps."""
