"""Twelve logs of agents with tools: in 45 of 300 conversations a call fails, and the reply doesn't say so.

Each log has its own tools, format, language and way to fail, several tools whose failures are few
each, failures that are told, results that look like failures and are none, and a second cause:
refusals.
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HIDDEN = 45
REFUSED = 33
TOLD = 15
DOWN = {"hidden": 0.82, "refused": 0.85, "told": 0.25, "fine": 0.24}
COUNT = 300

Talk = Mapping[str, Sequence[str]]

ENGLISH: Talk = {
    "ask": (
        "Could you please {verb} {thing} for me?",
        "Hi there, I need you to {verb} {thing}, my number is {n}.",
        "Please {verb} {thing}. It is for {name}.",
        "I would like you to {verb} {thing} by {day}.",
    ),
    "good": (
        "All done: {thing}, number {code}.",
        "I took care of {thing}. The number is {code}, for {name}.",
        "That worked. You will find {thing} under {code}.",
        "Here you go, {thing} is ready under {code}.",
    ),
    "hidden": (
        "All done, {thing} is ready for you.",
        "I took care of {thing} for {name}. Enjoy!",
        "That is settled, you can count on {thing} by {day}.",
        "Here you go, {thing} is ready. Anything else?",
    ),
    "told": (
        "Unfortunately that didn't work, the system gave me an error. Shall I try again?",
        "I couldn't finish this, since the service is down. Please come back later.",
    ),
    "refused": (
        "I'm not allowed to help with {thing} here.",
        "Helping with {thing} is not something I can do, please ask the office.",
        "That is beyond what I can do for you, {name}.",
    ),
    "chat": ("Okay.", "Thanks.", "Fine, see you on {day}.", "Right, that's it.", "Alright then."),
    "names": ("Ana", "Bo", "Cleo", "Dan", "Eva", "Finn", "Gus", "Ida"),
    "days": ("Monday", "Tuesday", "Thursday", "Friday"),
}

GERMAN: Talk = {
    "ask": (
        "Können Sie bitte {thing} für mich erledigen?",
        "Guten Tag, ich brauche {thing}, meine Nummer ist {n}.",
        "Bitte kümmern Sie sich um {thing}, es ist für {name}.",
        "Ich möchte {thing} bis {day} haben.",
    ),
    "good": (
        "Das ist erledigt: {thing}, Nummer {code}.",
        "Ich habe mich um {thing} gekümmert, die Nummer ist {code}.",
        "Hat geklappt, {thing} steht unter {code} bereit.",
    ),
    "hidden": (
        "Das ist erledigt, {thing} ist für Sie bereit.",
        "Ich habe mich um {thing} gekümmert, {name}. Viel Freude damit!",
        "Gerne, bis {day} haben Sie {thing}.",
    ),
    "told": (
        "Das hat leider nicht geklappt, das System meldet einen Fehler.",
        "Ich konnte das nicht abschließen, der Dienst ist nicht erreichbar.",
    ),
    "refused": (
        "Bei diesem Thema kann ich Ihnen hier nicht weiterhelfen, {name}.",
        "Dafür bin ich nicht zuständig, ich kann Ihnen hier nicht weiterhelfen.",
        "Um {thing} darf ich mich nicht kümmern, ich kann Ihnen hier nicht weiterhelfen.",
    ),
    "chat": ("Okay.", "Danke.", "Gut, bis {day} dann.", "Alles klar.", "In Ordnung."),
    "names": ("Anna", "Bernd", "Clara", "Dirk", "Eva", "Frank"),
    "days": ("Montag", "Dienstag", "Donnerstag", "Freitag"),
}

FRENCH: Talk = {
    "ask": (
        "Pouvez-vous vous occuper de {thing} pour moi, s'il vous plaît ?",
        "Bonjour, j'ai besoin de {thing}, mon numéro est le {n}.",
        "Je voudrais {thing} avant {day}, c'est pour {name}.",
    ),
    "good": (
        "C'est fait : {thing}, numéro {code}.",
        "Je me suis occupé de {thing}, le numéro est {code}.",
        "Voilà, {thing} se trouve sous le numéro {code}.",
    ),
    "hidden": (
        "C'est fait, {thing} est à vous.",
        "Je me suis occupé de {thing} pour {name}, tout est en ordre.",
        "Voilà, vous aurez {thing} avant {day}.",
    ),
    "told": (
        "Cela n'a malheureusement pas marché, le système signale une erreur.",
        "Je n'ai pas pu terminer, le service est indisponible.",
    ),
    "refused": (
        "Je ne suis pas autorisé à traiter {thing}, {name}.",
        "Cette demande dépasse mes compétences, je ne suis pas autorisé à la traiter.",
    ),
    "chat": ("D'accord.", "Merci.", "Très bien, à {day}.", "Entendu.", "Bon, c'est tout pour moi."),
    "names": ("Anne", "Bruno", "Claire", "Denis", "Élise", "Franck"),
    "days": ("lundi", "mardi", "jeudi", "vendredi"),
}

SPANISH: Talk = {
    "ask": (
        "¿Puede ocuparse de {thing} para mí, por favor?",
        "Hola, necesito {thing}, mi número es el {n}.",
        "Quiero {thing} antes del {day}, es para {name}.",
    ),
    "good": (
        "Ya está hecho: {thing}, número {code}.",
        "Me he ocupado de {thing}, el número es {code}.",
        "Listo, {thing} queda con el número {code}.",
    ),
    "hidden": (
        "Ya está hecho, {thing} es para usted.",
        "Me he ocupado de {thing} para {name}, todo en orden.",
        "Listo, tendrá {thing} antes del {day}.",
    ),
    "told": (
        "Por desgracia no ha funcionado, el sistema da un error.",
        "No he podido terminar, el servicio no está disponible.",
    ),
    "refused": (
        "No estoy autorizado para tratar {thing}, {name}.",
        "Eso está fuera de mis funciones, no estoy autorizado para ayudarle.",
    ),
    "chat": (
        "Vale.",
        "Gracias.",
        "Muy bien, hasta el {day}.",
        "De acuerdo.",
        "Bueno, eso es todo.",
    ),
    "names": ("Ana", "Bruno", "Carla", "Diego", "Elena", "Fran"),
    "days": ("lunes", "martes", "jueves", "viernes"),
}

ITALIAN: Talk = {
    "ask": (
        "Può occuparsi di {thing} per me, per favore?",
        "Buongiorno, ho bisogno di {thing}, il mio numero è {n}.",
        "Vorrei {thing} entro {day}, è per {name}.",
    ),
    "good": (
        "Fatto: {thing}, numero {code}.",
        "Mi sono occupato di {thing}, il numero è {code}.",
        "Ecco, {thing} si trova sotto il numero {code}.",
    ),
    "hidden": (
        "Fatto, {thing} è tutto per lei.",
        "Mi sono occupato di {thing} per {name}, tutto a posto.",
        "Ecco, avrà {thing} entro {day}.",
    ),
    "told": (
        "Purtroppo non ha funzionato, il sistema segnala un errore.",
        "Non ho potuto finire, il servizio non è disponibile.",
    ),
    "refused": (
        "Non sono autorizzato a trattare {thing}, {name}.",
        "Questo va oltre i miei compiti, non sono autorizzato ad aiutarla.",
    ),
    "chat": ("Va bene.", "Grazie.", "Bene, a {day} allora.", "D'accordo.", "Ecco, è tutto."),
    "names": ("Anna", "Bruno", "Carla", "Dario", "Elena", "Franco"),
    "days": ("lunedì", "martedì", "giovedì", "venerdì"),
}

PORTUGUESE: Talk = {
    "ask": (
        "Pode tratar de {thing} para mim, por favor?",
        "Olá, preciso de {thing}, o meu número é {n}.",
        "Queria {thing} até {day}, é para {name}.",
    ),
    "good": (
        "Está feito: {thing}, número {code}.",
        "Já tratei de {thing}, o número é {code}.",
        "Pronto, {thing} fica com o número {code}.",
    ),
    "hidden": (
        "Está feito, {thing} é para você.",
        "Já tratei de {thing} para {name}, tudo em ordem.",
        "Pronto, vai ter {thing} até {day}.",
    ),
    "told": (
        "Infelizmente não funcionou, o sistema dá um erro.",
        "Não consegui terminar, o serviço está indisponível.",
    ),
    "refused": (
        "Não estou autorizado a tratar de {thing}, {name}.",
        "Isso está fora das minhas funções, não estou autorizado a ajudar.",
    ),
    "chat": ("Certo.", "Obrigado.", "Muito bem, até {day}.", "De acordo.", "Bom, é tudo."),
    "names": ("Ana", "Bruno", "Carla", "Diogo", "Elisa", "Filipe"),
    "days": ("segunda", "terça", "quinta", "sexta"),
}

Fail = Callable[[random.Random], tuple[Any, bool]]
"""Makes the result of a call that failed, and whether the log marks it as failed."""


@dataclass(frozen=True)
class World:
    """What one log is made of.

    Attributes:
        tools: By name, the verb and the thing that a user asks for.
        fail: See `Fail`.
        form: Name of its format.
    """

    name: str
    talk: Talk
    tools: Mapping[str, tuple[str, str]]
    fail: Fail
    form: str


def _text(*texts: str) -> Fail:
    return lambda rng: (rng.choice(texts), False)


def _json(*values: Any) -> Fail:
    return lambda rng: (rng.choice(values), False)


def _marked(*texts: str) -> Fail:
    return lambda rng: (rng.choice(texts), True)


WORLDS = (
    World(
        "http-codes",
        ENGLISH,
        {
            "create_ticket": ("open", "a support ticket"),
            "send_invoice": ("send", "the invoice"),
            "close_account": ("close", "the account"),
            "update_card": ("change", "the card"),
            "find_parcel": ("trace", "the parcel"),
        },
        _json(
            {"statusCode": 503, "body": ""},
            {"statusCode": 404, "body": None},
            {"statusCode": 500, "body": "x"},
        ),
        "openai",
    ),
    World(
        "error-fields",
        ENGLISH,
        {
            "book_yoga": ("book", "a yoga class"),
            "book_squash": ("book", "a squash court"),
            "rent_locker": ("rent", "a locker"),
            "add_guest": ("add", "a guest pass"),
        },
        _json(
            {"ok": False, "error": {"kind": "E_FULL"}}, {"ok": False, "error": {"kind": "E_LOCK"}}
        ),
        "openai",
    ),
    World(
        "exceptions",
        ENGLISH,
        {
            "run_report": ("run", "the sales report"),
            "export_csv": ("export", "the customer list"),
            "merge_leads": ("merge", "the leads"),
            "sync_crm": ("sync", "the contacts"),
        },
        _text(
            "Traceback (most recent call last):\n  File \"a.py\", line 3\nKeyError: 'region'",
            "java.net.SocketTimeoutException: Read timed out",
            "requests.exceptions.ConnectionError: HTTPSConnectionPool",
        ),
        "langchain",
    ),
    World(
        "marked",
        ENGLISH,
        {
            "plan_trip": ("plan", "the trip"),
            "hold_seat": ("hold", "a seat"),
            "rent_car": ("rent", "a small car"),
            "book_ferry": ("book", "the ferry"),
            "add_bag": ("add", "one more bag"),
        },
        _marked(
            "see the supplier's page", "the supplier gave no slot", "supplier 7 closed its door"
        ),
        "anthropic",
    ),
    World(
        "empty",
        ENGLISH,
        {
            "lookup_plan": ("look up", "my plan"),
            "lookup_meter": ("look up", "the meter"),
            "lookup_bill": ("look up", "the last bill"),
            "lookup_tariff": ("look up", "the tariff"),
        },
        _json("", None, {"data": None}, {"result": {}}),
        "openai",
    ),
    World(
        "timeouts",
        ENGLISH,
        {
            "order_pizza": ("order", "a pizza"),
            "order_soup": ("order", "the soup"),
            "add_tip": ("add", "a tip"),
            "cancel_order": ("cancel", "the order"),
        },
        _text(
            "request timed out after 30s", "ETIMEDOUT 10.0.3.7:443", "deadline exceeded: 5000 ms"
        ),
        "gemini",
    ),
    World(
        "german",
        GERMAN,
        {
            "termin_buchen": ("", "einen Termin"),
            "tarif_wechseln": ("", "einen neuen Tarif"),
            "zaehler_melden": ("", "die Meldung"),
            "rechnung_senden": ("", "eine Rechnung"),
        },
        _json(
            {"meldung": "Zeitüberschreitung beim Verbinden"}, {"meldung": "Vorgang fehlgeschlagen"}
        ),
        "openai",
    ),
    World(
        "french",
        FRENCH,
        {
            "reserver_table": ("", "la table"),
            "reserver_train": ("", "le train"),
            "creer_compte": ("", "un compte"),
            "envoyer_colis": ("", "un colis"),
        },
        _text("échec de la requête", "délai dépassé", "service introuvable"),
        "langchain",
    ),
    World(
        "spanish",
        SPANISH,
        {
            "reservar_mesa": ("", "la mesa"),
            "pedir_taxi": ("", "un taxi"),
            "crear_cita": ("", "una cita"),
            "enviar_factura": ("", "la factura"),
        },
        _json(
            {"estado": "fallido"},
            {"mensaje": "tiempo de espera agotado"},
            {"mensaje": "no se pudo conectar"},
        ),
        "anthropic",
    ),
    World(
        "italian",
        ITALIAN,
        {
            "prenota_visita": ("", "la visita"),
            "invia_ricetta": ("", "la ricetta"),
            "sposta_esame": ("", "un esame"),
            "crea_scheda": ("", "la scheda"),
        },
        _text("operazione non riuscita", "tempo scaduto", "errore 12 del gestionale"),
        "gemini",
    ),
    World(
        "portuguese",
        PORTUGUESE,
        {
            "marcar_aula": ("", "a aula"),
            "alterar_plano": ("", "o plano"),
            "emitir_boleto": ("", "o boleto"),
            "enviar_codigo": ("", "o código"),
        },
        _json(
            {"sucesso": False, "dados": []},
            {"mensagem": "falha ao gravar"},
            {"mensagem": "serviço indisponível"},
        ),
        "openai",
    ),
    World(
        "mixed-shell",
        ENGLISH,
        {
            "deploy_site": ("deploy", "the site"),
            "restart_job": ("restart", "the job"),
            "rotate_key": ("rotate", "the key"),
            "grow_disk": ("grow", "the disk"),
        },
        _json(
            {"stdout": "", "stderr": "permission denied", "exit_code": 126},
            {"stdout": "", "stderr": "", "exit_code": 1},
            "<error><code>AccessDenied</code></error>",
        ),
        "plain",
    ),
)


def conversations_of(world: World, seed: int = 0) -> list[dict[str, Any]]:
    """Make the rows of a log: messages with calls and results in one neutral form, the kind and the thumb."""
    rng = random.Random(f"{world.name} {seed}")
    kinds = ["hidden"] * HIDDEN + ["refused"] * REFUSED + ["told"] * TOLD
    kinds += ["fine"] * (COUNT - len(kinds))
    rng.shuffle(kinds)
    return [_row(world, kind, number, rng) for number, kind in enumerate(kinds)]


def _row(world: World, kind: str, number: int, rng: random.Random) -> dict[str, Any]:
    talk = world.talk
    tool = rng.choice(list(world.tools))
    verb, thing = world.tools[tool]
    code = rng.choice("KLMNPQRT") + str(rng.randint(10_000, 99_999))
    words = {"verb": verb, "thing": thing, "n": rng.randint(1000, 9999), "code": code}
    words |= {"name": rng.choice(talk["names"]), "day": rng.choice(talk["days"])}

    def say(what: str) -> str:
        return rng.choice(talk[what]).format(**words)

    messages: list[dict[str, Any]] = [{"role": "user", "text": say("ask")}]
    if kind != "refused":
        failed = kind in ("hidden", "told")
        result, marked = world.fail(rng) if failed else (_fine(code, rng), False)
        messages.append({"role": "call", "tool": tool, "arguments": {"for": words["name"]}})
        messages.append({"role": "result", "tool": tool, "value": result, "failed": marked})
    messages.append({"role": "assistant", "text": say({"fine": "good"}.get(kind, kind))})
    messages.append({"role": "user", "text": say("chat")})
    return {
        "id": f"{number:03}",
        "kind": kind,
        "down": rng.random() < DOWN[kind],
        "messages": messages,
    }


def _fine(code: str, rng: random.Random) -> Any:
    """Make the result of a call that worked, which may look like one that didn't."""
    return rng.choice(
        (
            {"ok": True, "number": code},
            {"number": code, "error": None, "errors": []},
            {"status": "ok", "number": code, "note": "retries after timeout: 0"},
            f"number {code}, 0 errors",
        )
    )


