"""A recorded run of a large language model, to be replayed without one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from pollex.errors import WrongUse
from pollex.gateway.budget import Limits
from pollex.gateway.recorded import RecordedEndpoint
from pollex.outputs import make_folder, write_file
from pollex.runs.options import ModelOptions
from pollex.store.folder import get_or_create_secret, make_private_folder
from pollex.text import JsonDict

RUBRICS_FILE_NAME, BUILT_IN_FOLDER_NAME = "rubrics.json", "built-in"
"""In the folder of a replayed run: its rubric set, and the folder of the built-in run beside it."""

MANIFEST_FILE_NAME, REPLIES_FILE_NAME, REMEDY_REPLIES_FILE_NAME = (
    "manifest.json",
    "replies.jsonl.gz",
    "remedy.jsonl.gz",
)
"""About it; replies to the prompts of learning and scoring, and to those of a remedy."""
RESULT_FILE_PATTERNS = (
    "rubrics.json",
    "rubrics.rubrics.toml",
    "rubrics-*.safetensors",
    "report.html",
    "scores.html",
)
REMEDY_FILE_NAMES = ("remedy.json", "remedy.html")
SCORES_FILE_NAME, PACKED_SCORES_FILE_NAME = "scores.jsonl", "scores.jsonl.gz"
"""Files of the result as it was made; the scores are packed."""

REPLAY_CONCURRENCY = 64
"""Calls at once: a recording is not to be spared."""


@dataclass(frozen=True)
class Recording:
    """The replies of a model to every prompt of one run.

    Attributes:
        made: The day of the recording.
        secret: Of the store that it was made with: the boundary around data, and so each prompt,
            depends on it.
        prompts: Version of each prompt by name, when it was made.
        policy: What chose the rubrics: others were never asked about held-out conversations.
    """

    folder: Path
    model: str
    made: str
    secret: bytes
    prompts: Mapping[str, str]
    policy: str

    @classmethod
    def at(cls, folder: Path) -> Recording:
        """Read the recording in a folder.

        Raises:
            WrongUse: There is none; installed packages come without it.
        """
        if not (folder / MANIFEST_FILE_NAME).exists():
            raise WrongUse(
                "the recorded run isn't here: an installed package comes without it",
                where=str(folder),
                hint="clone the repository, and run this command there after `make demo`",
            )

        # all that replies depend on: without it no prompt would be the recorded one
        manifest: JsonDict = json.loads((folder / MANIFEST_FILE_NAME).read_text(encoding="utf-8"))
        return cls(
            folder,
            manifest["model"],
            manifest["made"],
            bytes.fromhex(manifest["secret"]),
            manifest["prompts"],
            manifest["policy"],
        )

    @classmethod
    def bundled(cls) -> Recording:
        """Read the recording that comes with the repository. Raises as `at` does."""
        return cls.at(find_bundled_recording())

    def endpoint(self, replies: str = REPLIES_FILE_NAME) -> RecordedEndpoint:
        """Return the model, which answers from the recording."""
        return RecordedEndpoint(self.model, file=self.folder / replies)

    @property
    def remedied(self) -> bool:
        """Whether a remedy was recorded, too."""
        return (self.folder / REMEDY_REPLIES_FILE_NAME).exists()

    def prepare(self, store: Path) -> None:
        """Give a store the recording's secret.

        Raises:
            WrongUse: The store has another one.
        """
        make_private_folder(store)
        # another secret would make other prompts, which nobody has answered
        get_or_create_secret(store, self.secret, 0)

    def changed_prompts(self) -> list[str]:
        """Return the names of prompts that are not as they were."""
        # it brings all roles, which takes a second
        from pollex.runs.roles import list_prompt_versions

        now = list_prompt_versions()
        changed_prompts = []
        for name, version in self.prompts.items():
            if now.get(name) != version:
                changed_prompts.append(name)
        return sorted(changed_prompts)

    def restore(self, out: Path) -> None:
        """Copy the result as it was made."""
        make_folder(out)
        for file in list_result_files(self.folder, (*RESULT_FILE_PATTERNS, *REMEDY_FILE_NAMES)):
            write_file(out / file.name, file.read_bytes(), named=False)

        # scores are packed in the repository, and plain where people read them
        write_file(
            out / SCORES_FILE_NAME,
            gzip.decompress((self.folder / PACKED_SCORES_FILE_NAME).read_bytes()),
            named=False,
        )


def find_bundled_recording() -> Path:
    """Return the folder of the recording that comes with the repository."""
    return Path(str(files("pollex.examples"))).resolve() / "recorded"


def make_replay_options(endpoint: RecordedEndpoint) -> ModelOptions:
    """Return the options of a run on a recording."""
    return ModelOptions(chat=endpoint, limits=Limits(concurrency=REPLAY_CONCURRENCY))


def list_demo_rubric_sets(out: Path) -> tuple[Path, ...]:
    """Return the rubric sets of a demo in `out`."""
    return tuple(
        path
        for path in (out / RUBRICS_FILE_NAME, out / BUILT_IN_FOLDER_NAME / RUBRICS_FILE_NAME)
        if path.exists()
    )


def list_result_files(folder: Path, patterns: Sequence[str] = RESULT_FILE_PATTERNS) -> list[Path]:
    """Return the files of a result, but for its scores."""
    return [file for pattern in patterns for file in sorted(folder.glob(pattern))]
