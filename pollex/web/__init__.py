"""The browser's view of a store: traces, conversations, rubric sets, labels. `app.application` makes it."""
