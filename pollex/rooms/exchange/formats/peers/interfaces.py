"""Interfaces of other tools: reading logs page by page, and sending scores."""

import base64
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import UUID

from pollex.errors import WrongUse
from pollex.formats.assembly.log_parts import parse_timestamp
from pollex.text import JsonDict, JsonObject

Row = JsonDict
Environment = Mapping[str, str]


class PeerRequest(NamedTuple):
    """One request.

    Attributes:
        query: Pairs, since a name may stand several times.
        body: What is sent as JSON; None for GET.
    """

    path: str
    query: Sequence[tuple[str, str]] = ()
    body: object = None
    method: str = ""


class PagePosition(NamedTuple):
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


class PeerPage(NamedTuple):
    """An answer's rows, and the cursor of the next page; empty at the end."""

    rows: list[Row]
    cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStream:
    """One kind of rows; `interfaces.toml` says what its fields mean."""

    name: str
    path: str
    query: Mapping[str, str] | None = None
    body: Mapping[str, object] | None = None
    rows: str = "data"
    next: Sequence[str] = ("meta.cursor", "next_cursor")
    time: str = ""
    about: str = ""
    ids: str = ""
    id: Sequence[str] = ()
    kept: bool = True
    counted: bool = False

    def ask(self, where: PagePosition) -> PeerRequest:
        """Return the request for a page."""
        path, query, body = (
            _fill_places(form, where) for form in (self.path, self.query, self.body)
        )
        return PeerRequest(
            path,
            [*((self.ids, id_) for id_ in where.ids if self.ids), *(query or {}).items()],
            body,
        )

    def page(self, answer: Any) -> PeerPage:
        """Read an answer."""
        cursor = next(
            (text for name in self.next if (text := get_nested_text(answer, *name.split(".")))),
            "",
        )
        return PeerPage(
            [ROW_CONVERTERS.get(self.name, dict)(row) for row in get_rows(answer, self.rows)],
            cursor,
        )


@dataclass(frozen=True, slots=True)
class PeerInterface:
    """A tool's interface; `interfaces.toml` says what its fields mean.

    Attributes:
        keys: Variables of keys that have to be there, and `optional` those that may be.
        push: Makes requests of what is sent; None where nothing can be.
        sent: What each entry that is sent must have: a value under one name of each group.
        headers: Made from the variables with keys.
        stale: Of a request, what to ask about it first, and what then to send to take an older one
            away.
    """

    name: str
    url: tuple[tuple[str, ...], str]
    keys: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    streams: tuple[RowStream, ...] = ()
    project: bool = False
    push: Callable[[list[Row]], Iterator[PeerRequest]] | None = None
    sent: Sequence[Sequence[str]] = ()
    headers: Callable[[Environment], dict[str, str]] = lambda _: {}
    named: Callable[[str], tuple[PeerRequest, Callable[[Any], str]] | None] = lambda _: None
    stale: Callable[[Row], tuple[PeerRequest, Callable[[Any], list[PeerRequest]]]] | None = None

    def lacks(self, entry: Row) -> str:
        """Return the names of which an entry that is to be sent has none; empty where it has all."""
        for names in self.sent:
            if not any(entry.get(name) for name in names):
                return " or ".join(names)
        return ""


def _fill_places(value: Any, where: PagePosition) -> Any:
    """Return what a table has with the position in its places; None for what has a place and nothing for it."""
    # an empty place takes its whole entry with it, so that a request has no empty parameters
    if isinstance(value, Mapping):
        return {
            name: filled
            for name, inner in value.items()
            if (filled := _fill_places(inner, where)) is not None
        }
    if isinstance(value, list):
        return [_fill_places(inner, where) for inner in value]
    if not isinstance(value, str):
        return value

    # interfaces want the time as text or in milliseconds
    since = parse_timestamp(where.since)
    position = where._asdict() | {"since_ms": "" if since is None else str(int(since * 1000))}
    places = re.findall(r"\{(\w+)\}", value)
    # a project may be empty: some tools have one for all
    if all(position[name] for name in places if name != "project"):
        return value.format(**position)
    return None


