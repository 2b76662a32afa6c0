"""Models that the browser may use, named at the server's start, without addresses or keys."""

from pathlib import Path

from pollex.rooms import list_hooks
from pollex.runs.options import ModelOptions, ModelTable, read_model_tables
from pollex.web.hooks import ProfileTable

PROFILE_HINT = (
    "a profile is a table: [mini], with model, and base_url, key_env, price_in, price_out, max_cost"
)
MAX_MODEL_WAIT_SECONDS = 20.0
"""Seconds that somebody at a page waits for a model."""


def make_model_options(table: ModelTable, _file: Path) -> ModelOptions:
    """Return a table of the file as options of a model."""
    return table.within(max_wait=MAX_MODEL_WAIT_SECONDS)


MODEL_TABLE = ProfileTable(ModelTable, make_model_options)


def read_profiles(path: Path | None) -> dict[str, ModelOptions]:
    """Read a file of profiles; without one there is none.

    Raises:
        BadInput: It can't be read, or something in it is missing or wrong.
    """
    if path is None:
        return {}

    profile = next(iter(list_hooks(ProfileTable)), MODEL_TABLE)
    mend = ", ".join([PROFILE_HINT, *profile.fields]) + " where wanted"
    tables = read_model_tables(path, profile.kind, mend)
    profiles: dict[str, ModelOptions] = {}
    for name, table in tables.items():
        profiles[name] = profile.options(table, path)

    return profiles
