"""Exchange: what other tools ask of a store, or are given; see README.md."""
