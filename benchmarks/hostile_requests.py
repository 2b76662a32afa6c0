"""Requests of somebody who means harm, to pages that bring, begin and watch: as bytes of HTTP, drawn from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

BOUNDARY = "b0undary"
PATHS = (
    "../../../../etc/passwd",
    "/etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "C:\\Windows\\win.ini",
    "\\\\host\\share\\a.csv",
    "a\x00.csv",
    "~/.ssh/id_rsa",
    "-",
    "/dev/zero",
    "/proc/self/environ",
    "file:///etc/passwd",
    "http://169.254.169.254/latest/meta-data/",
    "s3://169.254.169.254/a",
    "gopher://127.0.0.1:25/",
    "sqlite:/etc/passwd?SELECT 1",
    "sqlite::memory:?ATTACH DATABASE '/tmp/x' AS x",
    "duckdb:x.db?COPY (SELECT 1) TO '/tmp/x'",
    "postgres://u:p@127.0.0.1/x?SELECT 1",
    "*",
    "/**/*",
    "[",
    "log:x",
    "' OR 1=1 --",
    "<script>alert(1)</script>",
    "{{7*7}}",
    "${jndi:ldap://x}",
    "\ud7ff\uffff\u202e",
    "a" * 3000,
    "",
)
CONTENTS = (
    b"",
    b"\x00" * 100,
    b"PK\x03\x04" + b"\xff" * 60,
    b"\x1f\x8b\x08" + b"\xff" * 60,
    b"\x28\xb5\x2f\xfd" + b"\xff" * 60,
    b"PAR1" + b"\xff" * 60,
    b"SQLite format 3\x00" + b"\xff" * 60,
    b"\xd0\xcf\x11\xe0" + b"\xff" * 60,
    b'{"id": 1, "messages": ' + b"[" * 5000,
    b'[{"a": 1e999}, {"a": ' + b"9" * 5000 + b"}]",
    b"id,text\n1,\xff\xfe\n",
    b"id;text\n" + b'"' * 999,
    b"%PDF-1.7",
    b"<svg onload=alert(1)>",
)
SEND_SITES = ("same-origin", "cross-site", "none", "same-site")
METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "FOO")


@dataclass(frozen=True)
class Target:
    """What is attacked.

    Attributes:
        host: Name and port.
        token: Of the server: whoever attacks has it.
        logs: Ids of logs that are there.
    """

    host: str
    token: str
    logs: Sequence[str]


@dataclass(frozen=True)
class HostileRequest:
    """A request before it is written as bytes.

    Attributes:
        framing: How its body is announced: rightly, as too long, too short, twice, in pieces.
    """

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    framing: str = "right"

    def written(self) -> bytes:
        """Return it as bytes."""
        lines = [f"{self.method} {self.path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        announced = {
            "right": [f"Content-Length: {len(self.body)}"],
            "too long": [f"Content-Length: {len(self.body) + 10}"],
            "too short": [f"Content-Length: {max(len(self.body) - 10, 0)}"],
            "twice": [f"Content-Length: {len(self.body)}", f"Content-Length: {len(self.body) + 1}"],
            "both": ["Transfer-Encoding: chunked", f"Content-Length: {len(self.body)}"],
            "pieces": ["Transfer-Encoding: chunked"],
            "broken pieces": ["Transfer-Encoding: chunked"],
            "negative": ["Content-Length: -1"],
            "huge": ["Content-Length: 99999999999999999999"],
            "none": [],
        }[self.framing]
        body = self.body
        if self.framing in ("both", "pieces"):
            body = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
        if self.framing == "broken pieces":
            body = b"zz\r\n" + body
        head = "\r\n".join([*lines, *announced, "Connection: close", "", ""])
        return head.encode("utf-8", "replace") + body


FRAMINGS = (
    *("right",) * 12,
    "too long",
    "too short",
    "twice",
    "both",
    "pieces",
    "pieces",
    "broken pieces",
    "negative",
    "huge",
    "none",
)


def hostile_requests(target: Target, number: int, seed: int) -> Iterator[HostileRequest]:
    """Yield so many requests; the same for the same seed."""
    rng = random.Random(seed)
    kinds = (_upload, _upload, _place, _query, _query, _reading, _other, _begin, _watch, _run)
    for _ in range(number):
        request = rng.choice(kinds)(rng, target)
        yield HostileRequest(
            request.method,
            request.path,
            (*_headers(rng, target), *request.headers),
            request.body,
            rng.choice(FRAMINGS),
        )


def _begin(rng: random.Random, _: Target) -> HostileRequest:
    """Return a form of a use case, or a plan, with what it doesn't offer."""
    door = rng.choice(("learn", "score", "check", "remedy-run", "remedy-brief", _path(rng)))
    names = ("log", "o-rubrics", "o-target", "o-prompt", "o-edit", "o-new", "o-base_url", "o-out")
    names += ("assistant-as", "assistant-base_url", "profile", "do", "begun", "o-fail_if", "x")
    fields = {rng.choice(names): _path(rng) for _ in range(rng.randrange(5))}
    address = f"/begin/{quote(door, safe='')}"
    if rng.random() < 0.5:
        query = urlencode(fields, errors="replace")
        return HostileRequest("GET", f"{address}?{query}"[:8000], (), b"")
    return _form(f"/api{address}", fields | {"log": _path(rng)}, rng)


