"""The artifact of `learn`: an editable JSON file with all that scoring needs."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field, PrivateAttr, ValidationError

from pollex.errors import UNREADABLE_FILE_HINT, BadCalibrator, BadRubrics
from pollex.measures.classification import Assessment
from pollex.measures.intervals import Figure, LabelSupport
from pollex.outputs import require_output, write_file
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import OPTIONS_BY_SCALE, Question
from pollex.rubrics.edits import (
    apply_edits_to_rubrics,
    get_edits_path,
    make_editable_rubric_entries,
    read_edits_file,
    write_edits_toml,
)
from pollex.rubrics.records import (
    AdaptedRubric,
    Baseline,
    CalibratorRecord,
    ChosenRubric,
    CommentFinding,
    DataRecord,
    DroppedRubric,
    JudgeRecord,
    ProbabilityFigures,
    Record,
    Segment,
    SpreadRecord,
    StarterRecord,
    TurnRecord,
)
from pollex.rubrics.rubric import (
    TONE_SOURCE,
    Reason,
    Rubric,
    has_rubrics_written_by_model,
    make_content_id,
)
from pollex.rubrics.score import NetSat, ThumbModel, compute_decision_probability_from_costs
from pollex.rubrics.tone import ToneRecord
from pollex.rubrics.worth import Reach
from pollex.selection.losses import AlphaScore
from pollex.selection.threshold import Calibration, GuaranteedWindow, Window
from pollex.text import (
    NAME_HINT,
    format_count,
    is_valid_name,
    make_html_table,
    make_object_of_unique_keys,
    parse_finite_number,
    read_file_bytes,
    read_file_text,
    replace_surrogates,
)

CHANCE_AUC = 0.5
"""AUC of guessing."""

HASH_DIGITS_IN_FILE_NAME = 8
"""Of the hash, in the file's name."""

MAX_RUBRICS_OF_SET = 1_000
"""Of a set: a judge is asked about each of them, of each conversation."""
MAX_SET_FILE_BYTES = 64 << 20
"""Bytes of a set's file: more would be parsed for minutes before it could be refused."""

REFIT_HINT = "fit it again: `pollex refit LOGS --rubrics …`"


def get_arrays_path(path: Path, facts: Mapping[str, object]) -> Path:
    """Say where the arrays of the rubric set at `path` lie.

    Args:
        facts: Of the calibrator; see `calibration.storage.CalibratorFiles`.

    Raises:
        BadCalibrator: They name no hash.
    """
    # the hash goes into a file's name, so it must be one
    digest = facts.get("arrays_sha256")
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise BadCalibrator(
            "arrays_sha256 is no hash of the calibrator's arrays",
            where=str(path),
            hint=REFIT_HINT,
        )

    return path.with_name(f"{path.stem}-{digest[:HASH_DIGITS_IN_FILE_NAME]}.safetensors")


def read_arrays(path: Path, facts: Mapping[str, object]) -> bytes:
    """Return the arrays of the rubric set at `path`.

    Raises:
        BadCalibrator: They can't be read, or are not the ones that were written with it.
    """
    place = get_arrays_path(path, facts)
    try:
        arrays = read_file_bytes(place)
    except OSError as error:
        raise BadCalibrator(
            f"the arrays of {path.name} can't be read: {error.strerror}",
            where=str(place),
            hint=f"put the arrays that came with {path.name} there, under this name, or {REFIT_HINT}",
        ) from error

    require_arrays_matching_facts(arrays, facts, str(place))
    return arrays


def require_arrays_matching_facts(
    arrays: bytes,
    facts: Mapping[str, object],
    where: str,
) -> None:
    """Raise BadCalibrator where these are not the arrays that were written with the facts."""
    if hashlib.sha256(arrays).hexdigest() != facts.get("arrays_sha256"):
        raise BadCalibrator(
            "the arrays are not the ones that were written with the rubric set",
            where=where,
            hint=f"put the file back that came with it, or {REFIT_HINT}",
        )


if TYPE_CHECKING:
    from pandas import DataFrame

    from pollex.calibration.estimator import JudgedEstimator

SET_FORMAT_VERSION = 2


