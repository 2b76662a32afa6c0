"""Passages of documents: how they are cut, found, and quoted."""

from pollex.agents.llm.simulator import LONGEST, Passage, Passages, passages_of

DOCUMENTS = {
    "returns.md": "Return a faulty kettle\nwithin thirty days.",
    "lamps.md": "A lamp has a warranty of two years.",
}


def test_no_word_of_a_long_document_is_lost() -> None:
    paragraphs = [f"{number} " * 200 for number in range(30)]
    found = passages_of({"long.md": "\n\n".join(paragraphs)})
    assert len(found) > 1
    assert max(len(passage.text) for passage in found) <= LONGEST
    assert " ".join(passage.text for passage in found).split() == " ".join(paragraphs).split()


def test_the_passage_that_shares_words_is_found_and_no_other() -> None:
    index = Passages(passages_of(DOCUMENTS))
    assert [passage.document for passage in index.best("which WARRANTY?", 5)] == ["lamps.md"]
    assert [passage.document for passage in index.named(["returns.md"], 5)] == ["returns.md"]
    assert index.best("xyzzy", 5) == index.best("", 5) == []


def test_a_quote_is_proven_by_its_words_alone() -> None:
    passage = Passage("returns.md", DOCUMENTS["returns.md"])
    assert passage.has("faulty kettle within  thirty")
    assert not passage.has("within forty days")
    assert not passage.has("  ")
