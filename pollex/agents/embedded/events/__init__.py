"""Events of a log's domain: what happened, to what, what followed, with supporting quotes."""