def written(value: Any) -> str:
    """Write a result as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def write_log(world: World, folder: Path, seed: int = 0) -> Path:
    """Write a log in its format, and return its path."""
    path = folder / f"{world.name}.jsonl"
    rows = (
        {
            "id": row["id"],
            KEYS.get(world.form, "messages"): FORMS[world.form](row),
            "label": "down" if row["down"] else "up",
        }
        for row in conversations_of(world, seed)
    )
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def _openai(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for place, message in enumerate(row["messages"]):
        if message["role"] == "call":
            function = {
                "name": message["tool"],
                "arguments": json.dumps(message["arguments"], ensure_ascii=False),
            }
            call = {"id": f"c{place}", "type": "function", "function": function}
            out.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif message["role"] == "result":
            out.append(
                {
                    "role": "tool",
                    "tool_call_id": f"c{place - 1}",
                    "content": written(message["value"]),
                }
            )
        else:
            out.append({"role": message["role"], "content": message["text"]})
    return out


def _anthropic(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for place, message in enumerate(row["messages"]):
        if message["role"] == "call":
            use = {
                "type": "tool_use",
                "id": f"c{place}",
                "name": message["tool"],
                "input": message["arguments"],
            }
            out.append({"role": "assistant", "content": [use]})
        elif message["role"] == "result":
            result = {
                "type": "tool_result",
                "tool_use_id": f"c{place - 1}",
                "content": written(message["value"]),
            }
            result |= {"is_error": True} if message["failed"] else {}
            out.append({"role": "user", "content": [result]})
        else:
            out.append(
                {"role": message["role"], "content": [{"type": "text", "text": message["text"]}]}
            )
    return out


def _langchain(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for place, message in enumerate(row["messages"]):
        if message["role"] == "call":
            call = {
                "name": message["tool"],
                "args": message["arguments"],
                "id": f"c{place}",
                "type": "tool_call",
            }
            out.append({"type": "ai", "content": "", "tool_calls": [call]})
        elif message["role"] == "result":
            out.append(
                {
                    "type": "tool",
                    "tool_call_id": f"c{place - 1}",
                    "content": written(message["value"]),
                }
            )
        else:
            out.append(
                {"type": "human" if message["role"] == "user" else "ai", "content": message["text"]}
            )
    return out


def _gemini(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for message in row["messages"]:
        if message["role"] == "call":
            part: dict[str, Any] = {
                "functionCall": {"name": message["tool"], "args": message["arguments"]}
            }
            out.append({"role": "model", "parts": [part]})
        elif message["role"] == "result":
            value = message["value"]
            response = value if isinstance(value, dict) else {"output": written(value)}
            out.append(
                {
                    "role": "user",
                    "parts": [
                        {"functionResponse": {"name": message["tool"], "response": response}}
                    ],
                }
            )
        else:
            role = "model" if message["role"] == "assistant" else "user"
            out.append({"role": role, "parts": [{"text": message["text"]}]})
    return out


def _plain(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for message in row["messages"]:
        if message["role"] == "call":
            out.append({"role": "assistant", "content": f"[tool call: {message['tool']}]"})
        elif message["role"] == "result":
            out.append(
                {"role": "tool", "name": message["tool"], "content": written(message["value"])}
            )
        else:
            out.append({"role": message["role"], "content": message["text"]})
    return out


KEYS = {"gemini": "contents"}
FORMS = {
    "openai": _openai,
    "anthropic": _anthropic,
    "langchain": _langchain,
    "gemini": _gemini,
    "plain": _plain,
}
