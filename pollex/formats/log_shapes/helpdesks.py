"""Help desks: Intercom's conversations, Zendesk's tickets, their comments and ratings."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping

from pollex.conversations.conversation import Role, Turn
from pollex.formats.assembly.pieces import Facts, Message, Piece, Score, moment
from pollex.formats.log_shapes.exports import Export, Fields, at, facts, inside, objects, required, text, truth

_BREAK = re.compile(r"<br\s*/?>|</(p|div|li|tr|h\d)>", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_IMAGE = re.compile(r"<img\b[^>]*>", re.IGNORECASE)
CUSTOMERS = frozenset(("user", "lead", "contact", "end-user", "end_user"))


def _plain(body: object) -> str:
    """Convert HTML to plain text."""
    marked = _TAG.sub("", _BREAK.sub("\n", _IMAGE.sub("[image]", str(body or ""))))
    return "\n".join(line.strip() for line in html.unescape(marked).splitlines() if line.strip())


def _intercom(fields: Fields) -> Iterator[Piece]:
    id_ = required(fields, "id")
    parts = [inside(fields.get("source")), *objects(at(fields, "conversation_parts.conversation_parts"))]
    for number, part in enumerate(parts):
        words, author = _plain(part.get("body")), inside(part.get("author"))
        if words and part.get("part_type", "comment") != "note":
            role: Role = "user" if str(author.get("type")) in CUSTOMERS else "assistant"
            when = moment(part.get("created_at")) or moment(fields.get("created_at"))
            yield Message(id_, f"{id_}/{number}", (Turn(role=role, content=words),), when)
    rating = inside(fields.get("conversation_rating"))
    fin = inside(fields.get("ai_agent")).get("rating")
    yield Facts(id_, facts(title=fields.get("title"), rating_of_fin=fin))
    if rating.get("rating") is not None:
        person = text(inside(rating.get("contact")).get("id"))
        comment, when = str(rating.get("remark") or ""), moment(rating.get("created_at"))
        yield Score("conversation", id_, rating["rating"], comment=comment, person=person, at=when, rating=True)


def _ticket(fields: Fields) -> Iterator[Piece]:
    id_, requester = required(fields, "id"), text(fields.get("requester_id"))
    yield Facts(id_, facts(title=fields.get("subject"), user=requester))
    for number, comment in enumerate(objects(fields.get("comments"))):
        yield from _said(id_, f"{id_}/{number}", comment, text(comment.get("author_id")) == requester)
    yield from _satisfaction({**inside(fields.get("satisfaction_rating")), "ticket_id": id_})


def _comment(fields: Fields) -> Iterator[Piece]:
    id_, role = required(fields, "ticket_id"), str(fields.get("author_role") or "").casefold()
    key = text(fields.get("comment_id")) or text(fields.get("id"))
    yield from _said(id_, key, fields, role in CUSTOMERS)
    if fields.get("satisfaction_score"):
        said = {"score": fields["satisfaction_score"], "comment": fields.get("satisfaction_comment"), "ticket_id": id_}
        yield from _satisfaction(said)


def _said(id_: str, key: str | None, comment: Mapping[str, object], customer: bool) -> Iterator[Message]:
    """Yield the message of a public comment."""
    words = str(comment.get("plain_body") or "") or _plain(comment.get("html_body") or comment.get("body"))
    if words.strip() and (comment.get("public") is None or truth(comment["public"])):
        turn = Turn(role="user" if customer else "assistant", content=words.strip())
        yield Message(id_, key, (turn,), moment(comment.get("created_at")))


def _satisfaction(fields: Fields) -> Iterator[Score]:
    """Yield a rating of good or bad; offered ratings are none. Rows may repeat it."""
    score, id_ = str(fields.get("score") or ""), required(fields, "ticket_id")
    if score and score not in ("offered", "unoffered"):
        comment = str(fields.get("comment") or "")
        person = text(fields.get("requester_id"))
        yield Score("conversation", id_, score.removesuffix("_with_comment"), comment=comment, person=person)


EXPORTS = (
    Export(
        name="Intercom conversations",
        signs=(("source.author", "conversation_parts"), ("id", "conversation_rating", "conversation_parts")),
        read=_intercom,
    ),
    Export(
        name="Zendesk tickets",
        signs=(("requester_id", "comments", "id"), ("satisfaction_rating", "requester_id", "comments")),
        read=_ticket,
        example=(
            {
                "id": "a",
                "requester_id": 1,
                "satisfaction_rating": {"score": "good"},
                "comments": [{"author_id": 1, "plain_body": "Hello"}, {"author_id": 2, "plain_body": "Good day"}],
            },
        ),
    ),
    Export(
        name="Zendesk comments",
        signs=(("ticket_id", "author_role", "body"), ("ticket_id", "author_role", "html_body")),
        read=_comment,
        example=(
            {
                "ticket_id": "a",
                "comment_id": 1,
                "author_role": "end-user",
                "body": "Hello",
                "satisfaction_score": "good",
            },
            {
                "ticket_id": "a",
                "comment_id": 2,
                "author_role": "agent",
                "body": "Good day",
                "satisfaction_score": "good",
            },
        ),
    ),
    Export(name="Zendesk ratings", signs=(("ticket_id", "score", "requester_id"),), read=_satisfaction),
)
