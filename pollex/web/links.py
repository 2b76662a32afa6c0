"""Every address of the application; ids of conversations are in the query."""

from urllib.parse import quote, urlencode

HOME = "/"
ENTER = "/enter"
HEALTH = "/api/health"
LOGS = "/logs"
UPLOAD = "/api/logs/files"
RUNS = "/runs"
CONVERSATIONS = "/conversations"
CONVERSATION = "/conversation"
CALIBRATION = "/calibration"
CHILDREN = "/children"
BEGIN = "/begin"
PLAN = "/begin/plan"
AT_WORK = "/at-work"
DRAFTS = "/drafts"
SETS = "/sets"
SET_DIFF = "/sets/diff"
COMPARE = "/compare"
CHECK = "/check"
REPLAY = "/replay"
LABEL = "/label"
AGREEMENT = "/label/agreement"
ADJUDICATE = "/label/adjudicate"
SHARE = "/share"
WATCH = "/watch"
SHARED = "/pass-on"
STATIC = "/static"
NDJSON = "application/x-ndjson"


def address(path: str, **query: object) -> str:
    """Join a path and a query; parameters that are None or empty are left out."""
    # 0 equals False: both are left out, as they are what pages assume
    parameters = {}
    for name, value in query.items():
        if value not in (None, "", False):
            parameters[name] = value

    if parameters:
        return f"{path}?{urlencode({name: _text(value) for name, value in parameters.items()})}"
    return path


def calibrator(name: str) -> str:
    """Link to a calibrator: a folder that was named at the start, or that of a rubric set by its id."""
    return f"{CALIBRATION}/{quote(name, safe='')}"


def begin(slug: str, **query: object) -> str:
    """Link to the form of a use case."""
    return address(f"{BEGIN}/{slug}", **query)


def log(log_id: str, **query: object) -> str:
    """Link to what was read of a log that was brought."""
    return address(f"{LOGS}/{quote(log_id, safe='')}", **query)


def run(run_id: str, part: str = "", **query: object) -> str:
    """Link to a run, or to a part of it: `calls`, `call`, `live`, `errors`."""
    return address(
        f"{RUNS}/{quote(run_id, safe='')}" + (f"/{part}" if part else ""),
        **query,
    )


def conversations(run_id: str, **query: object) -> str:
    """Link to the list of a run's conversations."""
    return address(CONVERSATIONS, run=run_id, **query)


def conversation(
    run_id: str,
    conversation_id: str,
    turn: int | None = None,
    **query: object,
) -> str:
    """Link to a conversation, or to one of its turns."""
    return address(CONVERSATION, run=run_id, id=conversation_id, **query) + (
        "" if turn is None else f"#turn-{turn}"
    )


def rubric_set(set_id: str, **query: object) -> str:
    """Link to a rubric set."""
    return address(f"{SETS}/{quote(set_id, safe='')}", **query)


def rubric(set_id: str, rubric_id: str) -> str:
    """Link to where a rubric of a set came from."""
    return address(f"{SETS}/{quote(set_id, safe='')}/rubric", id=rubric_id)


def _text(value: object) -> str:
    return "1" if value is True else str(value)
