"""The simulated model as a LangChain chat model: the whole pipeline without a server."""

from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field

from planted.model import Reader


class PlantedChat(BaseChatModel):
    """Answers as `reader` does; what isn't a prompt of pollex's gets an empty object.

    Attributes:
        heard: What it was asked, each call its messages in one text.
    """

    model_name: str = "planted"
    reader: Reader = Reader()
    heard: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "planted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name, "reader": repr(self.reader)}

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """The model itself: it calls no tools, and the probe finds that out."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        said = [{"role": message.type, "content": message.content} for message in messages]
        self.heard.append("\n".join(str(message.content) for message in messages))
        text = self.reader.reply(said) or "{}"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        """The same, without the thread that LangChain would use."""
        return self._generate(messages)
