"""Training takes one of PyTorch's threads, and gives all of them back."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import torch

from pollex.calibration.network.training import limit_torch_to_one_thread

BEFORE = 3
SECONDS = 30.0


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    mine = torch.get_num_threads()
    torch.set_num_threads(BEFORE)
    yield
    torch.set_num_threads(mine)


def all_are_back() -> bool:
    """In this thread and in a new one."""
    with ThreadPoolExecutor(1) as pool:
        return (
            torch.get_num_threads() == pool.submit(torch.get_num_threads).result(SECONDS) == BEFORE
        )


def test_a_training_that_overlaps_another_leaves_as_many_threads_as_before() -> None:
    first_in = Event()
    second_in = Event()
    first_out = Event()

    def first() -> int:
        with limit_torch_to_one_thread():
            first_in.set()
            assert second_in.wait(SECONDS)
        first_out.set()
        return torch.get_num_threads()

    def second() -> tuple[int, int]:
        assert first_in.wait(SECONDS)
        with limit_torch_to_one_thread():
            second_in.set()
            assert first_out.wait(SECONDS)
            inside = torch.get_num_threads()
        return inside, torch.get_num_threads()

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(first)
        two = pool.submit(second)
        assert (one.result(SECONDS), two.result(SECONDS)) == (BEFORE, (1, BEFORE))
    assert all_are_back()


def test_a_training_inside_another_gives_nothing_back_before_the_outer_one_ends_or_fails() -> None:
    with limit_torch_to_one_thread():
        with pytest.raises(ZeroDivisionError), limit_torch_to_one_thread():
            raise ZeroDivisionError
        assert torch.get_num_threads() == 1
    assert all_are_back()
    with pytest.raises(ZeroDivisionError), limit_torch_to_one_thread():
        raise ZeroDivisionError
    assert all_are_back()