def get_rows(answer: object, name: str = "data") -> list[Row]:
    if isinstance(answer, Mapping):
        listed = answer.get(name)
    else:
        listed = answer

    if isinstance(listed, list):
        return [row for row in listed if isinstance(row, dict)]
    return []


def get_nested_text(row: object, *names: str) -> str:
    """Return the text under names inside one another; empty where there is none."""
    for name in names:
        if isinstance(row, Mapping):
            row = row.get(name)
        else:
            row = None

    return str(row or "")


ROWS_A_PAGE = 100
"""Rows that are asked for at once."""


def _make_basic_auth(environment: Environment) -> dict[str, str]:
    pair = (
        f"{environment.get('LANGFUSE_PUBLIC_KEY', '')}:{environment.get('LANGFUSE_SECRET_KEY', '')}"
    )
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _make_bearer_auth(name: str) -> Callable[[Environment], dict[str, str]]:
    return lambda environment: (
        {"Authorization": f"Bearer {environment[name]}"} if environment.get(name) else {}
    )


def _make_langfuse_requests(requests: list[Row]) -> Iterator[PeerRequest]:
    for begin in range(0, len(requests), ROWS_A_PAGE):
        yield PeerRequest("/api/public/scores", body=requests[begin : begin + ROWS_A_PAGE])


def _find_langsmith_project(name: str) -> tuple[PeerRequest, Callable[[Any], str]] | None:
    try:
        UUID(name)
    except ValueError:
        ask = PeerRequest("/api/v1/sessions", [("name", name), ("limit", "1")])
        return ask, lambda answer: str(get_rows(answer)[0]["id"])

    return None


def _make_phoenix_requests(annotations: list[Row]) -> Iterator[PeerRequest]:
    """Yield requests by kind of target; an identifier makes a repeat an update."""
    for name in ("session", "trace", "span"):
        # an annotation has the id of exactly one kind of target
        of_kind = []
        for annotation in annotations:
            if annotation.get(f"{name}_id"):
                of_kind.append(annotation)

        for begin in range(0, len(of_kind), ROWS_A_PAGE):
            yield PeerRequest(
                f"/v1/{name}_annotations",
                [("sync", "true")],
                {"data": of_kind[begin : begin + ROWS_A_PAGE]},
            )


def _make_opik_requests(requests: list[Row]) -> Iterator[PeerRequest]:
    # scores of threads and of traces go to different addresses
    for key, path in (("thread_id", "threads"), ("id", "traces")):
        scores = []
        # `request` is the exported form's own field, not the interface's
        for score in requests:
            if score.get(key):
                scores.append({k: v for k, v in score.items() if k != "request"})

        for begin in range(0, len(scores), ROWS_A_PAGE):
            body = {"scores": scores[begin : begin + ROWS_A_PAGE]}
            yield PeerRequest(
                f"/v1/private/{path}/feedback-scores",
                body=body,
                method="PUT",
            )


MLFLOW_TRACES_PATH = "/api/3.0/mlflow/traces"


def _find_mlflow_experiment(name: str) -> tuple[PeerRequest, Callable[[Any], str]] | None:
    if name.isdigit():
        return None

    ask = PeerRequest("/api/2.0/mlflow/experiments/get-by-name", [("experiment_name", name)])
    return ask, lambda answer: get_nested_text(answer, "experiment", "experiment_id")


def _find_stale_assessments(request: Row) -> tuple[PeerRequest, Callable[[Any], list[PeerRequest]]]:
    """Return a query for earlier assessments with the same id, and requests to delete them.

    MLflow keeps every assessment, so the earlier ones are deleted before one is sent again.
    """
    trace = str(request["trace_id"])
    # the id that an earlier sending wrote into the metadata
    id_ = get_nested_text(request, "metadata", "id")

    def removals(answer: Any) -> list[PeerRequest]:
        # assessments stand within the traces of the answer
        assessments = []
        for row in get_rows(answer, "traces"):
            assessments.extend(get_rows(row.get("trace_info"), "assessments"))

        # those that an earlier sending made
        removals: list[PeerRequest] = []
        for assessment in assessments:
            number = get_nested_text(assessment, "assessment_id")
            if id_ and number and get_nested_text(assessment, "metadata", "id") == id_:
                path = f"{_get_assessments_path(trace)}/{_quote_id(number)}"
                removals.append(PeerRequest(path, method="DELETE"))

        return removals

    return PeerRequest(f"{MLFLOW_TRACES_PATH}/batchGet", [("trace_ids", trace)]), removals


