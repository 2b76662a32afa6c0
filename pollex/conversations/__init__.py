"""What comes in: conversations, readers for log formats, labels, splits."""
