"""A LangChain chat model that can't call tools, as most that are written by hand, is asked for JSON in its text."""

from pathlib import Path
from typing import Any

import pytest

from planted.chat import PlantedChat
from planted.world import World
from pollex import learn


class WithoutTools(PlantedChat):
    """As LangChain has it where nobody wrote `bind_tools`."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


@pytest.mark.nightly
def test_a_chat_model_without_tools_learns(tmp_path: Path) -> None:
    found = learn(
        World(0).conversations(24), model=WithoutTools(), rubrics="generic", store=tmp_path
    )
    assert found.judge.options.capabilities is not None
    assert found.judge.options.capabilities.tools is False
    assert found.held_out is not None
    assert found.held_out.n == 12
