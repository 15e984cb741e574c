import gc

import torch
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.stream.memory import FreshMemory, RecycledMemory, shared_tensor


def test_memory_is_lent_again_once_nothing_sees_it() -> None:
    memory = RecycledMemory(keep=2)
    tensor = memory.lend((2, 3))
    place = tensor.data_ptr()
    view = tensor[1].view(-1).numpy()
    del tensor
    gc.collect()
    assert memory.free_bytes == 0
    del view
    gc.collect()
    assert memory.free_bytes == 6
    assert memory.lend((3, 2)).data_ptr() == place


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_no_two_holders_ever_share_memory(keeps: list[bool]) -> None:
    memory = RecycledMemory(keep=3)
    held: list[tuple[int, torch.Tensor]] = []
    for number, keep in enumerate(keeps):
        tensor = memory.lend((16,))
        tensor[:] = number
        if keep:
            held.append((number, tensor))
        elif held:
            held.pop(0)
        del tensor
    assert all(bool((tensor == number).all()) for number, tensor in held)


def test_no_more_than_the_stock_is_kept() -> None:
    memory = RecycledMemory(keep=2)
    lent = [memory.lend((8,)) for _ in range(5)]
    del lent
    gc.collect()
    assert memory.free_bytes == 16


def test_shared_memory_is_shared() -> None:
    assert FreshMemory(shared_tensor).lend((2, 2)).is_shared()  # type: ignore[no-untyped-call]