def _watch(rng: random.Random, _: Target) -> HostileRequest:
    """Return a folder or an address that nobody may name, or a report that isn't there."""
    if rng.random() < 0.3:
        query = urlencode({"id": _path(rng), rng.choice(("x", "as_file")): "1"}, errors="replace")
        path = rng.choice(("/pass-on/report", "/pass-on", "/watch"))
        return HostileRequest("GET", f"{path}?{query}"[:8000], (), b"")
    part = rng.choice(("folders", "removal", "webhook", "seen", "x"))
    # a folder that may be named is no attack
    fields = {"place": f"../{_path(rng)}", "url": _path(rng), "minutes": rng.choice(("1", "nan"))}
    names = rng.sample(sorted(fields), rng.randrange(1, 4))
    if part == "webhook":
        names = ["url"]
        fields["url"] = fields["url"] or "http://169.254.169.254/"
    return _form(f"/api/watch/{part}", {name: fields[name] for name in names}, rng)


def _run(rng: random.Random, _: Target) -> HostileRequest:
    """Return a question about a run or a command that isn't there."""
    id_ = quote(_path(rng), safe="")
    path = rng.choice(
        (f"/children/{id_}", f"/remedies/{id_}", f"/remedies/{id_}/todo.jsonl", f"/runs/{id_}")
    )
    if rng.random() < 0.5:
        return HostileRequest("GET", path[:8000], (), b"")
    part = rng.choice(("accept", "replies", "stop", "go-on"))
    fields = {"name": _path(rng), "lines": _path(rng), "confirmed": _path(rng), "key": "x"}
    names = rng.sample(sorted(fields), rng.randrange(1, 5))
    return _form(f"/api{path}/{part}"[:8000], {name: fields[name] for name in names}, rng)


def _headers(rng: random.Random, target: Target) -> Iterator[tuple[str, str]]:
    yield "Host", rng.choice((target.host,) * 20 + ("evil.example", ""))
    yield "Authorization", f"Bearer {rng.choice((target.token,) * 20 + ('x', ''))}"
    if rng.random() < 0.1:
        yield "Sec-Fetch-Site", rng.choice(SEND_SITES)
    if rng.random() < 0.05:
        yield "Origin", "http://evil.example"
    if rng.random() < 0.3:
        yield "Accept", rng.choice(("application/json", "text/html", "*/*"))


def _path(rng: random.Random) -> str:
    return rng.choice(PATHS)


def _upload(rng: random.Random, _: Target) -> HostileRequest:
    """Return an upload whose form, names or contents are made to hurt."""
    parts: list[bytes] = []
    for _part in range(rng.choice((0, 1, 1, 1, 2, 5))):
        field = rng.choice(("files",) * 5 + ("site", "path", "", "files[]", "../x"))
        name = _path(rng).replace('"', "%22")
        disposition = rng.choice(
            (f'form-data; name="{field}"; filename="{name}"',) * 6
            + (
                f'form-data; name="{field}"',
                f"form-data; name={field}; filename*=UTF-8''{quote(name)}",
                "form-data",
                "attachment",
                f'form-data; name="{field}"; filename="a"; filename="{name}"',
            )
        )
        headers = rng.choice(
            (
                f"Content-Disposition: {disposition}\r\n",
                f"Content-Disposition: {disposition}\r\nContent-Type: text/csv\r\n",
                f"Content-Disposition: {disposition}\r\n" + "A: b\r\n" * 20,
                f"Content-Disposition : {disposition}\r\n",
                "",
            )
        )
        content = rng.choice((*CONTENTS, rng.randbytes(rng.randrange(400))))
        parts.append(headers.encode("utf-8", "replace") + b"\r\n" + content)
    form = b"".join(f"--{BOUNDARY}\r\n".encode() + part + b"\r\n" for part in parts)
    form += rng.choice((f"--{BOUNDARY}--\r\n".encode(), b"", b"--", f"--{BOUNDARY}".encode()))
    if rng.random() < 0.2:
        form = form[: rng.randrange(len(form) + 1)]
    if rng.random() < 0.1:
        form = form.replace(b"\r\n", b"\n")
    kind = rng.choice(
        (f"multipart/form-data; boundary={BOUNDARY}",) * 8
        + (
            "multipart/form-data",
            f'multipart/form-data; boundary="{BOUNDARY}"',
            f"multipart/mixed; boundary={BOUNDARY}",
            "multipart/form-data; boundary=" + "b" * 300,
            "application/json",
            "",
        )
    )
    return HostileRequest("POST", "/api/logs/files", (("Content-Type", kind),), form)


