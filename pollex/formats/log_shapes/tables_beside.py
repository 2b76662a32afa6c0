"""Tables that stand beside conversations in a whole export, and hold no words of them: users, documents, flows."""

from __future__ import annotations

from pollex.formats.log_shapes.exports import Export

SIGNS = (
    ("id", "identifier", "metadata"),  # Chainlit
    ("id", "email", "phone_number"),  # ChatGPT
    ("id", "conversation_id", "title", "is_anonymous"),
    ("uuid", "full_name", "email_address"),  # Claude
    ("uuid", "name", "docs", "prompt_template"),
    ("id", "email", "password"),  # the AI SDK's template
    ("id", "kind", "title", "userId", "content"),
    ("id", "documentId", "originalText", "suggestedText"),
    ("id", "name", "flowData"),  # Flowise
    ("id", "name", "email", "role", "url"),  # Zendesk
    ("id", "object", "thread_id", "step_details"),  # OpenAI
    ("id", "object", "thread_id", "assistant_id", "status", "instructions"),
)
EXPORTS = (Export(name="tables without words", signs=SIGNS, read=lambda _: (), no_words=True),)
