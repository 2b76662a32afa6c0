"""An address that is told of alerts: signed, tried again, never sent on, and without the words of a log."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence

from pollex.errors import PollexError
from pollex.web.alerts import Alert
from pollex.web.site import Site
from pollex.web.typed_endpoints import require_endpoint

SIGNATURE_HEADER = "X-Pollex-Signature"
RETRY_WAITS_SECONDS = (0.0, 2.0, 10.0)
"""Seconds before each try."""
WEBHOOK_TIMEOUT_SECONDS = 10.0
"""Seconds that an answer may take."""


def make_webhook_message(alerts: Sequence[Alert], *, with_text: bool) -> dict[str, object]:
    """Return what is told of alerts: ids and figures; the words of rubrics only where that was said."""
    names = ("rubric", "polarity", "before", "after", "low", "high", "n", "run", "against", "time")
    rows = []
    for alert in alerts:
        rows.append({name: getattr(alert, name) for name in names})

    if with_text:
        rows = [row | {"text": alert.text} for row, alert in zip(rows, alerts, strict=True)]

    return {"event": "alerts", "alerts": rows}


def sign_message(secret: str, moment: str, body: bytes) -> str:
    """Return the signature of a message: HMAC-SHA256 of its time, a dot, and its body."""
    return hmac.new(secret.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()


def tell_webhook(
    site: Site,
    address: str,
    secret: str,
    alerts: Sequence[Alert],
    *,
    with_text: bool,
) -> str:
    """Tell an address of alerts; return what became of it, in words."""
    import httpx2  # it takes a tenth of a second, and few servers tell anybody

    body = json.dumps(make_webhook_message(alerts, with_text=with_text)).encode()
    answer = ""
    for wait in RETRY_WAITS_SECONDS:
        time.sleep(wait)
        # each try has a time and a signature of its own
        moment = str(int(time.time()))
        signed = f"t={moment},v1={sign_message(secret, moment, body)}"
        headers = {"Content-Type": "application/json", SIGNATURE_HEADER: signed}
        try:
            # what its name leads to may be another machine by now
            require_endpoint(site, address)
            status = _send_message(address, body, headers)
        except PollexError as error:
            return f"not told: {error.what}"
        except httpx2.HTTPError as error:
            answer = f"not told: {type(error).__name__}"
            continue

        if status < 300:
            return f"told, {status}"
        answer = f"not told: it answered {status}"
        # it understood and refuses: another try would not help
        if status < 500:
            return answer

    return answer


def _send_message(address: str, body: bytes, headers: Mapping[str, str]) -> int:
    """Send a message; return the status of the answer, whose text is never read: it may have no end."""
    import httpx2  # it takes a tenth of a second, and few servers tell anybody

    with (
        # no proxy of the environment; no other address that an answer names is followed
        httpx2.Client(timeout=WEBHOOK_TIMEOUT_SECONDS, trust_env=False) as client,
        client.stream("POST", address, content=body, headers=headers) as response,
    ):
        return int(response.status_code)
