"""A planted world: conversations whose causes are known, and a simulated model that reads them with known noise.

`world` says what can happen in a conversation, which of it has to do with the thumb (the *planted*
signals) and which has not, and draws conversations. `model` reads the prompts that pollex sends,
and nothing else: it knows the language of the world (`signals.toml`), but neither a conversation's
signals nor which of them are planted. `chat` is that model as a LangChain chat model; over HTTP it
answers from `protocol_server` by the rule `{"do": "planted"}`.

No figure from here says how well a real model works. It says whether the pipeline gets back what
was put in.
"""
