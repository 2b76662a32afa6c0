"""The browser's view of a store: traces, conversations, rubric sets, labels. `app.make_application` makes it."""