def _place(rng: random.Random, _: Target) -> HostileRequest:
    """Return a place that nobody may read."""
    fields = {"place": _path(rng) + rng.choice(("", "", _path(rng)))}
    if rng.random() < 0.2:
        fields[rng.choice(("site", "x", "place_", "root"))] = _path(rng)
    return _form("/api/logs/place", fields, rng)


def _form(path: str, fields: dict[str, str], rng: random.Random) -> HostileRequest:
    as_json = rng.random() < 0.2
    kind = "application/json" if as_json else "application/x-www-form-urlencoded"
    text = json.dumps(fields) if as_json else urlencode(fields, errors="replace")
    body = text.encode("utf-8", "replace")
    if rng.random() < 0.1:
        body = body[: rng.randrange(len(body) + 1)] + b"\xff\x00"
    return HostileRequest("POST", path, (("Content-Type", kind),), body)


def _reading_fields(rng: random.Random) -> dict[str, str]:
    """Return fields of the form of a reading with what no form sends."""
    names = ("opt-columns", "opt-roles", "opt-label_field", "opt-encoding", "opt-max_bad")
    names += ("opt-thumbs", "opt-positive", "opt-negative", "opt-query_seconds", "opt-pairs")
    names += ("col-id", "col-messages[].content", "col-", "who-user", "val-up", "val-", "name")
    names += ("opt-store", "opt-domain", "opt-base_url", "opt-x", "site", "x")
    values = (*PATHS, "label", "text!", "messages", "user", "up", "!", "-1", "999999999999")
    values += ('{"conversation": "*"}', '{"text": ["a", "b"]}', "[1]", "[" * 2000, "null")
    values += ("utf-7", "rot13", "base64", "idna", "(a+)+$", ">=1e999", "*", "é" * 900)
    return {rng.choice(names): rng.choice(values) for _ in range(rng.randrange(6))}


def _query(rng: random.Random, target: Target) -> HostileRequest:
    """Return a question how a log is read otherwise."""
    log = rng.choice((*target.logs, *target.logs, quote(_path(rng), safe="")))
    part = rng.choice(("", "/part", "/reading", "/x"))
    begin = rng.choice(("/logs", "/api/logs"))
    query = urlencode(_reading_fields(rng), errors="replace")
    path = f"{begin}/{log}{part}?{query}"
    return HostileRequest(rng.choice(("GET",) * 8 + METHODS), path[:8000], (), b"")


def _reading(rng: random.Random, target: Target) -> HostileRequest:
    """Return a reading that is to be kept, or a removal of what isn't there."""
    log = rng.choice((*target.logs, quote(_path(rng), safe="")))
    if log not in target.logs and rng.random() < 0.5:
        return _form(f"/api/logs/{log}/removal", {}, rng)
    return _form(f"/api/logs/{log}/reading", _reading_fields(rng), rng)


def _other(rng: random.Random, _: Target) -> HostileRequest:
    """Return a pull from nowhere, or another method."""
    if rng.random() < 0.5:
        tool = rng.choice(("excel", "langfuse", "", _path(rng)))
        fields = {"tool": tool, "key-PATH": _path(rng), rng.choice(("project", "x")): _path(rng)}
        return _form("/api/logs/pull", fields, rng)
    path = rng.choice(("/logs", "/api/logs", "/api/logs/files", "/api/logs/place"))
    return HostileRequest(rng.choice(METHODS), path, (), rng.randbytes(rng.randrange(200)))
