"""Edits of a rubric set, in `NAME.rubrics.toml`, the one file that people edit; and of a pool, as rows of JSON."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from pollex import prompts
from pollex.errors import UNREADABLE_FILE_HINT, BadRubrics
from pollex.prompts.domain import write_toml_value
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import PERSON_SOURCE, Polarity, Rubric, make_content_id
from pollex.text import escape_controls, parse_toml, read_file_text

BUNDLED_RUBRIC_SETS_FOLDER = Path(prompts.__file__).parent / "rubric_sets"
Parsed = TypeVar("Parsed", bound=BaseModel)
CORRECT_RUBRICS_FILE_HINT = "correct it; each of [[rubrics]] has text and polarity, sat or dsat"


MAX_RUBRIC_CHARACTERS = 2000
EditedRubricText = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_RUBRIC_CHARACTERS),
]


class _RubricInFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: EditedRubricText
    polarity: Polarity


class _RubricList(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rubrics: list[_RubricInFile] = Field(min_length=1)
    purpose: str = ""


def list_bundled_rubric_set_names() -> list[str]:
    """Return the names of the bundled sets."""
    return sorted(file.stem for file in BUNDLED_RUBRIC_SETS_FOLDER.glob("*.toml"))


def read_rubrics(source: str | Path) -> tuple[Rubric, ...]:
    """Return the rubrics of a file, or of a bundled set, in their order; equal ones are left as they are.

    Args:
        source: A path, or a name of `list_bundled_rubric_set_names`.

    Raises:
        BadRubrics: It can't be read, or something in it is missing or wrong.
    """
    # a bundled set's name comes before a path of that name
    if str(source) in list_bundled_rubric_set_names():
        path = BUNDLED_RUBRIC_SETS_FOLDER / f"{source}.toml"
    else:
        path = Path(source)

    missing = f"give a TOML file, or one of {', '.join(list_bundled_rubric_set_names())}"
    entries = _parse_toml_file_as_model(
        _RubricList, path, str(source), CORRECT_RUBRICS_FILE_HINT, missing
    ).rubrics
    rubrics = []
    for e in entries:
        rubrics.append(
            Rubric(
                id=make_content_id(e.polarity, e.text),
                text=e.text,
                polarity=e.polarity,
            )
        )

    return tuple(rubrics)


def _parse_toml_file_as_model(
    kind: type[Parsed],
    path: Path,
    where: str,
    hint: str,
    missing: str = "",
) -> Parsed:
    try:
        return kind.model_validate(parse_toml(read_file_text(path)))
    except (OSError, UnicodeDecodeError) as error:
        # where a bundled name was possible, the error lists them
        if missing and isinstance(error, FileNotFoundError):
            raise BadRubrics("there is no such file", where=where, hint=missing) from None
        raise BadRubrics(
            f"it can't be read: {error}",
            where=where,
            hint=UNREADABLE_FILE_HINT,
        ) from error
    except ValidationError as error:
        # the first error, with its place in the file
        first = error.errors(include_url=False, include_input=False)[0]
        raise BadRubrics(
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}",
            where=where,
            hint=hint,
        ) from error
    except ValueError as error:
        raise BadRubrics(f"not valid TOML: {error}", where=where, hint=hint) from error


EDITS_FILE_ENDING = ".rubrics.toml"
EDITS_FILE_HEAD = """\
# The rubrics of {name}. This file is the one to edit: text, polarity (sat or dsat), on (true or false) and note.
# Leave ids as they are. A new rubric needs text and polarity. Remarks belong into note: comments are not kept.
# A re-worded rubric is judged as before; `judge_anew = true` has its new words say what to look for.
# Changes count once they are fitted: pollex refit LOGS --rubrics {name}
"""
CORRECT_EDITS_FILE_HINT = (
    "correct it; each of [[rubrics]] has text and polarity (sat or dsat), "
    "and may have id, on, judge_anew and note"
)


class EditEntry(BaseModel):
    """A rubric as people edit it.

    Attributes:
        id: Empty for a new one, whose id follows from its words.
        on: False leaves the rubric out, and keeps what is known of it.
        judge_anew: True gives up by what it was judged: its new words say what to look for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = ""
    text: EditedRubricText
    polarity: Polarity
    on: bool = True
    judge_anew: bool = False
    note: str = ""

    @property
    def name(self) -> str:
        """Return the id, which a new rubric has from its words."""
        return self.id or make_content_id(self.polarity, self.text)

    def toml(self) -> str:
        """Return the entry as a table of TOML."""
        # id, words and side, in the order in which people read them
        words = {
            "id": self.name,
            "text": self.text,
            "polarity": self.polarity,
        }
        lines = []
        for key, value in words.items():
            lines.append(f"{key} = {write_toml_value(value)}")

        lines += [
            f"on = {str(self.on).lower()}",
            *(["judge_anew = true"] if self.judge_anew else []),
        ]
        return "\n".join(["[[rubrics]]", *lines, f"note = {write_toml_value(self.note)}", ""])


