"""A guess at what the columns of an unknown log are, from their names and what stands in them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pollex.conversations.logs import Logs
from pollex.errors import BadInput
from pollex.formats.assembly.log_parts import dated, moment
from pollex.formats.fields import ReadOptions
from pollex.formats.json_rows import LogRow
from pollex.formats.labels import MISSING, as_number, is_usual
from pollex.formats.log_shapes.exports import objects
from pollex.formats.log_shapes.readers import NoShape
from pollex.formats.log_shapes.turns import ROLES, UnknownRole, is_list_of_turns
from pollex.formats.mapping import OF_TURNS, PARTS, USUAL, pairs_as_typed
from pollex.text import printable

MOST_ROWS, MOST_ROLES = 300, 12
EXAMPLES, SHOWN = 3, 40
FEW, SHORT = 12, 40
"""Most different roles or labels, and their most characters."""

NAMES = {
    "messages": "messages turns verlauf dialog dialogue transcript messaggi mensajes berichten historique",
    "text": """text content message body nachricht inhalt beitrag mensaje texto messaggio testo mensagem tekst bericht
        texte""",
    "role": """role speaker sender author absender rolle sprecher autor verfasser von remitente emisor rol expediteur
        auteur mittente ruolo remetente papel afzender from who wer direction""",
    "conversation": """conversation chat thread session ticket dialog dialogue gespraech unterhaltung vorgang fall
        anfrage case conversacion sesion discussion conversazione sessione conversa gesprek zaak""",
    "label": """label thumb thumbs rating feedback vote note bewertung daumen zufriedenheit urteil nota valoracion voto
        avis evaluation valutazione giudizio avaliacao beoordeling score stars csat sterne""",
    "comment": "comment kommentar bemerkung comentario commentaire commento opmerking",
    "time": """time timestamp date datetime created zeit zeitpunkt datum uhrzeit fecha hora heure horodatage ora data
        tijd""",
    "turn": "turn position index seq order nr nummer schritt paso etape passo stap",
    "user": "user question prompt query frage kundenfrage pregunta domanda pergunta vraag anliegen",
    "assistant": "assistant answer response reply antwort respuesta reponse risposta resposta antwoord",
}
"""Words of columns' names by part, without accents."""
USERS = """user kunde kundin kunden nutzer nutzerin benutzer anwender gast besucher anrufer cliente usuario usuaria
    utilisateur client visiteur utente visitatore utilizador klant gebruiker bezoeker"""
ASSISTANTS = """bot assistent assistentin berater beraterin agent agentin mitarbeiter mitarbeiterin support ki system
    asistente agente robot conseiller assistente operatore atendente medewerker robo"""
SPEAKERS = dict.fromkeys(USERS.split(), "user") | dict.fromkeys(ASSISTANTS.split(), "assistant")
GOOD = """gut super hilfreich ja zufrieden positiv bueno buena si bien bon bonne oui buono buona sim bom boa goed
    tevreden daumen_hoch"""
BAD = """schlecht nein unzufrieden negativ malo mala no mal mauvais mauvaise non cattivo cattiva nao ruim slecht
    ontevreden daumen_runter"""


class Unmapped(BadInput):
    """A log whose columns or roles nobody knows; the options say what they seem to be."""


@dataclass
class Strange:
    """Rows that no reader knows, a few of them kept for a guess."""

    sample: list[Mapping[str, Any]] = field(default_factory=list)
    rows: int = 0
    first: NoShape | None = None
    roles: Counter[str] = field(default_factory=Counter)

    def note(self, row: LogRow, error: BadInput) -> None:
        """Look at a row that couldn't be read."""
        if isinstance(error, UnknownRole) and (error.spelling in self.roles or len(self.roles) < MOST_ROLES):
            self.roles[error.spelling] += 1
        if isinstance(error, NoShape):
            self.rows, self.first = self.rows + 1, self.first or error
            if len(self.sample) < MOST_ROWS:
                self.sample.append({name: _kept(value) for name, value in row.fields.items()})

    def proposal(self, options: ReadOptions, logs: Logs, where: str) -> Unmapped | None:
        """Return the error that proposes a mapping; None where other things are wrong."""
        if self.roles:
            given = [(role, said) for role, said in options.roles if role in ROLES.values()]
            known = {role for role, _ in given} | {turn.role for one in logs for turn in one.turns}
            names = ", ".join(f"{printable(said, SHOWN)!r} ({n} rows)" for said, n in self.roles.most_common())
            return Unmapped(
                f"roles that nobody knows: {names}",
                where=where,
                remedy="say whose turns they are",
                option={"roles": printable(pairs_as_typed([*given, *speakers([*self.roles], known)]))},
            )
        if self.first is None or logs.conversations or self.rows < len(logs.bad_rows):
            return None
        back = {USUAL[part]: name for part, name in options.columns if part in USUAL}
        sample = [{back.get(name, name): value for name, value in row.items()} for row in self.sample]
        guess = Guess(sample, dict(options.columns))
        if self.first.options and "conversation" not in guess.columns:  # a table of turns, which all have no id
            return None
        return Unmapped(
            f"no known shape; its columns are\n{guess.table}\n",
            where=where,
            remedy="say which is which",
            option=guess.options,
        )


