"""`pollex score` in several processes on one store: what one of them has paid for, none of them pays again."""

from benches import ATTENTIVE, Bench

CALLS = 100


def test_four_processes_on_a_fresh_store_send_each_call_once_but_those_out_at_a_kill(
    bench: Bench,
) -> None:
    bench.log(CALLS // 2)
    bench.server.script([ATTENTIVE | {"latency": 0.05}])
    running = [
        bench.start(bench.scoring("--concurrency", 4, out=f"{number}.jsonl")) for number in range(4)
    ]
    bench.wait_for_calls(CALLS // 2)
    running.pop().kill()
    ended = [one.end() for one in running]
    assert [one.code for one in ended] == [0, 0, 0], ended
    assert CALLS <= bench.judged <= CALLS + 4
    assert bench.scores("0.jsonl") == bench.scores("1.jsonl") == bench.scores("2.jsonl")