def _make_mlflow_requests(assessments: list[Row]) -> Iterator[PeerRequest]:
    for assessment in assessments:
        path = _get_assessments_path(str(assessment["trace_id"]))
        yield PeerRequest(path, body={"assessment": assessment})


def _get_assessments_path(trace: str) -> str:
    """Return the address of a trace's assessments."""
    return f"{MLFLOW_TRACES_PATH}/{_quote_id(trace)}/assessments"


def _quote_id(id_: str) -> str:
    """Return an id as one part of an address.

    Raises:
        WrongUse: It is nothing but dots, which would climb out of the address.
    """
    if not id_.strip("."):
        what = f"the id {id_!r} can't stand in an address"
        raise WrongUse(what, hint="take it out of the file, or out of the tool")
    # half a character (a lone surrogate) is no text of an address
    return quote(id_.encode("utf-8", "replace"), safe="")


def _make_whole_sender(path: str) -> Callable[[list[Row]], Iterator[PeerRequest]]:
    """Return what sends each entry as it stands to a path."""

    def requests_of(entries: list[Row]) -> Iterator[PeerRequest]:
        for entry in entries:
            yield PeerRequest(path, body=entry)

    return requests_of


ROW_CONVERTERS: Mapping[str, Callable[[Row], Row]] = {
    "traces": lambda row: {"info": row.get("trace_info"), "data": {"spans": row.get("spans") or []}}
}
INTERFACE_FUNCTIONS: Mapping[str, JsonObject] = {
    "langfuse": {
        "headers": _make_basic_auth,
        "push": _make_langfuse_requests,
        "sent": (("name",), ("sessionId", "traceId", "observationId")),
    },
    "langsmith": {
        "headers": lambda environment: {"x-api-key": environment.get("LANGSMITH_API_KEY", "")},
        "push": _make_whole_sender("/api/v1/feedback"),
        "sent": (("key",), ("run_id", "trace_id", "session_id")),
        "named": _find_langsmith_project,
    },
    "phoenix": {
        "headers": _make_bearer_auth("PHOENIX_API_KEY"),
        "push": _make_phoenix_requests,
        "sent": (("name",), ("session_id", "trace_id", "span_id")),
    },
    "mlflow": {
        "headers": _make_bearer_auth("MLFLOW_TRACKING_TOKEN"),
        "push": _make_mlflow_requests,
        "sent": (("trace_id",), ("assessment_name",)),
        "named": _find_mlflow_experiment,
        "stale": _find_stale_assessments,
    },
    "open-webui": {"headers": _make_bearer_auth("OPEN_WEBUI_API_KEY")},
    "opik": {
        "headers": lambda environment: {"authorization": environment.get("OPIK_API_KEY", "")},
        "push": _make_opik_requests,
        "sent": (("name",), ("thread_id", "id")),
    },
    "otel": {"push": _make_whole_sender("/v1/logs"), "sent": (("resourceLogs",),)},
}
"""What no table can say of an interface."""


def _read_interfaces() -> Iterator[PeerInterface]:
    for name, row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items():
        # variables of the environment that may give the address, and the usual one
        names, usual = row["url"]
        streams = tuple(RowStream(**stream) for stream in row.get("streams", ()))
        keys = tuple(row.get("keys", "").split())
        optional = tuple(row.get("optional", "").split())
        yield PeerInterface(
            name,
            (tuple(names.split()), usual),
            keys,
            optional,
            streams,
            row.get("project", False),
            # what a table can't say: headers, requests that send, names of projects
            **INTERFACE_FUNCTIONS[name],
        )


PEER_INTERFACES = {interface.name: interface for interface in _read_interfaces()}
