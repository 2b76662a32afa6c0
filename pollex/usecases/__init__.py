"""The use cases: each is one class whose fields are its options, for the terminal and for Python alike."""
