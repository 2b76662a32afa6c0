"""Sets and assistants of strangers: words stay words, and what a user's code does is the outcome of one reply."""

import ast
import asyncio
import json
import os
import time
from contextlib import suppress
from pathlib import Path

import yaml
from rubric_set_by_hand import rubric_set

from fault_cases import case
from fault_cases.money import ANSWER, ask, honest, serving
from pollex.errors import BadRubrics, WrongUse
from pollex.gateway.budget import Price
from pollex.rooms.exchange.formats.peers.targets import EXPORT_TARGETS, make_sheet
from pollex.rooms.remedy.agents.assistant import (
    AssistantReply,
    NoReply,
    ReplyRequest,
    build_assistant,
)
from pollex.rooms.remedy.agents.assistant_process import ProcessAssistant
from pollex.rooms.remedy.formats.cases import (
    CASE_FILE_TEMPLATES,
    CaseCheck,
    ReplyCase,
    render_case_files,
)
from pollex.rubrics.rubric_set import RubricSet, hash_rubrics

HOSTILE = (
    '"); import os; os.system("id"); ("""\nimport os\n"""\r\u2028\x85import os',
    "x: {y: 1}\n- !!python/object/apply:os.system [id] {% endraw %}{{{ env.X }}} {# c #} \\",
)


def changed(rubrics: RubricSet, field: str, words: str) -> RubricSet:
    """Return a set with words in one of its fields."""
    if field == "judge.name":
        return rubrics.model_copy(
            update={"judge": rubrics.judge.model_copy(update={"name": words, "kind": "llm"})}
        )
    if field in ("id", "text"):
        first, *rest = rubrics.rubrics
        every = (first.model_copy(update={field: words}), *rest)
        return rubrics.model_copy(update={"rubrics": every, "rubrics_digest": hash_rubrics(every)})
    if field == "task":
        return rubrics.model_copy(
            update={"domain": rubrics.domain.model_copy(update={field: words})}
        )
    return rubrics.model_copy(update={field: words})


def code_of(text: str) -> str:
    """Return what code does, without its texts."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def parsed(files: dict[str, str]) -> list[object]:
    """Return the code of Python's files, and the keys of the others; each is read by its language."""
    found: list[object] = []
    for name, text in files.items():
        if name.endswith(".py"):
            found.append(code_of(text))
        elif name.endswith((".yaml", ".json")):
            value = yaml.safe_load(text)
            found.append(sorted(value) if isinstance(value, dict) else len(value))
        elif name.endswith(".jsonl"):
            found.append([sorted(json.loads(line)) for line in text.splitlines()])
    return found


@case(
    "42.1.2",
    "no word of a set becomes code or structure of another tool's file, and names that are none aren't read",
)
def hostile_set(_folder: Path) -> str:
    """See `case`."""
    rubrics = rubric_set()
    seen = 0
    for target in EXPORT_TARGETS.values():
        for field in ("judge.name", "run", "pollex", "id", "text", "task"):
            plain = parsed(dict(target.files(make_sheet(changed(rubrics, field, "plain")))))
            for words in HOSTILE:
                made = parsed(dict(target.files(make_sheet(changed(rubrics, field, words)))))
                assert made == plain, f"{target.name}, {field}: {words!r}"
                seen += 1
    for tool in CASE_FILE_TEMPLATES:
        for words in HOSTILE:
            check = CaseCheck(words, "sat", words, words)
            made = parsed(
                render_case_files(tool, [ReplyCase(words, [], [check], words, 1, words)], words)
            )
            plain_case = ReplyCase("c", [], [CaseCheck("r", "sat", "t", "q")], "c", 1, "prove")
            assert made == parsed(render_case_files(tool, [plain_case], "m")), f"{tool}: {words!r}"
            seen += 1
    refused = 0
    for field in ("judge.name", "run", "pollex", "id"):
        for words in HOSTILE:
            try:
                RubricSet.parse(changed(rubrics, field, words).model_dump(mode="json"))
            except BadRubrics:
                refused += 1
    assert refused == 4 * len(HOSTILE), f"{refused} refused"
    return f"{seen} files read, {refused} names refused"


@case(
    "42.1.4",
    "what of a graph can't be seen to be harmless is refused, with tools in a function of it, too",
)
def acting_graph(folder: Path) -> str:
    """See `case`."""
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    canary = folder / "acted"

    def order(dish: str) -> str:
        """Order a dish."""
        canary.write_text(dish)
        return dish

    tools = ToolNode([order])

    def own(state: MessagesState) -> MessagesState:
        canary.write_text("acted")
        return state

    def inside(state: MessagesState) -> object:
        return tools.invoke(state)

    seen = []
    for node in (own, inside, tools):
        graph = StateGraph(MessagesState)
        graph.add_node("node", node)
        graph.add_edge(START, "node")
        compiled = graph.compile()
        seen += [
            build_assistant(compiled),
            build_assistant(lambda messages, _system, g=compiled: g.invoke(messages)),
        ]
    assert all(one.acts for one in seen), [one.acts for one in seen]  # type: ignore[attr-defined]
    assert not canary.exists()
    return f"{len(seen)} of {len(seen)} seen"


