"""OpenVINO without its telemetry.

On import, `openvino` has its telemetry package ask an outside host and write an id into the home folder. Where that
package is missing, OpenVINO takes a stub of its own: for the time of the import it reads as missing.
"""

from __future__ import annotations

import sys

_TELEMETRY = "openvino_telemetry"

_loaded = sys.modules.get(_TELEMETRY)
sys.modules[_TELEMETRY] = None  # type: ignore[assignment]
try:
    import openvino as ov
    from openvino import opset13 as op
finally:
    del sys.modules[_TELEMETRY]
    if _loaded is not None:
        sys.modules[_TELEMETRY] = _loaded

__all__ = ["op", "ov"]
