"""Interfaces of other tools: reading logs page by page, and sending scores."""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from pollex.formats.assembly.pieces import moment

Row = dict[str, Any]
Environment = Mapping[str, str]


class Ask(NamedTuple):
    """One request.

    Attributes:
        query: Pairs, since a name may stand several times.
        body: What is sent as JSON; None for GET.
    """

    path: str
    query: Sequence[tuple[str, str]] = ()
    body: Any = None
    method: str = ""


class Where(NamedTuple):
    """The position from which pages are wanted.

    Attributes:
        cursor: Cursor of the next page; empty for the first.
        since: Only rows of this time and later, as ISO text; empty for all.
        ids: Ids from other rows, for streams that are queried by them.
    """

    project: str
    cursor: str = ""
    since: str = ""
    ids: tuple[str, ...] = ()


class Page(NamedTuple):
    """An answer's rows, and the cursor of the next page; empty at the end."""

    rows: list[Row]
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Stream:
    """One kind of rows.

    Attributes:
        about: The stream whose rows' ids this one is asked by, and how they are found in a row.
        time: The field that says when a row was made.
        kept: Whether its rows are written, and not only asked about.
        counted: Whether the next page is asked for by the number of rows before it.
    """

    name: str
    ask: Callable[[Where], Ask]
    page: Callable[[Any], Page]
    time: str = ""
    about: str = ""
    id_of: Callable[[Row], str] | None = None
    kept: bool = True
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Interface:
    """A tool's interface.

    Attributes:
        url: Names of the variables with its address, and the usual one.
        headers: Made from the variables with keys.
        keys: Variables that have to be there.
        wants_project: Whether a project has to be named.
        named: Of a project's name, what to ask for its id, and where the id stands in the answer; None for an id.
        stale: Of a request, what to ask about it first, and what then to send to take an older one away.
    """

    name: str
    url: tuple[tuple[str, ...], str]
    keys: tuple[str, ...]
    headers: Callable[[Environment], dict[str, str]]
    streams: tuple[Stream, ...] = ()
    push: Callable[[Any], Iterator[Ask]] | None = None
    wants_project: bool = False
    named: Callable[[str], tuple[Ask, Callable[[Any], str]] | None] = lambda _: None
    stale: Callable[[Row], tuple[Ask, Callable[[Any], list[Ask]]]] | None = None


def pairs(**given: object) -> list[tuple[str, str]]:
    """Return names and values, without the empty ones."""
    return [(name.rstrip("_"), str(value)) for name, value in given.items() if value not in (None, "")]


