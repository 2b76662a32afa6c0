"""Parts that all verbs of the command line share: options, sessions, progress, output."""