def require_valid_rubric_names(rubrics: RubricSet, where: str) -> None:
    """Raise BadRubrics where what is to be a name, and goes into other tools' files as one, is something else."""
    all_rubrics = [*rubrics.all_rubrics, *rubrics.off]
    # these go into other tools' files, whose formats a strange one could break
    names = [
        ("judge.name", rubrics.judge.name),
        ("run", rubrics.run),
        ("pollex", rubrics.pollex),
        ("created", rubrics.created),
        ("policy", rubrics.policy),
        *(("roles", name) for name in (*rubrics.roles, *rubrics.roles.values())),
        *(("the id of a rubric", rubric.id) for rubric in all_rubrics),
    ]
    for place, name in names:
        if not is_valid_name(name):
            raise BadRubrics(
                f"{place} is no name: {name!r:.80}",
                where=where,
                hint=NAME_HINT,
            )


class RubricSet(Record):
    """Rubrics with provenance, and everything that turns answers into scores.

    Attributes:
        policy: What chose the rubrics, and whose α it is.
        guaranteed: The window whose precision holds with a given probability; None where nothing
            was cross-validated.
        rubrics_digest: Of the rubrics that θ was fitted for; another one means that a person has
            edited since.
        roles: Name of the agent, by role: `built-in (no LLM)`, or a model's name.
        segments: Topics of conversations that rubrics did not see, those least like the rest first.
        remarks: What people wrote with their thumb, by side, the most frequent first; nothing is
            scored by it.
        spread: Of NetSAT, held-out conversations included; None in sets of before.
        reach: How far it reaches on held-out conversations; None where nothing was held out, and in
            sets of before.
        tone: What the probability reads beside the rubrics; None in sets of before, and beside a
            starter.
        found_nothing: Share of training conversations in which the model found no reason; None
            where none was asked.
        notes: What a reader must know: small samples, nothing held out, refused rubrics.
        turns: Probabilities of conversations that go on, by turns of the user; empty where nobody
            measured them.
        off: Rubrics that a person switched off: nobody is asked about them.
        by_hand: Whether a person had changed the rubrics before θ was fitted.
        adapted: What became of each rubric of a general set that a model adapted to the domain;
            else empty.
    """

    format: int = SET_FORMAT_VERSION
    pollex: str
    created: str
    run: str
    roles: dict[str, str]
    prompts: dict[str, str] = Field(default_factory=dict)
    domain: DomainProfile
    rubrics: tuple[ChosenRubric, ...]
    theta: float
    window: Window
    guaranteed: GuaranteedWindow | None = None
    calibration: Calibration
    policy: str = "greedy"
    alpha: float | None
    alphas: tuple[AlphaScore, ...] = ()
    judge: JudgeRecord
    data: DataRecord
    training: Assessment
    held_out: Assessment | None
    baselines: tuple[Baseline, ...] = ()
    notes: tuple[str, ...] = ()
    dropped: tuple[DroppedRubric, ...] = ()
    reasons: tuple[Reason, ...] = ()
    rubrics_digest: str
    calibrator: CalibratorRecord | None = None
    segments: tuple[Segment, ...] = ()
    remarks: tuple[CommentFinding, ...] = ()
    spread: SpreadRecord | None = None
    found_nothing: Figure | None = None
    reach: Reach | None = None
    never: dict[str, float] = Field(default_factory=dict)
    starter: StarterRecord | None = None
    tone: ToneRecord | None = None
    turns: tuple[TurnRecord, ...] = ()
    off: tuple[ChosenRubric, ...] = ()
    by_hand: bool = False
    adapted: tuple[AdaptedRubric, ...] = ()

    _arrays: bytes = PrivateAttr(default=b"")
    """The calibrator's, as they lie in the file beside."""

    @classmethod
    def load(cls, path: str | Path, *, arrays: bool = True, edits: bool = True) -> RubricSet:
        """Read a rubric set, people's edits of it, and its calibrator's arrays.

        Args:
            arrays: False leaves the file beside alone: nothing can be scored then, but the rubrics
                can be fitted again.
            edits: False leaves people's edits alone.

        Raises:
            BadRubrics: It isn't there, isn't JSON, or something in it is missing or wrong; the
                place is named.
            BadCalibrator: The arrays aren't there, or are not the ones that were written with it.
        """
        try:
            text = read_file_text(path, MAX_SET_FILE_BYTES)
            # numbers that aren't finite and keys that stand twice are refused
            stored = replace_surrogates(
                json.loads(
                    text,
                    object_pairs_hook=make_object_of_unique_keys,
                    parse_float=parse_finite_number,
                    parse_constant=parse_finite_number,
                )
            )
        except FileNotFoundError:
            raise BadRubrics(
                "there is no such file",
                where=str(path),
                hint="`pollex learn` writes one",
            ) from None
        except (OSError, UnicodeDecodeError, RecursionError) as error:
            raise BadRubrics(
                f"it can't be read: {error}",
                where=str(path),
                hint=UNREADABLE_FILE_HINT,
            ) from error
        except json.JSONDecodeError as error:
            # the line of the error is the place that people need
            what = f"not valid JSON: {error.msg}"
            hint = "correct it, or learn again"
            raise BadRubrics(what, where=f"{path}:{error.lineno}", hint=hint) from error
        except ValueError as error:
            raise BadRubrics(
                str(error),
                where=str(path),
                hint="correct it, or learn again",
            ) from error

        rubric_set = cls.parse(stored, where=str(path))
        if edits:
            rubric_set = rubric_set.with_edits(get_edits_path(path))

        # an edited set can't be scored before it is fitted again
        if arrays and rubric_set.calibrator and not rubric_set.edited:
            return rubric_set.with_arrays(
                read_arrays(
                    Path(path),
                    rubric_set.calibrator.facts,
                )
            )

        return rubric_set

    @classmethod
    def parse(cls, stored: object, where: str = "rubric set") -> RubricSet:
        """Return a rubric set from JSON values; see `load`."""
        # before each is looked at, which takes a millisecond
        rubrics = stored.get("rubrics") if isinstance(stored, dict) else None
        if isinstance(rubrics, list) and len(rubrics) > MAX_RUBRICS_OF_SET:
            raise BadRubrics(
                f"it has {len(rubrics)} rubrics: a set has at most {MAX_RUBRICS_OF_SET}",
                where=where,
                hint="keep those that matter; `pollex learn` chooses 15",
            )

        # a newer format may mean something else by the same fields
        if (
            isinstance(stored, dict)
            and isinstance(stored_format := stored.get("format"), int)
            and stored_format > SET_FORMAT_VERSION
        ):
            raise BadRubrics(
                f"it has format {stored_format}, this pollex reads up to {SET_FORMAT_VERSION}",
                where=where,
                hint="install a newer pollex",
            )

        try:
            rubrics = cls.model_validate(stored)
        except ValidationError as error:
            # the first error is enough to begin with
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "the whole"
            raise BadRubrics(
                f"{place}: {first['msg']}",
                where=where,
                hint="correct it, or learn again",
            ) from error

        ids = [rubric.id for rubric in rubrics.rubrics]
        repeated = []
        for id_, times in Counter(ids).items():
            if times > 1:
                repeated.append(id_)
        if twice := sorted(repeated):
            raise BadRubrics(
                f"two rubrics have the id {twice[0]}",
                where=where,
                hint="leave a new rubric's id out",
            )

        if not ids:
            raise BadRubrics(
                "it has no rubrics",
                where=where,
                hint="add one, or learn again",
            )

        if wordless := [rubric.id for rubric in rubrics.rubrics if not rubric.text.strip()]:
            raise BadRubrics(
                f"the rubric {wordless[0]} has no words",
                where=where,
                hint="write its text, or remove it",
            )

        require_valid_rubric_names(rubrics, where)
        return rubrics

    def with_edits(self, path: Path) -> Self:
        """Return the set with the edits at `path`; unchanged if there are none.

        Raises:
            BadRubrics: They are wrong, or the rubrics were changed in the set's file as well.
        """
        if not path.is_file():
            return self

        on, off = apply_edits_to_rubrics(read_edits_file(path), self.rubrics, self.off)
        if not on:
            raise BadRubrics(
                "no rubric is active",
                where=str(path),
                hint="activate one",
            )

        # changes in both files: nobody could say which is meant
        if self.edited and hash_rubrics(on) != hash_rubrics(self.rubrics):
            what = f"the rubrics were changed in the JSON file, but {path.name} overrules"
            raise BadRubrics(
                what,
                where=str(path),
                hint=f"make the changes there, or remove {path.name}",
            )

        return self.model_copy(update={"rubrics": on, "off": off})

    def save(self, path: str | Path) -> None:
        """Write the file atomically, after the arrays, and the file for people's edits.

        Raises:
            BadCalibrator: The arrays were left out when it was loaded.
        """
        target = Path(path)
        text = self.to_json()
        # checks come before the first file is written
        require_output(target, regular=True)  # other files stand beside it
        target.parent.mkdir(parents=True, exist_ok=True)
        # an edited set's model is of other rubrics, and isn't written
        record = None if self.edited else self.calibrator
        if record:
            require_arrays_matching_facts(self._arrays, record.facts, str(target))
            write_file(get_arrays_path(target, record.facts), self._arrays, named=False)

        # the set's own file comes last: whoever reads it finds all others
        edits = write_edits_toml(make_editable_rubric_entries(self.rubrics, self.off), target.name)
        write_file(get_edits_path(target), edits.encode(), named=False)
        write_file(target, f"{text}\n".encode())

    @property
    def arrays_file(self) -> str:
        """Name of the file of the calibrator's arrays, where the set's own is called `rubrics.json`; empty for none."""
        if self.calibrator is None:
            return ""
        return get_arrays_path(Path("rubrics.json"), self.calibrator.facts).name

    def to_json(self) -> str:
        """Return indented JSON, with fields in a fixed order."""
        return json.dumps(
            self.model_dump(mode="json"),
            ensure_ascii=False,
            allow_nan=False,
            indent=1,
        )

    def with_arrays(self, arrays: bytes) -> Self:
        """Return the same with the arrays of its calibrator."""
        copy = self.model_copy()
        copy._arrays = arrays
        return copy

    @property
    def arrays(self) -> bytes:
        """The arrays of its calibrator; empty where they were left out."""
        return self._arrays

    @property
    def has_arrays(self) -> bool:
        """Whether it has a model of the probability that can be asked."""
        return bool(self.calibrator and self._arrays)

    @property
    def thumb_model(self) -> ThumbModel | None:
        """Model of the probability; None if the set has none.

        Raises:
            BadCalibrator: It can't be rebuilt from what stands there.
        """
        if (record := self.calibrator) is None:
            return None

        # scikit-learn comes with them, and takes a second to import
        from pollex.calibration.storage import deserialize_calibrator
        from pollex.calibration.thumbs import make_thumb_questionnaire

        if not self._arrays:
            what = f"the arrays of its calibrator are not here: {self.run} wrote them into {self.arrays_file}"
            raise BadCalibrator(
                what,
                where="rubric set",
                hint=f"give the set's own file, beside that one, or {REFIT_HINT}",
            )

        require_arrays_matching_facts(self._arrays, record.facts, "rubric set")
        options = len(OPTIONS_BY_SCALE[self.judge.scale])
        facts = record.facts | {
            "questionnaire": asdict(make_thumb_questionnaire(record.rubrics, options))
        }
        try:
            return ThumbModel(
                record.rubrics,
                deserialize_calibrator(facts, self._arrays),
                options,
                self._unpack_rating(record, facts, options),
            )
        except BadCalibrator as error:
            raise BadCalibrator(
                error.what,
                where="calibrator of the rubric set",
                hint=REFIT_HINT,
            ) from error

    def _unpack_rating(
        self, record: CalibratorRecord, facts: dict[str, object], options: int
    ) -> JudgedEstimator | None:
        """Return the model of people's grades; None where labels are thumbs alone."""
        if record.rating is None:
            return None

        # few sets are learned from grades
        from pollex.calibration.grades import make_rating_questionnaire
        from pollex.calibration.questionnaire import Scale
        from pollex.calibration.storage import SECOND_CALIBRATOR_PREFIX, deserialize_calibrator

        scales = []
        for name, values in record.rating.scales.items():
            scales.append(Scale(name, values, asked=False))

        # grades answer other questions, and have facts of their own
        questionnaire = make_rating_questionnaire(record.rubrics, options, scales)
        about = facts | record.rating.facts | {"questionnaire": asdict(questionnaire)}
        return deserialize_calibrator(about, self._arrays, prefix=SECOND_CALIBRATOR_PREFIX)

    @property
    def support(self) -> LabelSupport:
        """Number of labels behind the probabilities, and whether they may be called calibrated."""
        return LabelSupport(
            self.calibrator.labels if self.calibrator else self.data.training,
            self._no_gain,
        )

    @property
    def _measured_probability(self) -> ProbabilityFigures | None:
        """Figures of probabilities of conversations that took no part in them."""
        if self.calibrator:
            return self.calibrator.held_out or self.calibrator.training
        return None

    @property
    def _no_gain(self) -> str:
        """Say that probabilities tell no more than the share of thumbs up; empty where they do, or nobody knows."""
        figures = self._measured_probability
        if figures is None or figures.gain.value is None or figures.gain.value > 0:
            return ""

        losses = f"log-loss {figures.log_loss.value:.3f}, with the share {figures.share_log_loss.value:.3f}"
        return f"no better than the share of thumbs up, {1 - self.data.down:.0%}, for every conversation: {losses}"

    @property
    def calibration_error(self) -> float:
        """Standard error of the mean of its probabilities, by the labels that measured them; a user counts once."""
        figures = self._measured_probability
        share = self.data.down
        if figures is None or figures.brier.value is None:
            return sqrt(share * (1 - share) / max(self.data.thumbs, 1))
        return sqrt(figures.brier.value / (figures.brier.units or figures.n))

    @property
    def measured_on(self) -> str:
        """What figures are of, and what of the rubrics saw these conversations before."""
        data = self.data
        if not data.folds:
            return format_count(data.held_out, "held-out conversation")
        # a model has read these conversations, built-in roles were made anew
        labeled = f"all {data.held_out:,} labeled conversations"
        if data.not_scorable:
            labeled += f" that were kept ({data.not_scorable:,} others were left out)"
        if has_rubrics_written_by_model(self.rubrics):
            return (
                f"{labeled} (which rubrics count was chosen without the one that is scored, but the "
                "model wrote them from all of these, so the figures may be too good)"
            )
        return f"{labeled}, each by rubrics learned without it"

    @property
    def at_chance(self) -> str:
        """Say that it is not known to be better than chance; empty where it is, or where nobody measured it."""
        auc = self.held_out.auc if self.held_out else None
        if auc is None or auc.value is None or (auc.low is not None and auc.low > CHANCE_AUC):
            return ""

        bounds = ""
        if auc.low is not None:
            bounds = f", 95 % interval {auc.low:.2f} to {auc.high:.2f}"

        return (
            "This set is not known to be better than chance: of a good and a bad conversation it ranks the good one "
            f"higher {auc.value:.0%} of the time{bounds}, n = {auc.n}. Its scores tell next to nothing of one "
            "conversation"
        )

    @property
    def questions(self) -> list[Question]:
        """The rubrics as questions to a judge, in their order; a starter's stand last, as does tone."""
        questions: list[Question] = []
        for rubric in self.all_rubrics:
            questions.append(Question.about(rubric, self.judge.scale))
        return questions

    @property
    def all_rubrics(self) -> tuple[ChosenRubric, ...]:
        """The set's own rubrics, then a starter's, or tone."""
        tone = (self.tone.rubric,) if self.tone and self.tone.weight else ()
        return self.rubrics + (self.starter.rubrics if self.starter else ()) + tone

    @property
    def asked_judge(self) -> JudgeRecord:
        """The judge with all that it has learned, of a starter's rubrics and of tone too."""
        # a starter's ids have a prefix, and tone its own, so none overwrites another
        others = self.starter.judge.learned if self.starter else {}
        if self.tone and self.tone.weight:
            tone = {TONE_SOURCE: self.tone.learned}
        else:
            tone = {}

        if not (others or tone):
            return self.judge
        return self.judge.model_copy(update={"learned": {**self.judge.learned, **others, **tone}})

    @property
    def learned_from(self) -> frozenset[str]:
        """Hashes of the conversations that rubrics were learned from; empty for handwritten rubrics."""
        return frozenset(self.data.training_hashes if self.reasons else ())

    @property
    def only_fitted_to(self) -> frozenset[str]:
        """Hashes of the conversations that θ was fitted to, and no rubric came from."""
        return frozenset((*self.data.training_hashes, *self.data.fitted_hashes)) - self.learned_from

    @property
    def edited(self) -> bool:
        """Whether a person has changed, added or removed rubrics since θ was fitted."""
        return hash_rubrics(self.rubrics) != self.rubrics_digest

    @property
    def has_edits(self) -> bool:
        """Whether it holds anything that a person wrote, fitted or not."""
        return (
            self.edited
            or self.by_hand
            or bool(self.off)
            or any(rubric.note for rubric in self.rubrics)
        )

    def __repr__(self) -> str:
        """Return the set in a line, as the rubrics themselves fill pages."""
        # numbers of rubrics of satisfaction and of dissatisfaction
        kinds = []
        for kind in ("sat", "dsat"):
            kinds.append(sum(rubric.polarity == kind for rubric in self.rubrics))

        figures = self.held_out or self.training
        if figures.auc.value is None:
            auc = "undefined"
        else:
            auc = f"{figures.auc.value:.3f}"

        side = "held out" if self.held_out else "training"
        return f"<RubricSet: {kinds[0]} SAT and {kinds[1]} DSAT rubrics, AUC {auc} ({side}, n = {figures.n})>"

    def _repr_html_(self) -> str:
        rows = []
        for rubric in self.rubrics:
            rows.append((rubric.id, rubric.polarity.upper(), rubric.text))
        return make_html_table(repr(self), ("id", "kind", "rubric"), rows)

    def records(self) -> list[dict[str, object]]:
        """Return a row a rubric."""
        records: list[dict[str, object]] = []
        for rubric in self.rubrics:
            records.append(
                {
                    "id": rubric.id,
                    "polarity": rubric.polarity,
                    "text": rubric.text,
                    "reasons": len(rubric.reason_ids),
                    "stability": rubric.choice.stability if rubric.choice else None,
                    "judge": rubric.answered_by or self.judge.name,
                }
            )

        return records

    def to_frame(self) -> DataFrame:
        """Return a pandas table of a row a rubric."""
        from pandas import DataFrame  # it takes half a second to import

        return DataFrame(self.records())

    def require_unedited(self, where: str = "") -> None:
        """Raise BadRubrics if rubrics, θ and windows don't fit together any more."""
        if self.edited:
            raise BadRubrics(
                "rubrics were edited after θ was fitted",
                where=where,
                hint=REFIT_HINT,
            )

        # a window that crosses θ would be sure of the other label
        windows = {"window": self.window}
        if self.guaranteed:
            windows["guaranteed"] = self.guaranteed.window

        for name, window in windows.items():
            for side, end, sign in (("lower", window.lower, 1), ("upper", window.upper, -1)):
                # a score would be sure of another label
                if end is not None and sign * end > sign * self.theta:
                    what = f"{name}.{side} is {end:g}, on the other side of θ, {self.theta:g}"
                    raise BadRubrics(what, where=where, hint=REFIT_HINT)

    def scorer_of(self, costs: tuple[float, float] = (1.0, 1.0)) -> NetSat:
        """Return what turns a conversation's answers into a score.

        Args:
            costs: Of both mistakes; see `compute_decision_probability_from_costs`.
        """
        return NetSat(
            signs={rubric.id: rubric.sign for rubric in self.rubrics},
            theta=self.theta,
            window=self.window,
            calibration=self.calibration,
            thumb_model=self.thumb_model,
            guaranteed=self.guaranteed.window if self.guaranteed else None,
            value=self.judge.options.value,
            never=self.never,
            decide_at=compute_decision_probability_from_costs(costs),
        )

    @property
    def explainer(self) -> NetSat:
        """What tells by how much each answer moves a score; NetSAT alone where the model's arrays are lost."""
        if self.calibrator is None or self.has_arrays:
            return self.scorer_of()
        return self.model_copy(update={"calibrator": None}).scorer_of()


def hash_rubrics(rubrics: Sequence[Rubric]) -> str:
    """Hash of what a judge is asked: texts, kinds and evidence, not their order."""
    rubric_lines = []
    for r in rubrics:
        rubric_lines.append(
            "\x1e".join([r.id, r.polarity, r.text, r.source, *(q.text for q in r.quotes)])
        )
    parts = sorted(rubric_lines)
    return make_content_id(*parts)
