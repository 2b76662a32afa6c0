"""Every address of the application; ids of conversations are in the query."""

from urllib.parse import quote, urlencode

HOME_PATH = "/"
ENTER_PATH = "/enter"
HEALTH_PATH = "/api/health"
LOGS_PATH = "/logs"
UPLOAD_PATH = "/api/logs/files"
RUNS_PATH = "/runs"
CONVERSATIONS_PATH = "/conversations"
CONVERSATION_PATH = "/conversation"
CALIBRATION_PATH = "/calibration"
CHILDREN_PATH = "/children"
BEGIN_PATH = "/begin"
PLAN_PATH = "/begin/plan"
AT_WORK_PATH = "/at-work"
DRAFTS_PATH = "/drafts"
SETS_PATH = "/sets"
SET_DIFF_PATH = "/sets/diff"
COMPARE_PATH = "/compare"
CHECK_PATH = "/check"
REPLAY_PATH = "/replay"
LABEL_PATH = "/label"
AGREEMENT_PATH = "/label/agreement"
ADJUDICATE_PATH = "/label/adjudicate"
SHARE_PATH = "/share"
WATCH_PATH = "/watch"
SHARING_PATH = "/pass-on"
STATIC_PATH = "/static"
NDJSON_CONTENT_TYPE = "application/x-ndjson"


def make_address(path: str, **query: object) -> str:
    """Join a path and a query; parameters that are None or empty are left out."""
    # 0 equals False: both are left out, as they are what pages assume
    parameters = {}
    for name, value in query.items():
        if value not in (None, "", False):
            parameters[name] = value

    if parameters:
        return f"{path}?{urlencode({name: _format_parameter(value) for name, value in parameters.items()})}"
    return path


def link_to_calibrator(name: str) -> str:
    """Link to a calibrator: a folder that was named at the start, or that of a rubric set by its id."""
    return f"{CALIBRATION_PATH}/{quote(name, safe='')}"


def link_to_form(slug: str, **query: object) -> str:
    """Link to the form of a use case."""
    return make_address(f"{BEGIN_PATH}/{slug}", **query)


def link_to_log(log_id: str, **query: object) -> str:
    """Link to what was read of a log that was brought."""
    return make_address(f"{LOGS_PATH}/{quote(log_id, safe='')}", **query)


def link_to_run(run_id: str, part: str = "", **query: object) -> str:
    """Link to a run, or to a part of it: `calls`, `call`, `live`, `errors`."""
    return make_address(
        f"{RUNS_PATH}/{quote(run_id, safe='')}" + (f"/{part}" if part else ""),
        **query,
    )


def link_to_conversations(run_id: str, **query: object) -> str:
    """Link to the list of a run's conversations."""
    return make_address(CONVERSATIONS_PATH, run=run_id, **query)


def link_to_conversation(
    run_id: str,
    conversation_id: str,
    turn: int | None = None,
    **query: object,
) -> str:
    """Link to a conversation, or to one of its turns."""
    return make_address(CONVERSATION_PATH, run=run_id, id=conversation_id, **query) + (
        "" if turn is None else f"#turn-{turn}"
    )


def link_to_rubric_set(set_id: str, **query: object) -> str:
    """Link to a rubric set."""
    return make_address(f"{SETS_PATH}/{quote(set_id, safe='')}", **query)


def link_to_rubric(set_id: str, rubric_id: str) -> str:
    """Link to where a rubric of a set came from."""
    return make_address(f"{SETS_PATH}/{quote(set_id, safe='')}/rubric", id=rubric_id)


def _format_parameter(value: object) -> str:
    return "1" if value is True else str(value)
