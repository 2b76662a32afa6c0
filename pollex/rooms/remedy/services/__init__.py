"""From a rubric to a change of the assistant's prompt, with a proof whether it helps."""
