"""Components of sharings, and the arrays that the core takes instead."""

import copy
from typing import Any
from unittest.mock import Mock

import pytest
import torch

import tacit
from tacit import buffers
from tacit.flags import Dependencies
from tacit.sharings import shares
from tacit.storage_cache import Storages


def test_an_array_is_the_memory_of_its_component_in_every_state() -> None:
    def program() -> None:
        x = tacit.share(torch.arange(6.0).reshape(2, 3), owner=0)
        product = x * x
        (part,) = product._parts
        views = {
            "written": part.copy_(torch.arange(10, 16).reshape(2, 3)),
            "a row": part[1],
            "columns": part[:, 1:],
            "turned": part.t(),
            "in another shape": part.view(6),
            "one element": part[1, 2],
            "repeated": part[:1].expand(2, 3),
            "cloned": part.clone().add_(1),
            "detached": part.detach(),
            "copied and written": copy.deepcopy(part).add_(1),
        }
        for name, view in views.items():
            array = buffers.array(view)
            assert array.flags.c_contiguous, name
            assert torch.equal(torch.from_numpy(array).view(view.shape), view), name
        assert buffers.array(part) is buffers.array(part)

    tacit.launch(program, protocol="plain", parties=2)


def test_a_product_sees_what_was_written_to_its_operand() -> None:
    def program() -> None:
        x = tacit.share(torch.ones(2, 2), owner=0)
        product = x * x
        assert (product * product).reveal().tolist() == [[1, 1], [1, 1]]
        product[0] = 3.0
        product.t_()
        assert (product * product).reveal().tolist() == [[9, 1], [9, 1]]
        product.mul_(2.0)
        assert (product * product).reveal().tolist() == [[36, 4], [36, 4]]
        product.data = product.clone().zero_()
        assert (product * product).reveal().tolist() == [[0, 0], [0, 0]]

    tacit.launch(program, protocol="plain", parties=2)


@pytest.mark.parametrize("n", range(1, 10))
def test_a_tree_of_products_takes_every_factor_once_in_a_round_a_level(n: int) -> None:
    """Words, fractions at several scales, and powers of two given by bits: all use one kind of
    tree."""
    factors = torch.arange(2, 2 + n)
    fractions = 1 + factors / 256.0

    def program() -> tuple[int, int]:
        words = tacit.share(factors, owner=0)
        before, product, after = rounds(), words.prod(), rounds()
        assert product.reveal() == factors.prod()
        for scale in (12, 16, 20):
            product = tacit.share(fractions, owner=0, scale=scale).prod(0).reveal()
            assert torch.isclose(product, fractions.prod(), atol=2.0 ** (3 - min(scale, 16))), scale
        assert (2 ** tacit.share(factors, owner=0)).reveal().tolist() == (2**factors).tolist()
        return before, after

    def rounds() -> int:
        return tacit.session().meter.total.rounds

    begun, ended = (max(of_party) for of_party in zip(*tacit.launch(program), strict=True))
    assert ended - begun == (n - 1).bit_length()


def test_bits_of_many_elements_are_words_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.tensor([[-(2**31), 2**31 - 1, 12], [5, 0, -1]], dtype=torch.int32)
    most, of_bits = [], shares.bit_to_ring

    def watched(session: tacit.Session, bits: Any) -> Any:
        most.append(bits[0].numel())
        return of_bits(session, bits)

    def program() -> tuple[Any, int]:
        x, y = tacit.share(values, owner=0), tacit.share(values.flip(0), owner=1)
        before = tacit.session().meter.total.payload_bytes
        found = x & y, x ^ 77, x >> 3
        sent = tacit.session().meter.total.payload_bytes - before
        return [one.reveal().tolist() for one in found], sent

    expected = [one.tolist() for one in (values & values.flip(0), values ^ 77, values >> 3)]
    monkeypatch.setattr(shares, "bit_to_ring", watched)
    whole = tacit.launch(program)
    greatest, most[:] = max(most), []
    monkeypatch.setattr(shares, "MOST_WORDS", 32)
    pieces = tacit.launch(program)
    assert greatest == 32 * values.numel() > 32 >= max(most)
    assert all(found == expected for found, _ in whole + pieces)
    # Messages are padded to words, so sending pieces of few bits takes slightly more.
    sent, in_pieces = (sum(sent for _, sent in of_all) for of_all in (whole, pieces))
    assert sent <= in_pieces < sent + 3 * 3 * 8 * len(most)


def test_what_is_kept_is_not_forgotten_with_what_lay_there_before() -> None:
    """New tensors may reuse memory. The operands of the old value may be freed later, at a
    different time in each party."""
    storages = Storages(Mock(), Dependencies())
    before, numbers = torch.ones(4), torch.ones(3)
    address = before.untyped_storage()._cdata
    storages.keep_with_storage("kind", before, "before", of=[numbers])
    del before
    # This call looks for freed storages.
    storages.add(torch.ones(1))
    others = [torch.ones(4) for _ in range(1000)]
    now = [other for other in others if other.untyped_storage()._cdata == address]
    assert now, "the memory is used again"
    more = torch.ones(3)
    storages.keep_with_storage("kind", now[0], "now", of=[more])
    del numbers
    storages.add(torch.ones(1))
    assert storages.kept_with_storage("kind", now[0]) == "now"
    storages.written(more)
    assert storages.kept_with_storage("kind", now[0]) is None
