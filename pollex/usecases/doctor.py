"""What is installed, and what works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pollex.runs.options import ModelOptions
from pollex.usecases.families import StoreOptions, declare_model_option, declare_url_option
from pollex.usecases.use_case import CallContext, UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.services.doctor import ExaminationResult


@use_case("doctor")
class CheckInstallation(StoreOptions, UseCase["ExaminationResult"]):
    """Check the installation, the embedding weights, the store and a model's endpoint.

    An endpoint is asked up to some fifteen questions of about 30 tokens.

    \b
    Examples
      pollex doctor
      pollex doctor --json
      pollex doctor --model MODEL
      pollex doctor --model qwen3 --base-url http://localhost:8000/v1
      pollex doctor --rebuild
    """

    does = "doctor.examine_installation"
    apart = True
    model: str | None = declare_model_option("LLM for all roles; default: built-in (no LLM).")
    base_url: str | None = declare_url_option()
    rebuild: bool = opt(
        "Rebuild a damaged store's database, or bring an earlier pollex's over.",
        default=False,
    )

    def as_model(self, context: CallContext) -> ModelOptions:
        """Return the model that is asked."""
        return ModelOptions(model=self.model, base_url=self.base_url)

    def exit_code(self, result: ExaminationResult) -> int:
        """Return 1 where something doesn't work."""
        return 0 if result.well else 1