def rows_in(answer: Any, name: str = "data") -> list[Row]:
    listed = answer.get(name) if isinstance(answer, Mapping) else answer
    return [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []


def inside(*names: str) -> Callable[[Row], str]:
    def found(row: Row) -> str:
        value: Any = row
        for name in names:
            value = value.get(name) if isinstance(value, Mapping) else None
        return str(value or "")

    return found


PAGE = 100
"""Rows that are asked for at once."""


def _data(answer: Any) -> Page:
    """Read rows under `data`, and the cursor next to them or under `meta`."""
    beside = answer if isinstance(answer, Mapping) else {}
    meta = beside.get("meta")
    cursor = (meta.get("cursor") if isinstance(meta, Mapping) else None) or beside.get("next_cursor")
    return Page(rows_in(answer), str(cursor or ""))


def _basic(environment: Environment) -> dict[str, str]:
    pair = f"{environment.get('LANGFUSE_PUBLIC_KEY', '')}:{environment.get('LANGFUSE_SECRET_KEY', '')}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _bearer(name: str) -> Callable[[Environment], dict[str, str]]:
    return lambda environment: {"Authorization": f"Bearer {environment[name]}"} if environment.get(name) else {}


def _langfuse_scores(requests: Any) -> Iterator[Ask]:
    for begin in range(0, len(requests), PAGE):
        yield Ask("/api/public/scores", body=requests[begin : begin + PAGE])


def _observations(where: Where) -> Ask:
    fields = "core,basic,time,io,metadata,model,trace_context"
    return Ask(
        "/api/public/v2/observations",
        pairs(limit=PAGE, cursor=where.cursor, fromStartTime=where.since, fields=fields),
    )


def _scores(where: Where) -> Ask:
    query = pairs(limit=PAGE, cursor=where.cursor, fromTimestamp=where.since, fields="details,subject")
    return Ask("/api/public/v3/scores", query)


LANGFUSE = Interface(
    name="langfuse",
    url=(("LANGFUSE_BASE_URL", "LANGFUSE_HOST"), "https://cloud.langfuse.com"),
    keys=("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"),
    headers=_basic,
    streams=(
        Stream("observations", _observations, _data, "startTime"),
        Stream("scores", _scores, _data, "timestamp"),
    ),
    push=_langfuse_scores,
)


RUN_FIELDS = (
    *("id", "trace_id", "parent_run_id", "name", "run_type", "start_time", "end_time", "status", "error"),
    *("inputs", "outputs", "extra", "tags", "feedback_stats", "session_id", "dotted_order"),
)


def _langsmith_project(name: str) -> tuple[Ask, Callable[[Any], str]] | None:
    try:
        UUID(name)
    except ValueError:
        return Ask("/api/v1/sessions", pairs(name=name, limit=1)), lambda answer: str(rows_in(answer)[0]["id"])
    return None


def _runs(where: Where) -> Ask:
    body = {
        "select": RUN_FIELDS,
        "session": [where.project],
        "limit": PAGE,
        "cursor": where.cursor or None,
        "start_time": where.since or None,
    }
    return Ask("/api/v1/runs/query", body={name: value for name, value in body.items() if value is not None})


def _runs_page(answer: Any) -> Page:
    cursors = answer.get("cursors") if isinstance(answer, Mapping) else None
    return Page(rows_in(answer, "runs"), str((cursors or {}).get("next") or ""))


def _feedback(where: Where) -> Ask:
    runs = [("run", id_) for id_ in where.ids]
    return Ask("/api/v1/feedback", [*runs, *pairs(limit=PAGE, offset=where.cursor)])


def _feedback_page(answer: Any) -> Page:
    return Page(rows_in(answer))


LANGSMITH = Interface(
    name="langsmith",
    url=(("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"), "https://api.smith.langchain.com"),
    keys=("LANGSMITH_API_KEY",),
    headers=lambda environment: {"x-api-key": environment.get("LANGSMITH_API_KEY", "")},
    streams=(
        Stream("runs", _runs, _runs_page, "start_time"),
        Stream(
            *("feedback", _feedback, _feedback_page),
            about="runs",
            id_of=lambda row: str(row.get("id") or ""),
            counted=True,
        ),
    ),
    push=lambda requests: (Ask("/api/v1/feedback", body=request) for request in requests),
    wants_project=True,
    named=_langsmith_project,
)


def _spans(where: Where) -> Ask:
    return Ask(
        f"/v1/projects/{where.project}/spans",
        pairs(limit=PAGE, cursor=where.cursor, start_time=where.since),
    )


def _annotations(kind: str) -> Callable[[Where], Ask]:
    def ask(where: Where) -> Ask:
        ids = [(f"{kind}_ids", id_) for id_ in where.ids]
        return Ask(f"/v1/projects/{where.project}/{kind}_annotations", [*ids, *pairs(limit=PAGE, cursor=where.cursor)])

    return ask


def _phoenix_annotations(requests: Any) -> Iterator[Ask]:
    """Yield requests by kind of target; an identifier makes a repeat an update."""
    listed = requests["data"] if isinstance(requests, Mapping) else requests
    for name in ("session", "trace", "span"):
        of_kind = [one for one in listed if one.get(f"{name}_id")]
        for begin in range(0, len(of_kind), PAGE):
            yield Ask(f"/v1/{name}_annotations", [("sync", "true")], {"data": of_kind[begin : begin + PAGE]})


PHOENIX = Interface(
    name="phoenix",
    url=(("PHOENIX_BASE_URL", "PHOENIX_COLLECTOR_ENDPOINT"), "http://localhost:6006"),
    keys=(),
    headers=_bearer("PHOENIX_API_KEY"),
    streams=(
        Stream("spans", _spans, _data, "start_time"),
        *(
            Stream(f"{kind}_annotations", _annotations(kind), _data, about="spans", id_of=inside(*path))
            for kind, path in (
                ("span", ("context", "span_id")),
                ("trace", ("context", "trace_id")),
                ("session", ("attributes", "session.id")),
            )
        ),
    ),
    push=_phoenix_annotations,
    wants_project=True,
)

OPEN_WEBUI = Interface(
    name="open-webui",
    url=(("OPEN_WEBUI_URL",), "http://localhost:8080"),
    keys=("OPEN_WEBUI_API_KEY",),
    headers=_bearer("OPEN_WEBUI_API_KEY"),
    streams=(
        Stream(
            "feedback",
            lambda _: Ask("/api/v1/evaluations/feedbacks/all/export"),
            lambda answer: Page(rows_in(answer)),
            "updated_at",
        ),
    ),
)


def _opik_scores(requests: Any) -> Iterator[Ask]:
    for key, path in (("thread_id", "threads"), ("id", "traces")):
        scores = [{k: v for k, v in one.items() if k != "request"} for one in requests if one.get(key)]
        for begin in range(0, len(scores), PAGE):
            body = {"scores": scores[begin : begin + PAGE]}
            yield Ask(f"/v1/private/{path}/feedback-scores", body=body, method="PUT")


OPIK = Interface(
    name="opik",
    url=(("OPIK_URL_OVERRIDE",), "https://www.comet.com/opik/api"),
    keys=(),
    headers=lambda environment: {"authorization": environment.get("OPIK_API_KEY", "")},
    push=_opik_scores,
)
OTEL = Interface(
    name="otel",
    url=(("OTEL_EXPORTER_OTLP_ENDPOINT",), "http://localhost:4318"),
    keys=(),
    headers=lambda _: {},
    push=lambda requests: iter([Ask("/v1/logs", body=requests)]),
)

TRACES = "/api/3.0/mlflow/traces"


def _experiment(name: str) -> tuple[Ask, Callable[[Any], str]] | None:
    if name.isdigit():
        return None
    query = pairs(experiment_name=name)
    return Ask("/api/2.0/mlflow/experiments/get-by-name", query), inside("experiment", "experiment_id")


def _trace_infos(where: Where) -> Ask:
    place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": where.project}}
    body: Row = {"locations": [place], "max_results": PAGE, "order_by": ["timestamp_ms ASC"]}
    if since := moment(where.since):
        body["filter"] = f"timestamp_ms >= {int(since * 1000)}"
    return Ask(f"{TRACES}/search", body=body | ({"page_token": where.cursor} if where.cursor else {}))


def _trace_infos_page(answer: Any) -> Page:
    return Page(rows_in(answer, "traces"), str(answer.get("next_page_token") or ""))


def _traces(where: Where) -> Ask:
    return Ask(f"{TRACES}/batchGet", [("trace_ids", id_) for id_ in where.ids])


def _traces_page(answer: Any) -> Page:
    rows = rows_in(answer, "traces")
    return Page([{"info": row.get("trace_info"), "data": {"spans": row.get("spans") or []}} for row in rows])


def _stale_assessments(request: Row) -> tuple[Ask, Callable[[Any], list[Ask]]]:
    """Return a query for earlier assessments with the same id, and requests to delete them.

    MLflow keeps every assessment, so the earlier ones are deleted before one is sent again.
    """
    trace, id_ = str(request.get("trace_id")), (request.get("metadata") or {}).get("id")

    def removals(answer: Any) -> list[Ask]:
        found = [
            one for row in rows_in(answer, "traces") for one in rows_in((row.get("trace_info") or {}), "assessments")
        ]
        same = [one for one in found if id_ is not None and (one.get("metadata") or {}).get("id") == id_]
        return [Ask(f"{TRACES}/{trace}/assessments/{one['assessment_id']}", method="DELETE") for one in same]

    return _traces(Where("", ids=(trace,))), removals


MLFLOW = Interface(
    name="mlflow",
    url=(("MLFLOW_TRACKING_URI",), "http://localhost:5000"),
    keys=(),
    headers=_bearer("MLFLOW_TRACKING_TOKEN"),
    streams=(
        Stream("trace infos", _trace_infos, _trace_infos_page, "request_time", kept=False),
        Stream("traces", _traces, _traces_page, about="trace infos", id_of=inside("trace_id")),
    ),
    push=lambda requests: (
        Ask(f"{TRACES}/{request['trace_id']}/assessments", body={"assessment": request}) for request in requests
    ),
    wants_project=True,
    named=_experiment,
    stale=_stale_assessments,
)
INTERFACES = {one.name: one for one in (LANGFUSE, LANGSMITH, PHOENIX, MLFLOW, OPEN_WEBUI, OPIK, OTEL)}
