"""What the room does for verbs of the core."""

from pollex.services.hooks import OptionWork

HOOKS = (
    OptionWork("score", "engine", "pollex.rooms.scale.services.score_parts.score_parts"),
    OptionWork("serve", "score", "pollex.rooms.scale.web.live.server.serve_scores"),
)
