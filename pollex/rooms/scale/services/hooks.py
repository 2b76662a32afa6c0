"""What the room does for verbs of the core."""

from pollex.services.hooks import OptionService

HOOKS = (
    OptionService("score", "engine", "pollex.rooms.scale.services.score_parts.score_in_parts"),
    OptionService("serve", "score", "pollex.rooms.scale.web.live.server.serve_scores"),
)