class _EditEntryList(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rubrics: list[EditEntry] = Field(min_length=1)


def get_edits_path(path: str | Path) -> Path:
    """Return where the edits of the rubric set at `path` stand."""
    return Path(path).with_name(f"{Path(path).stem}{EDITS_FILE_ENDING}")


def read_edits_file(path: Path) -> tuple[EditEntry, ...]:
    """Read the entries of a file.

    Raises:
        BadRubrics: It can't be read, something in it is missing or wrong, or two rubrics have one
            id.
    """
    entries = _parse_toml_file_as_model(
        _EditEntryList, path, str(path), CORRECT_EDITS_FILE_HINT
    ).rubrics
    names = [entry.name for entry in entries]
    # an id of two rubrics leaves open which of them is meant
    repeated = set()
    for name in names:
        if names.count(name) > 1:
            repeated.add(name)
    if twice := sorted(repeated):
        raise BadRubrics(
            f"two rubrics have the id {twice[0]}",
            where=str(path),
            hint="leave a new rubric's id out",
        )

    return tuple(entries)


def make_editable_rubric_entries(
    rubrics: Iterable[ChosenRubric], off: Iterable[ChosenRubric]
) -> tuple[EditEntry, ...]:
    """Return rubrics as people edit them, those that are off last."""
    sides = [(rubric, True) for rubric in rubrics] + [(rubric, False) for rubric in off]
    entries = []
    for r, on in sides:
        entries.append(
            EditEntry(
                id=r.id, text=r.text, polarity=r.polarity, on=on, judge_anew=r.anew, note=r.note
            )
        )
    return tuple(entries)


def write_edits_toml(entries: Iterable[EditEntry], name: str) -> str:
    """Return the whole file.

    Args:
        name: The rubric set's file, for the comment on top.
    """
    return "\n".join(
        [EDITS_FILE_HEAD.format(name=escape_controls(name)), *(entry.toml() for entry in entries)]
    )


def apply_edits_to_rubrics(
    entries: Sequence[EditEntry],
    rubrics: Sequence[ChosenRubric],
    off: Sequence[ChosenRubric],
) -> tuple[tuple[ChosenRubric, ...], tuple[ChosenRubric, ...]]:
    """Apply edits by id; return the rubrics that are on, and those off."""
    # a rubric that was off may be on again
    by_id = {rubric.id: rubric for rubric in (*rubrics, *off)}
    edited = []
    for entry in entries:
        edited.append((entry.on, _edit_rubric(entry, by_id.get(entry.name))))

    rubrics_off = []
    for on, rubric in edited:
        if not on:
            rubrics_off.append(rubric)
    return tuple(rubric for on, rubric in edited if on), tuple(rubrics_off)


def _edit_rubric(entry: EditEntry, before: ChosenRubric | None) -> ChosenRubric:
    changes = {
        "text": entry.text,
        "polarity": entry.polarity,
        "note": entry.note,
    }
    # a new rubric has nothing but what a person wrote
    if before is None:
        return ChosenRubric(
            id=entry.name,
            text=entry.text,
            polarity=entry.polarity,
            note=entry.note,
        )

    edited = before.model_copy(update=changes)
    if entry.judge_anew:
        return remove_detector_from_rubric(edited)
    return edited


def remove_detector_from_rubric(rubric: ChosenRubric) -> ChosenRubric:
    """Return a rubric without what it was judged by: its words say what to look for, as if a person had added it."""
    update = {
        "source": PERSON_SOURCE,
        "quotes": (),
        "written": "",
        "answered_by": "",
    }
    return rubric.model_copy(update=update)


PoolRowMapping = Mapping[str, Any]
CORRECT_POOL_ROWS_HINT = "give each rubric once, with its text and a polarity, sat or dsat"


def make_pool_row(rubric: Rubric, quoted: bool = True) -> dict[str, object]:
    """Return a rubric as a row: its text and side may be edited, the rest tells where it comes from."""
    about = {
        "id": rubric.id,
        "text": rubric.text,
        "polarity": rubric.polarity,
        "source": rubric.source,
    }
    # the first quote is the best one
    quote = ""
    if rubric.quotes and quoted:
        quote = rubric.quotes[0].text

    return about | {"reasons": len(rubric.reason_ids), "quote": quote}


def read_edited_pool(rows: object, earlier: Sequence[Rubric]) -> tuple[Rubric, ...]:
    """Return the rubrics of edited rows: those that stayed with their reasons, others as a person's own words.

    Args:
        earlier: The rubrics that the rows may name; of those with one id the last counts. What is on
            both sides of them may stay so: only people's own words may not be the reverse of
            others.

    Raises:
        BadRubrics: One is a duplicate, empty, or the reverse of another; or none is left.
    """
    if not isinstance(rows, list) or not rows:
        raise BadRubrics("the pool has no rubric left", hint="leave one at least")

    by_id = {rubric.id: rubric for rubric in earlier}
    sides = dict[str, tuple[str, bool]]()
    # the last of equal ones counts
    by_words = {}
    for rubric in earlier:
        by_words[squeeze_spaces(rubric.text), rubric.polarity] = rubric

    # no row was changed, though some may be gone: the rubrics stay as they are
    if len(
        stayed := {
            row["id"]: by_id[row["id"]] for row in rows if _is_pool_row_unchanged(row, by_id)
        }
    ) == len(rows):
        return tuple(stayed.values())

    pool = []
    for number, row in enumerate(rows, start=1):
        text, side = _read_words_and_side(row, f"rubric {number}")
        # only what stood on both sides before may stand there again
        was_there = (text, side) in by_words
        other, other_was_there = sides.setdefault(text.casefold(), (side, was_there))
        if other != side and not (was_there and other_was_there):
            raise BadRubrics(
                f"{text!r} is both {other} and {side}",
                where=f"rubric {number}",
                hint=CORRECT_POOL_ROWS_HINT,
            )

        # own words make a new rubric, unless these words were there before
        new_rubric = Rubric(
            id=make_content_id("rubric", side, text),
            text=text,
            polarity=side,
        )
        pool.append(by_words.get((text, side), new_rubric))

    # equal words on one side, whatever their case
    words = []
    for rubric in pool:
        words.append((rubric.polarity, rubric.text.casefold()))

    twice = []
    for number, rubric in enumerate(pool):
        if words[number] in words[:number]:
            twice.append(rubric.text)
    if twice:
        raise BadRubrics(f"{twice[0]!r} stands there twice", hint=CORRECT_POOL_ROWS_HINT)
    return tuple(pool)


def squeeze_spaces(text: str) -> str:
    """Return a text with single spaces."""
    return " ".join(text.split())


def _is_pool_row_unchanged(row: object, by_id: Mapping[str, Rubric]) -> bool:
    before = None
    # a row that names a rubric, and has its words and side unchanged
    if isinstance(row, Mapping):
        before = by_id.get(str(row.get("id")))

    words = (row.get("text"), row.get("polarity")) if isinstance(row, Mapping) else ()
    return before is not None and (before.text, before.polarity) == words


def _read_words_and_side(row: object, where: str) -> tuple[str, Polarity]:
    text = ""
    if isinstance(row, Mapping):
        text = squeeze_spaces(str(row.get("text") or ""))
    if not isinstance(row, Mapping) or not text:
        raise BadRubrics("a rubric without text", where=where, hint=CORRECT_POOL_ROWS_HINT)
    if (side := row.get("polarity")) not in get_args(Polarity):
        raise BadRubrics(
            f"a polarity of {side!r}",
            where=where,
            hint=CORRECT_POOL_ROWS_HINT,
        )

    return text, side  # type: ignore[return-value]
