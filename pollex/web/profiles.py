"""Models that the browser may use, named at the server's start, without addresses or keys."""

from dataclasses import dataclass, field
from pathlib import Path

from pollex.agents.llm.simulator import Passages, passages_of
from pollex.errors import BadInput, WrongUse
from pollex.formats.topics import read_documents
from pollex.gateway.calls import Capabilities
from pollex.prompts.simulate.systems import System, systems_named
from pollex.services.options import ModelOptions, ModelTable, tables_in

MEND = (
    "a profile is a table: [mini], with model, and base_url, key_env, price_in, price_out, max_cost, system, documents "
    "where wanted"
)


@dataclass(frozen=True, kw_only=True)
class Speaker(ModelOptions):
    """A profile that people talk to as to one of the systems of `simulate`.

    Attributes:
        passages: Of its documents.
        found: What a probe of its endpoint found; empty before the first talk.
    """

    system: System
    passages: Passages
    found: list[Capabilities] = field(default_factory=list)


class Profile(ModelTable):
    """A table of the file.

    Attributes:
        system: Dialogue system of `simulate` that it answers as; None: the model as it is.
        documents: Folder of what the system finds, beside the file.
    """

    system: str | None = None
    documents: Path | None = None

    def options(self, file: Path) -> ModelOptions:
        """Return it as options of a model.

        Raises:
            BadInput: There is no such system, or it finds documents and has none.
        """
        within_limits = self.within(max_wait=20.0)
        try:
            system = None if self.system is None else systems_named([self.system])[0]
        except WrongUse as error:
            raise BadInput(error.what, where=str(file), remedy=f"system: {error.advice}") from error
        finds = system is not None and system.retrieval != "none"
        if finds != (self.documents is not None):
            what = f"{self.system or self.model} {'finds' if finds else 'takes no'} documents, and there are "
            remedy = (
                'add `documents = "FOLDER"` to it'
                if finds
                else "remove `documents`, or let it be DS2 or DS3"
            )
            raise BadInput(what + ("none" if finds else "some"), where=str(file), remedy=remedy)
        if system is None:
            return within_limits
        documents = read_documents(self.documents and file.parent / self.documents)
        return Speaker(
            **vars(within_limits), system=system, passages=Passages(passages_of(documents))
        )


def read_profiles(path: Path | None) -> dict[str, ModelOptions]:
    """Read a file of profiles; without one there is none.

    Raises:
        BadInput: It can't be read, or something in it is missing or wrong.
    """
    tables = {} if path is None else tables_in(path, Profile, MEND)
    return {name: table.options(Path(str(path))) for name, table in tables.items()}
