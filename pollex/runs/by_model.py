"""Work that one model does by itself: answering, grading, a questionnaire, simulated dialogues."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pollex.agents.llm.asker import PromptAsker
from pollex.errors import WrongUse
from pollex.prompts.domain import DomainProfile
from pollex.runs.options import ModelOptions
from pollex.runs.roles import RunRoles, build_run_roles
from pollex.runs.run import RunSettings
from pollex.runs.usage import ModelUsage
from pollex.runs.workspace import Workspace
from pollex.store.store import Store

ResultType = TypeVar("ResultType")


def require_model_name(model: ModelOptions, why: str) -> str:
    """Return the model's name.

    Raises:
        WrongUse: None is named.
    """
    if model.name is None:
        raise WrongUse(why, hint="name one", option={"model": "M"})
    return model.name


def make_prompt_asker(
    staff: RunRoles,
    model: ModelOptions,
    store: Store,
    seed: int,
    profile: DomainProfile | None = None,
) -> PromptAsker:
    """Return what judges and the model under test ask with.

    Args:
        profile: What prompts tell of the domain; None for the neutral one.
    """
    assert staff.gateway is not None
    assert staff.capabilities is not None
    settings = model.settings.but(seed=seed)

    return PromptAsker(
        staff.gateway,
        staff.capabilities,
        profile or DomainProfile.neutral(),
        settings,
        store.secret,
    )


def run_work_by_model(
    opened: Workspace,
    model: ModelOptions,
    seed: int,
    arguments: dict[str, Any],
    work: Callable[[PromptAsker, RunSettings], Awaitable[ResultType]],
    profile: DomainProfile | None = None,
) -> tuple[ResultType, ModelUsage | None]:
    """Have a model do the work of a run; return what it came to, and the model's usage.

    Args:
        profile: What prompts tell of the domain; None for the neutral one.
    """

    domain = profile or DomainProfile.neutral()

    async def done() -> tuple[ResultType, ModelUsage | None]:
        async with await build_run_roles(model, domain, opened.store, seed) as staff:
            opened.announce(staff)
            asker = make_prompt_asker(staff, model, opened.store, seed, domain)
            return await work(asker, opened.setting(arguments, staff)), ModelUsage.of(staff)

    return opened.run(done())
