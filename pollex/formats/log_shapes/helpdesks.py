"""Help desks: Intercom's conversations, Zendesk's tickets, their comments and ratings."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping

from pollex.conversations.conversation import Role, Turn
from pollex.formats.assembly.pieces import Facts, Message, Piece, Score, moment
from pollex.formats.log_shapes.exports import Fields, at, facts, inside, objects, required, text, truth
from pollex.formats.log_shapes.parts import attached
from pollex.formats.log_shapes.payloads import opened

_BREAK = re.compile(r"<br\s*/?>|</(p|div|li|tr|h\d)>", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_IMAGE = re.compile(r"<img\b[^>]*>", re.IGNORECASE)
CUSTOMERS = frozenset(("user", "lead", "contact", "end-user", "end_user"))


def _plain(body: object) -> str:
    """Convert HTML to plain text."""
    marked = _TAG.sub("", _BREAK.sub("\n", _IMAGE.sub("[image]", str(body or ""))))
    return "\n".join(line.strip() for line in html.unescape(marked).splitlines() if line.strip())


def read_intercom(fields: Fields) -> Iterator[Piece]:
    id_ = required(fields, "id")
    parts = [inside(fields.get("source")), *objects(at(fields, "conversation_parts.conversation_parts"))]
    for number, part in enumerate(parts):
        author = inside(part.get("author"))
        words = "\n".join(filter(None, [_plain(part.get("body")), *attached(part.get("attachments"))]))
        if words and part.get("part_type", "comment") != "note":
            role: Role = "user" if str(author.get("type")) in CUSTOMERS else "assistant"
            when = moment(part.get("created_at")) or moment(fields.get("created_at"))
            yield Message(id_, f"{id_}/{number}", (Turn(role=role, content=words),), when)
    rating = inside(fields.get("conversation_rating"))
    fin = inside(fields.get("ai_agent")).get("rating")
    yield Facts(id_, facts(title=fields.get("title"), rating_of_fin=fin))
    if rating.get("rating") is not None:
        person = text(inside(rating.get("contact")).get("id"))
        comment, when = rating.get("remark"), moment(rating.get("created_at"))
        yield Score("conversation", id_, rating["rating"], comment=comment, person=person, at=when, rating=True)


def read_ticket(fields: Fields) -> Iterator[Piece]:
    id_, requester = required(fields, "id"), text(fields.get("requester_id") or at(fields, "requester.id"))
    yield Facts(id_, facts(title=fields.get("subject"), user=requester))
    customers = _ids(fields, "collaborator_ids", "email_cc_ids") - _ids(fields, "follower_ids") | {requester}
    customers.discard(text(fields.get("assignee_id")))
    for number, comment in enumerate(objects(fields.get("comments"))):
        author, role = text(comment.get("author_id")), text(at(comment, "author.role"))
        yield from _said(id_, f"{id_}/{number}", comment, role in CUSTOMERS if role else author in customers)
    yield from read_satisfaction({**inside(fields.get("satisfaction_rating")), "ticket_id": id_})


def _ids(fields: Fields, *names: str) -> set[str | None]:
    lists = (opened(fields.get(name)) for name in names)
    return {text(one) for found in lists if isinstance(found, list) for one in found}


def read_chat(fields: Fields) -> Iterator[Piece]:
    """Yield a live chat; what began as a chat and its rating is in its history, too."""
    id_ = required(fields, "id")
    yield Facts(id_, facts(user=text(at(fields, "visitor.id"))))
    said = [event for event in objects(fields.get("history")) if event.get("type") == "chat.msg"]
    for number, event in enumerate(said):
        visitor = str(event.get("sender_type") or event.get("nick")).casefold().startswith(("visitor", "enduser"))
        turn = Turn(role="user" if visitor else "assistant", content=str(event.get("msg") or ""))
        yield Message(id_, f"{id_}/{number}", (turn,), moment(event.get("timestamp")))
    yield from read_satisfaction({"score": fields.get("rating"), "comment": fields.get("comment"), "ticket_id": id_})


def read_audit(fields: Fields) -> Iterator[Piece]:
    """Yield the comments of an audit; the first author of a ticket is its requester, who speaks as the user."""
    id_, when = required(fields, "ticket_id"), fields.get("created_at")
    for event in objects(fields.get("events") or fields.get("child_events")):
        if "Comment" in (event.get("type"), event.get("event_type")):
            author = text(event.get("author_id")) or text(fields.get("author_id")) or text(fields.get("updater_id"))
            for said in _said(id_, text(event.get("id")), {"created_at": when, **event}, customer=False):
                yield said._replace(author=author)


def read_comment(fields: Fields) -> Iterator[Piece]:
    id_, role = required(fields, "ticket_id"), str(fields.get("author_role") or "").casefold()
    key = text(fields.get("comment_id")) or text(fields.get("id"))
    yield from _said(id_, key, fields, role in CUSTOMERS)
    if fields.get("satisfaction_score"):
        said = {"score": fields["satisfaction_score"], "comment": fields.get("satisfaction_comment"), "ticket_id": id_}
        yield from read_satisfaction(said)


def _said(id_: str, key: str | None, comment: Mapping[str, object], customer: bool) -> Iterator[Message]:
    """Yield the message of a public comment."""
    body = str(comment.get("plain_body") or "") or _plain(comment.get("html_body") or comment.get("body"))
    words = "\n".join(filter(None, [body.strip(), *attached(comment.get("attachments"))]))
    if words and (comment.get("public") is None or truth(comment["public"])):
        turn = Turn(role="user" if customer else "assistant", content=words)
        yield Message(id_, key, (turn,), moment(comment.get("created_at")))


def read_satisfaction(fields: Fields) -> Iterator[Score]:
    """Yield a rating of good or bad; offered ratings are none. Rows may repeat it."""
    score, id_ = str(fields.get("score") or ""), required(fields, "ticket_id")
    if score and score not in ("offered", "unoffered"):
        said, person = fields.get("comment"), text(fields.get("requester_id"))
        value, reason = score.removesuffix("_with_comment"), fields.get("reason")
        yield Score("conversation", id_, value, comment=said, tags=reason, person=person)
