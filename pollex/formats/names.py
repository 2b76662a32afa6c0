"""Words in names of columns and in values of some languages, which say what they are."""

import re
import unicodedata
from functools import lru_cache

NAMES = {
    "messages": """messages turns verlauf dialog dialogue transcript messaggi mensajes berichten historique
        history conversation chat activities thread replies""",
    "text": """text content message body nachricht inhalt beitrag mensaje texto messaggio testo mensagem
        tekst bericht texte utterance words msg""",
    "role": """role speaker sender author absender rolle sprecher autor verfasser von remitente emisor rol
        expediteur auteur mittente ruolo remetente papel afzender from who wer direction actor bot obj side
        participant kind type""",
    "conversation": """conversation chat thread session ticket dialog dialogue gespraech unterhaltung vorgang
        fall anfrage case conversacion sesion discussion conversazione sessione conversa gesprek zaak conv call
        sitzung topic talk""",
    "id": "id uuid key nr nummer number hash",
    "label": """label thumb thumbs rating feedback vote note bewertung daumen zufriedenheit urteil nota
        valoracion voto avis evaluation valutazione giudizio avaliacao beoordeling score stars csat sterne
        quality nps satisfaction thumbup verdict reaction reactions zufrieden oordeel satisfied satisfecho
        contento satisfait helpful hilfreich voting bewertet judgement judgment resolved solved success
        successful ok outcome mood smiley emoji flag flags survey grade geloest resuelto resolu risolto opgelost""",
    "comment": "comment comments kommentar bemerkung comentario commentaire commento opmerking remark",
    "time": """time timestamp date datetime created zeit zeitpunkt datum uhrzeit fecha hora heure horodatage
        ora data tijd ts at sent""",
    "turn": "turn position index seq order nr nummer schritt paso etape passo stap n",
    "user": "user question prompt query frage kundenfrage pregunta domanda pergunta vraag anliegen input asked q",
    "assistant": """assistant answer response reply antwort respuesta reponse risposta resposta antwoord output
        answered bot a""",
}
"""Words of columns' names by part, without accents."""
USERS = """user kunde kundin kunden nutzer nutzerin benutzer anwender gast besucher anrufer cliente usuario
    usuaria utilisateur client visiteur utente visitatore utilizador klant gebruiker bezoeker patient buyer
    guest member student inbound incoming q caller external end_user enduser prompter"""
ASSISTANTS = """bot assistent assistentin berater beraterin agent agentin mitarbeiter mitarbeiterin support ki
    asistente agente robot conseiller assistente operatore atendente medewerker robo shop helpdesk advisor
    outbound outgoing staff a answer_bot virtual chatbot ai helper service concierge"""
SPEAKERS = dict.fromkeys(USERS.split(), "user") | dict.fromkeys(ASSISTANTS.split(), "assistant")
GOOD = """gut super hilfreich ja zufrieden positiv bueno buena si bien bon bonne oui buono buona sim bom boa
    goed tevreden daumen_hoch acceptable great excellent ok okay fine satisfactory perfect useful"""
BAD = """schlecht nein unzufrieden negativ malo mala no mal mauvais mauvaise non cattivo cattiva nao ruim slecht
    ontevreden daumen_runter unacceptable poor terrible awful useless unsatisfactory wrong"""


@lru_cache(maxsize=4096)
def is_called(path: str, part: str) -> bool:
    """Return whether the last name of a path says what the column is."""
    *_, last = [step for step in path.replace("[]", "").split(".") if step] or [path]
    words = re.split(r"[^a-z]+", plain(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", last)))
    return any(word in NAMES[part].split() for word in words)


def plain(text: str) -> str:
    """Return lower case without accents; German umlauts as two letters."""
    folded = text.strip().casefold().translate({ord("ä"): "ae", ord("ö"): "oe", ord("ü"): "ue"})
    return unicodedata.normalize("NFKD", folded).encode("ascii", "ignore").decode()


def folded_name(text: str) -> str:
    """Return a word as lists of words here spell it."""
    return plain(text).replace(" ", "_")