def speakers(names: Sequence[str], known: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Return whose turns the names of roles seem to be, the first of two unknown ones the user's."""
    left = [role for role in ("user", "assistant") if role not in known]
    found = {name: ROLES.get(_plain(name)) or SPEAKERS.get(_plain(name).partition(" ")[0]) for name in names}
    left = [role for role in left if role not in found.values()]
    guessed = {name: role or (left.pop(0) if left else "system") for name, role in found.items()}
    return sorted(((role, name) for name, role in guessed.items()), key=lambda pair: ROLE_ORDER.index(pair[0]))


ROLE_ORDER = ("user", "assistant", "system", "tool")


class Guess:
    """Which column seems to be which part.

    Args:
        rows: A few rows, in their order.
        columns: What is known already.
        parts: What to look for.
    """

    def __init__(
        self, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], parts: Collection[str] = PARTS
    ) -> None:
        names = dict.fromkeys(name for row in rows for name in row)
        self.values = {name: [row.get(name) for row in rows] for name in names}
        self.columns = {part: name for part, name in columns.items() if name in names}
        for part, fits in FITS.items():
            if part in parts and part not in self.columns and self._wanted(part):
                self._choose(part, fits)
        self._speakers = self._column("role")
        if turns := [turn for value in self._column("messages") if isinstance(value, list) for turn in value]:
            self._look_into(turns, columns)

    def _wanted(self, part: str) -> bool:
        have = self.columns
        if "messages" in have or {"user", "assistant"} <= have.keys():
            return part not in ("text", "role", "turn", "user", "assistant")
        return not (part in ("user", "assistant") and {"text", "role"} <= have.keys())

    def _choose(self, part: str, fits: Callable[[Guess, list[Any]], float]) -> None:
        left = [name for name in self.values if name not in self.columns.values()]
        scores = {
            name: (_named(name, part) * 2 + sure, sure) for name in left if (sure := fits(self, self.values[name]))
        }
        best = max(scores, key=lambda name: scores[name], default=None)
        if best is not None and (_named(best, part) or (part in BY_CONTENT and scores[best][1] >= SURE)):
            self.columns[part] = best

    def _look_into(self, turns: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
        """Find role and text in a list's turns; the text is the longest where no name says so."""
        inner = Guess(turns, columns, OF_TURNS)
        if inner.columns.get("role"):
            left = inner.values.keys() - inner.columns.values()
            longest = max(sorted(left), key=lambda name: sum(map(len, _texts(inner.values[name]))), default=None)
            self.columns |= {"text": longest} if longest else {}
            self.columns |= inner.columns
            self._speakers = inner._speakers

    @property
    def options(self) -> dict[str, object]:
        """The options that would read it, as far as they can be guessed."""
        order = ("conversation", "messages", "role", "text", "user", "assistant", "label", "comment", "time", "turn")
        found: dict[str, object] = {
            "columns": printable(pairs_as_typed((part, self.columns[part]) for part in order if part in self.columns))
        }
        said = list(dict.fromkeys(str(value) for value in self._speakers if value not in (None, "")))
        if any(ROLES.get(_plain(name)) is None for name in said) and len(said) <= MOST_ROLES:
            found["roles"] = printable(pairs_as_typed(speakers(said)))
        sides = [[v for v in self._labels if _plain(v).replace(" ", "_") in words.split()] for words in (GOOD, BAD)]
        if not all(map(is_usual, self._labels)) and all(sides):
            found |= {"positive": ",".join(sides[0]), "negative": ",".join(sides[1])}
        return found

    @property
    def _labels(self) -> list[str]:
        return [v for v in dict.fromkeys(map(str, self._column("label"))) if v.casefold() not in MISSING]

    def _column(self, part: str) -> list[Any]:
        return self.values.get(self.columns.get(part, ""), [])

    @property
    def table(self) -> str:
        """Each column with three values, and what it seems to be."""
        parts = {name: part for part, name in self.columns.items()}
        wide = max(len(printable(name, SHOWN)) for name in self.values)
        lines = []
        for name, values in self.values.items():
            different = dict.fromkeys(printable(str(_cut(value)), SHOWN) for value in values if value not in (None, ""))
            said = " · ".join([*different][:EXAMPLES]) or "(empty)"
            lines.append(f"  {printable(name, SHOWN):<{wide}}  {said}{f'  ({parts[name]}?)' if name in parts else ''}")
        return "\n".join(lines)

    def is_text(self, values: list[Any]) -> float:
        """Tell whether values are words that people wrote: mostly different, and several words."""
        said = _texts(values)
        several = [value for value in said if " " in value.strip()]
        return len(several) / len(said) * (0.5 + len(set(said)) / len(said) / 2) if len(said) * 2 >= len(values) else 0

    def is_role(self, values: list[Any]) -> float:
        """Tell whether values are a few names that take turns."""
        said = _texts(values)
        few = 2 <= len(set(said)) <= FEW and len(said) == len(values) and max(len(one.split()) for one in said) <= 2
        return (0.5 + _share(a != b for a, b in pairwise(said)) / 2) if few else 0

    def is_id(self, values: list[Any]) -> float:
        """Tell whether values stand for several rows each, or for one each where rows are no turns."""
        said = [str(value) for value in values if value not in (None, "")]
        whole = "messages" in self.columns or "user" in self.columns
        if (
            len(said) < len(values)
            or (not whole and len(set(said)) == len(said) > 1)
            or any(" " in one for one in said)
        ):
            return 0
        return 0.5 if whole else _share(a == b for a, b in pairwise(said))

    def is_label(self, values: list[Any]) -> float:
        """Tell whether values are few, or numbers, and thumbs best of all."""
        said = [str(value) for value in values if str(value or "").casefold() not in MISSING]
        if not said or len(set(said)) > FEW or max(map(len, said)) > SHORT:
            return 0
        return 1 if all(map(is_usual, said)) else 0.7 if all(map(as_number, said)) else 0.4


FITS: Mapping[str, Callable[[Guess, list[Any]], float]] = {
    "time": lambda _, values: _share(any(dated((moment(value, True), moment(value, False)))) for value in values),
    "messages": lambda _, values: _share(is_list_of_turns(value) for value in values),
    "user": lambda guess, values: guess.is_text(values) if _named_pair(guess) else 0,
    "assistant": lambda guess, values: guess.is_text(values) if "user" in guess.columns else 0,
    "role": Guess.is_role,
    "text": Guess.is_text,
    "conversation": Guess.is_id,
    "label": Guess.is_label,
    "comment": Guess.is_text,
    "turn": lambda _, values: _rising([float(found) for value in values if (found := as_number(value))], len(values)),
}
"""How well values are what a part has, from 0 to 1; the surest parts come first."""
BY_CONTENT, SURE = ("messages", "role", "text", "conversation", "time"), 0.5
"""Parts that are guessed without a name that says so."""


def _rising(numbers: Sequence[float], wanted: int) -> float:
    return _share(a < b for a, b in pairwise(numbers)) if len(numbers) == wanted else 0


def _named_pair(guess: Guess) -> bool:
    return all(any(_named(name, part) for name in guess.values) for part in ("user", "assistant"))


def _named(name: str, part: str) -> int:
    words = re.split(r"[^a-z]+", _plain(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)))
    return int(any(word in NAMES[part].split() for word in words))


def _plain(text: str) -> str:
    """Return lower case without accents; German umlauts as two letters."""
    folded = text.strip().casefold().translate({ord("ä"): "ae", ord("ö"): "oe", ord("ü"): "ue"})
    return unicodedata.normalize("NFKD", folded).encode("ascii", "ignore").decode()


def _texts(values: Iterable[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str) and value.strip()]


def _share(which: Iterable[bool]) -> float:
    found = list(which)
    return sum(found) / len(found) if found else 0.0


def _kept(value: Any) -> Any:
    """Return a value cut short; of a list of objects, the first ones."""
    turns = objects(value)[:EXAMPLES]
    return [{name: _cut(inner) for name, inner in turn.items()} for turn in turns] or _cut(value)


def _cut(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)[:200]
    return value[:200] if isinstance(value, str) else value
