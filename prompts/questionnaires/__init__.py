"""Questionnaires that come with pollex, as TOML; `pollex.formats.questionnaires` reads them."""
