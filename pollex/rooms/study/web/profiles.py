"""Models that people talk to as to one of the systems of `simulate`."""

from dataclasses import dataclass, field
from pathlib import Path

from pollex.errors import BadInput, WrongUse
from pollex.gateway.calls import Capabilities
from pollex.rooms.study.agents.llm.simulator import PassageIndex, split_into_passages
from pollex.rooms.study.formats.topics import read_documents
from pollex.rooms.study.prompts.simulate.systems import DialogueSystem, find_systems
from pollex.runs.options import ModelOptions, ModelTable
from pollex.web.profiles import MAX_MODEL_WAIT_SECONDS


@dataclass(frozen=True, kw_only=True)
class SpeakerOptions(ModelOptions):
    """A profile that people talk to as to one of the systems of `simulate`.

    Attributes:
        passages: Of its documents.
        found: What a probe of its endpoint found; empty before the first talk.
    """

    system: DialogueSystem
    passages: PassageIndex
    found: list[Capabilities] = field(default_factory=list)


class SpeakerTable(ModelTable):
    """A table of the file of profiles.

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
        # a system's table has fields of a model, and the server's own limit of waiting
        within_limits = self.within(max_wait=MAX_MODEL_WAIT_SECONDS)
        try:
            system = None
            if self.system is not None:
                system = find_systems([self.system])[0]
        except WrongUse as error:
            raise BadInput(
                error.what,
                where=str(file),
                hint=f"system: {error.advice}",
            ) from error

        # a system that finds documents needs them, any other has no use for them
        finds = system is not None and system.retrieval != "none"
        if finds != (self.documents is not None):
            what = f"{self.system or self.model} {'finds' if finds else 'takes no'} documents, and there are "
            if finds:
                hint = 'add `documents = "FOLDER"` to it'
            else:
                hint = "remove `documents`, or let it be DS2 or DS3"

            raise BadInput(
                what + ("none" if finds else "some"),
                where=str(file),
                hint=hint,
            )
        # a model without a system is talked to as it is
        if system is None:
            return within_limits

        # the folder of documents stands beside the file of profiles
        documents = read_documents(self.documents and file.parent / self.documents)
        return SpeakerOptions(
            **vars(within_limits),
            system=system,
            passages=PassageIndex(split_into_passages(documents)),
        )
