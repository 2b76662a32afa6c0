"""An address that is told of alerts: signed, tried again, never sent on, and without the words of a log."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Sequence
from typing import Any

from pollex.errors import PollexError
from pollex.web.alerts import Alert
from pollex.web.site import Site
from pollex.web.typed_endpoints import require_endpoint

SIGNATURE = "X-Pollex-Signature"
RETRY_WAITS_SECONDS = (0.0, 2.0, 10.0)
"""Seconds before each try."""
WEBHOOK_TIMEOUT_SECONDS = 10.0
"""Seconds that an answer may take."""


def make_webhook_message(alerts: Sequence[Alert], *, with_text: bool) -> dict[str, Any]:
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
        headers = {"Content-Type": "application/json", SIGNATURE: signed}
        try:
            # what its name leads to may be another machine by now
            require_endpoint(site, address)
            response = httpx2.post(
                address,
                content=body,
                headers=headers,
                timeout=WEBHOOK_TIMEOUT_SECONDS,
                follow_redirects=False,
                trust_env=False,  # no proxy of the environment
            )
        except PollexError as error:
            return f"not told: {error.what}"
        except httpx2.HTTPError as error:
            answer = f"not told: {type(error).__name__}"
            continue

        if response.status_code < 300:
            return f"told, {response.status_code}"
        answer = f"not told: it answered {response.status_code}"
        # it understood and refuses: another try would not help
        if response.status_code < 500:
            return answer

    return answer