ENDS = {
    "exit": "import sys; sys.exit(0)",
    "leave": "import os; os._exit(0)",
    "interrupt": "raise KeyboardInterrupt",
    "crash": "import ctypes; ctypes.string_at(0)",
    "large": "return 'x' * 20_000_000",
    "hang": "import time; time.sleep(99)",
    "closeall": "import os; os.closerange(0, 99)",
    "group": "import os, signal; os.killpg(0, signal.SIGTERM)",
}
GOES_ON = {
    "chdir": "import os; os.chdir('/')",
    "close": "import sys; sys.stderr.close()",
    "print": "print('not an answer', flush=True)",
    "fork": "import os; os.fork()",
    "parent": "import os, signal; os.kill(os.getppid(), signal.SIGTERM)",
}


@case("42.1.5", "what a user's function does is the outcome of that reply alone")
def assistant_that_does_everything(folder: Path) -> str:
    """See `case`."""
    lines = ["def answer(messages, system):", "    word = messages[-1]['content']"]
    for word, code in (ENDS | GOES_ON).items():
        lines += [f"    if word == {word!r}:", f"        {code}"]
    (folder / "shop.py").write_text("\n".join([*lines, "    return 'fine'", ""]))
    words = [*ENDS, *GOES_ON, "plain"]
    before = Path.cwd()
    assistant = ProcessAssistant("shop", "answer", folder, seconds=1.5)

    async def asked() -> list[AssistantReply | NoReply]:
        rows = [
            ReplyRequest(
                key=word, item="c", system="", messages=[{"role": "user", "content": word}], seed=0
            )
            for word in words
        ]
        return list(await asyncio.gather(*map(assistant.reply, rows)))

    begun = time.monotonic()
    try:
        found = dict(zip(words, asyncio.run(asked()), strict=True))
    finally:
        assistant.close()
    wrong = [word for word, one in found.items() if isinstance(one, NoReply) != (word in ENDS)]
    assert not wrong, {word: found[word] for word in wrong}
    assert Path.cwd() == before
    return f"{len(words)} of {len(words)} in {time.monotonic() - begun:.1f} s"


@case(
    "42.1.5",
    "a module that ends at its import is refused in words, and nothing foreign is imported",
)
def assistant_that_ends_at_import(folder: Path) -> str:
    """See `case`."""
    told = []
    for code in ("import sys; sys.exit(0)", "import os; os._exit(0)", "raise KeyboardInterrupt"):
        (folder / "shop.py").write_text(code)
        try:
            ProcessAssistant("shop", "answer", folder).close()
        except WrongUse as error:
            told.append(str(error))
    assert len(told) == 3, told
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "yaml.py").write_text(f"open({str(folder / 'canary')!r}, 'w')")
    before = Path.cwd()
    os.chdir(folder / "elsewhere")
    try:
        with suppress(WrongUse):
            ProcessAssistant("shop", "answer", folder / "elsewhere").close()
    finally:
        os.chdir(before)
    assert not (folder / "canary").exists()
    return "3 of 3 refused"


@case(
    "42.2.5",
    "a cap of cost is passed by one call at most, and one call in 16 that always fails is sent 4 times",
)
def caps(folder: Path) -> str:
    """See `case`."""
    used = {"prompt_tokens": 100_000, "completion_tokens": 20_000}

    def dear(_prompt: str, _path: str) -> tuple[int, str]:
        return 200, json.dumps(ANSWER | {"usage": used})

    def away_for_one(prompt: str, path: str) -> tuple[int, str]:
        return (502, "away") if prompt == "Question 5:" else honest(prompt, path)

    with serving(dear, seconds=0.02) as server:
        ask(folder / "dear", server.url, 100, concurrency=64, max_cost=3.0, price=Price(1.0, 1.0))
        calls = len(server.calls)
    assert calls <= 26, f"{calls} calls of .12 for 3.00"
    with serving(away_for_one) as server:
        ask(folder / "away", server.url, 16, concurrency=16, backoff=0.05)
        sent = sum("Question 5:" in call for call in server.calls)
    assert sent <= 4, f"{sent} times"
    return f"{calls} calls of .12 for 3.00; {sent} times"
