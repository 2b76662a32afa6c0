"""The connection to models: one client with ledger, limits, deadlines, retries and capability probe.

A `Call` goes to `Gateway.ask` and comes back as an `Outcome`; what was paid for once is in the
`Ledger` and is never sent again. The gateway knows no conversation and no rubric: reading an
answer's meaning is the agents' work, for which `structured` and `logprobs` are the tools.
"""
