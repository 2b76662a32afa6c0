"""A run goes on only with the prompts that it began with."""

from dataclasses import replace
from pathlib import Path

import pytest
from scripted import Scripted, asker

from pollex.agents.llm.extractor import LlmExtractor
from pollex.agents.llm.judge import Batched, LlmJudge
from pollex.errors import ResumeRefused
from pollex.store.resume import resumable
from pollex.store.store import Store


def test_a_resume_with_another_prompt_or_scale_is_refused_and_says_whose(tmp_path: Path) -> None:
    judge, changed = LlmJudge(asker(Scripted())), Batched(asker(Scripted()))
    changed.prompt = replace(changed.prompt, version="another")
    other = LlmJudge(asker(Scripted()), changed)
    before, now = {"judge": judge.fingerprint}, {"judge": other.fingerprint}
    with Store.open(tmp_path) as store:
        begun = store.begin("score", arguments={}, fingerprint=before, versions={})
        assert resumable(store, "score", before).id == begun.id
        with pytest.raises(ResumeRefused, match=r"judge: .* → "):
            resumable(store, "score", now)
    extractor, changed_one = LlmExtractor(asker(Scripted())), LlmExtractor(asker(Scripted()))
    changed_one.prompts["sat"] = replace(changed_one.prompts["sat"], version="another")
    assert extractor.fingerprint != changed_one.fingerprint
    assert len({LlmJudge(asker(Scripted(), scale=scale)).fingerprint for scale in ("likert", "numeric")}) == 2
