"""What the room adds to the command line beside its verbs."""
