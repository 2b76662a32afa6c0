"""A loopback server that speaks OpenAI's chat protocol, honestly or as badly as it is told to.

Its own counts are the truth in every test of what was sent, paid or repeated.

In a test, on a thread of this process:

    with ProtocolServer(latency=0.02, script=[{"do": "status", "code": 500, "count": 2}]) as server:
        Endpoint("any-model", server.url, "any-key") ... assert server.counts()["received"] == 3

In a process of its own, which survives the kill -9 of a client (`tests/` on PYTHONPATH):

    python -m protocol_server --port-file PORT --latency 0.02 --script '[{"do": "hang"}]'

`SubprocessServer` starts that and has the same `url`, `counts()` and `script(rules)`.

**Honest answers.** `POST /v1/chat/completions` answers in the request's `response_format` (JSON
schema, JSON object) or forced tool; a hash of the messages picks enum values, so the same question
has the same answer on every run. With `logprobs` every token has alternatives; where an enum value
is written they spread over all its options, and `answers.truth` tells the exact distribution.
Without a format the answer is a digit from 1 to 5. String properties called `quote` or `quotes`
copy words out of the messages. `GET /v1/models` lists one model with a window of 32,768 tokens.
`GET /counts`, `POST /script` (rules as JSON) and `POST /reset` are the test's own door.

**Counts**: `received` chat requests; `sent` replies that went out whole, by status in `statuses`;
    `distinct` bodies;
`repeated` requests whose body had come before; `connections`, of them `open` now; `most_at_once`;
`paid`: whole replies with status 200.

**Rules.** The first rule that applies to a request decides. `match`: text in the request's body
(default: any).
`after`, `count`: skip so many matching requests, then apply so often; `each: true` counts for every
    distinct body by
itself; `kept: true` sends a body that came before the same reply at once, rules or not. `do` is one
of:

| do | also | what happens | |---|---|---|
| honest | latency | as without a rule |
| attentive | latency | as somebody who has read the prompt: see `reader` |
| planted | reader, latency | as the simulated model of the planted world, without
log-probabilities: see `planted` |
| status | code, body, headers | that reply |
| rate | per_second, headers | 429 beyond so many in any one second |
| hang | part: none, headers, half | sends that much, then nothing more |
| trickle | seconds | headers, then a byte each time |
| cut | | half the body, then closes the connection |
| reset | | drops the connection at once |
| body | text, type, encoding | status 200 with that body; `encoding: gzip` compresses it |
| huge | megabytes, encoding | a body of that size |
| message | content, refusal, tool_calls, finish_reason, keep, seconds | honest, but with these; see
below |
| streams | options | honest, but nothing without a stream; without `options` no count of tokens,
and 400 to who asks |
| usage | usage | an honest reply with that usage; null leaves it out |
| model | model, fingerprint | an honest reply by another model |
| ignore | what: list of response_format, tools, logprobs, n, seed, limit | as if the request had
not said it |
| refuse | what: the same list | 400 where the request says it |
| logprobs | null, no_top, top, minus_infinity | spoils the log-probabilities |
| window | tokens, silent, style | longer prompts: cut silently, or 400 in the style of openai,
vllm, llamacpp, ollama |
| echo_key | code | an error that repeats the Authorization header and the address |

**Manners.** `server.behave(manners()["groq"])` answers as an endpoint of `manners.toml` does,
whatever the rules say.

In a `message` rule `{answer}` in the content stands for the honest answer, and `keep` is the share
of that to leave.
Where a stream is asked for, honest replies come word by word; those of a `message` rule do with
`seconds`, before each.
"""

from protocol_server.processes import SubprocessServer
from protocol_server.server import ProtocolServer

__all__ = ["ProtocolServer", "SubprocessServer"]
