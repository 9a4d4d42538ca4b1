"""Sharing and revealing: accepted inputs, results, and refusals."""

import copy
import pickle
from typing import Any

import pytest
import torch

import tacit
from tacit.sharing import GROUP, grouped


def everywhere(fn: Any, *args: Any, **options: Any) -> list[Any]:
    """Runs a program in three parties, in memory."""
    return tacit.launch(fn, *args, **options)


@pytest.mark.parametrize("owner", [0, 1, 2])
@pytest.mark.parametrize(
    "dtype",
    [
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.uint8,
        torch.bool,
    ],
)
def test_what_is_shared_is_revealed(owner: int, dtype: torch.dtype) -> None:
    plain = (torch.arange(12).reshape(3, 4) % 5).to(dtype)

    def program() -> tuple[Any, Any]:
        mine = plain if tacit.session().party == owner else None
        secret = tacit.share(mine, owner=owner)
        assert (secret.shape, secret.dtype) == (plain.shape, plain.dtype)
        return secret.reveal(), secret.reveal(to=2)

    for party, (to_all, to_one) in enumerate(everywhere(program)):
        assert torch.equal(to_all, plain)
        assert to_all.dtype == dtype
        assert (to_one is None) == (party != 2)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (65,), (7, 1, 300)])
def test_all_shapes(shape: tuple[int, ...]) -> None:
    plain = torch.randn(shape)
    (found, *_) = everywhere(lambda: tacit.share(plain, owner=1).reveal())
    assert found.shape == plain.shape
    assert torch.allclose(found, plain, atol=2**-16)


def test_encoding_is_to_the_nearest() -> None:
    plain = torch.tensor([1.0, 2**-17, -(2**-17) * 3, 123.456, -1e6, 2.0**29], dtype=torch.float64)
    (found, *_) = everywhere(lambda: tacit.share(plain, owner=0).reveal())
    assert (found - plain).abs().max() <= 2**-17


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -float("inf"), 2.0**30, -(2.0**30), 1e300]
)
def test_what_has_no_encoding_is_refused_with_the_limit(value: float) -> None:
    plain = torch.tensor([1.0, value], dtype=torch.float64)
    with pytest.raises(tacit.EncodingError, match=r"party 1: .*1\.07374e\+09"):
        everywhere(lambda: tacit.share(plain if tacit.session().party == 1 else None, owner=1))


@pytest.mark.parametrize("value", [2**46, -(2**46), -(2**63)])
def test_integers_have_a_limit_only_where_they_meet_fractions(value: int) -> None:
    def program() -> torch.Tensor:
        with pytest.raises(tacit.EncodingError, match="too large"):
            tacit.share(torch.ones(1), owner=0) + torch.tensor([value])
        return tacit.share(torch.tensor([value]), owner=0).reveal()

    assert all(found.item() == value for found in everywhere(program))


@pytest.mark.parametrize("value", [float("nan"), 1e300])
def test_public_values_are_checked_too(value: float) -> None:
    with pytest.raises(tacit.EncodingError):
        everywhere(lambda: tacit.share(torch.ones(2), owner=0) + value)


def test_division_by_zero_is_refused() -> None:
    with pytest.raises(tacit.EncodingError, match="division by zero"):
        everywhere(lambda: tacit.share(torch.ones(2), owner=0) / 0)


@pytest.mark.parametrize("owner", [3, -1, "0", 1.5])
def test_an_owner_that_is_no_party(owner: Any) -> None:
    with pytest.raises(tacit.MisuseError, match=r"owner .* does not exist: the parties are 0 to 2"):
        everywhere(lambda: tacit.share(torch.ones(2), owner=owner))


def test_a_receiver_that_is_no_party() -> None:
    with pytest.raises(tacit.MisuseError, match="receiver 7 does not exist"):
        everywhere(lambda: tacit.share(torch.ones(2), owner=0).reveal(to=7))


def test_an_owner_without_data() -> None:
    with pytest.raises(tacit.MisuseError, match="party 1: party 1 owns the data"):
        everywhere(lambda: tacit.share(None, owner=1))


def test_shapes_that_differ_between_parties() -> None:
    def program() -> None:
        tacit.share(torch.ones(2, 3 + (tacit.session().party == 2)), owner=0)

    with pytest.raises(tacit.MisuseError, match=r"party 2: .*\(2, 4\).*party 0 shares \(2, 3\)"):
        everywhere(program)


def test_parties_that_compute_on_different_shapes() -> None:
    def program() -> None:
        secret = tacit.share(torch.ones(10), owner=0)
        (secret[: 5 + tacit.session().party] * secret[: 5 + tacit.session().party]).reveal()

    with pytest.raises(
        tacit.DesyncError,
        match=r"multiply of 5.*multiply of [67]|multiply of [67].*multiply of [567]",
    ):
        everywhere(program)


def test_modules_that_differ_between_parties() -> None:
    def program() -> None:
        tacit.share_module(torch.nn.Linear(4, 2 + (tacit.session().party == 1)), owner=0)

    with pytest.raises(
        tacit.MisuseError, match=r"party 1: the modules differ: .*weight of shape \(3, 4\)"
    ):
        everywhere(program)


def test_a_weight_that_has_no_encoding_is_named() -> None:
    def program() -> None:
        module = torch.nn.Sequential(torch.nn.Linear(2, 2))
        module[0].weight.data[0, 0] = float("nan")
        tacit.share_module(module, owner=0)

    with pytest.raises(tacit.EncodingError, match=r"0\.weight"):
        everywhere(program)


def test_a_module_keeps_its_names_and_ties() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(3, 3, bias=False)
            self.norm = torch.nn.BatchNorm1d(3)
            self.second = torch.nn.Linear(3, 3, bias=False)
            self.second.weight = self.first.weight

    def program() -> None:
        module = Tied().eval()
        names = list(module.state_dict())
        assert tacit.share_module(module, owner=1) is module
        assert list(module.state_dict()) == names
        assert module.second.weight is module.first.weight
        assert isinstance(module.first.weight, torch.nn.Parameter)
        secret = {
            name
            for name, value in module.state_dict().items()
            if isinstance(value, tacit.SecretTensor)
        }
        assert secret == set(names) - {"norm.num_batches_tracked"}
        with pytest.raises(tacit.MisuseError, match="shared already"):
            tacit.share_module(module, owner=1)

    everywhere(program)


SHOWING = {
    "item": lambda x: x[0].item(),
    "numpy": lambda x: x.numpy(),
    "tolist": lambda x: x.tolist(),
    "bool": lambda x: bool(x[0] > 0),
    "float": lambda x: float(x[0]),
    "int": lambda x: int(x[0]),
    "in": lambda x: 1.0 in x,
    "equal": lambda x: torch.equal(x, x),
    "nonzero": lambda x: x.nonzero(),
    "pickle": lambda x: pickle.dumps(x),
    "index": lambda x: torch.arange(3)[x.bool()],
}


@pytest.mark.parametrize("how", SHOWING)
def test_nothing_but_reveal_shows_values(how: str) -> None:
    def program() -> None:
        secret = tacit.share(torch.tensor([1.0, 0.0, 2.0]), owner=0)
        SHOWING[how](secret)

    with pytest.raises(tacit.MisuseError, match=r"reveal|by a secret"):
        everywhere(program)


def test_representations_show_no_share() -> None:
    def program() -> str:
        secret = tacit.share(torch.full((2, 3), 77.0), owner=0)
        return (
            f"{secret} {secret!r} {secret:>10} {copy.deepcopy(secret)} {[secret]} {tacit.session()}"
        )

    for text in everywhere(program):
        assert "77" not in text
        assert "SecretTensor(shape=(2, 3), dtype=torch.float32, replicated, 3 parties)" in text


def test_no_session_no_secrets() -> None:
    with pytest.raises(tacit.MisuseError, match="no session"):
        tacit.share(torch.ones(2), owner=0)
    with pytest.raises(tacit.MisuseError, match="no session"):
        tacit.session()


def test_an_unsupported_operator_names_itself_and_the_module() -> None:
    class Block(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.bessel_j0(x)

    def program() -> None:
        model = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Sequential(Block()))
        model(tacit.share(torch.ones(2), owner=0))

    with pytest.raises(
        tacit.UnsupportedOperatorError,
        match=r"aten\.special_bessel_j0.*module '1\.0'.*Nothing was revealed",
    ):
        everywhere(program)


def test_tensors_of_two_sessions_do_not_meet() -> None:
    def program() -> None:
        mine = tacit.share(torch.ones(2), owner=0)
        other = tacit.SecretTensor(
            mine._parts, mine._scale, tacit.Session(tacit.session().core), mine.dtype
        )
        _ = mine + other

    with pytest.raises(tacit.MisuseError, match="two sessions"):
        everywhere(program)


def test_an_announcement_is_checked() -> None:
    from tacit.refusals import announcement
    from tacit.sharing import _announced

    for payload in (b"", b"{", b"\xff", b"[" * 100_000):
        with pytest.raises(tacit.PeerError):
            announcement(payload, 1)
    good = {"shape": [2, 3], "dtype": "float32", "scale": 16, "gradient": False}
    assert _announced(good, 1, "party") == (torch.Size([2, 3]), torch.float32, 16, False)
    for entries in (
        {},
        [],
        {"shape": [2, 3], "dtype": "float32"},
        *(
            good | wrong
            for wrong in (
                {"dtype": "complex64"},
                {"shape": [-1]},
                {"shape": [True]},
                {"shape": [1.0]},
                {"shape": [1 << 40]},
                {"shape": [1 << 20, 1 << 20]},
                {"shape": [0, 1 << 27, 1 << 27, 1 << 27]},
                {"shape": [1] * 65},
                {"shape": "3"},
                {"scale": 0},
                {"scale": 41},
                {"scale": "16"},
                {"gradient": 1},
                {"gradient": True, "dtype": "int64"},
            )
        ),
    ):
        with pytest.raises(tacit.PeerError, match="party 1 announced"):
            _announced(entries, 1, "party")


def test_a_shape_that_cannot_be_is_the_owners_mistake() -> None:
    huge = torch.empty(0).expand(1 << 20, 1 << 20, 0)
    with pytest.raises(
        tacit.MisuseError, match=r"party 0: a tensor of shape .* at most 134217728 elements"
    ):
        everywhere(lambda: tacit.share(huge if tacit.session().party == 0 else None, owner=0))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_comparison_width(bits: int) -> None:
    plain = torch.arange(-100, 100, dtype=torch.int64)

    def program() -> tuple[Any, int]:
        secret = tacit.share(plain, owner=0)
        before = tacit.session().meter.total.payload_bytes
        with tacit.comparison_width(bits):
            result = torch.relu(secret)
        assert tacit.session().numerics.width == 64
        return result.reveal(), tacit.session().meter.total.payload_bytes - before

    (found, _), *_ = everywhere(program)
    assert torch.equal(found, plain.relu())


def test_a_comparison_width_that_cannot_be() -> None:
    for bits in (7, 65):
        with pytest.raises(tacit.MisuseError, match="8 to 64"):
            everywhere(lambda bits=bits: tacit.comparison_width(bits).__enter__())


def test_views_in_inference_mode_of_what_was_shared_before() -> None:
    def program() -> list[torch.Tensor]:
        secret = tacit.share(torch.arange(12.0).reshape(3, 4), owner=0)
        with torch.inference_mode():
            found = [secret[1:3].reveal()]
            secret[1].add_(0.5)
            rectified = torch.relu(secret)
        rectified[0].add_(1)
        return [*found, secret.reveal(), rectified.reveal()]

    plain = torch.arange(12.0).reshape(3, 4)
    plain[1] += 0.5
    sliced, written, after = tacit.launch(program)[0]
    assert sliced.equal(torch.arange(4.0, 12.0).reshape(2, 4))
    assert written.equal(plain)
    plain[0] += 1
    assert after.equal(plain)


def test_small_tensors_are_grouped_into_messages() -> None:
    sizes = [GROUP, 1, 0, GROUP - 1, 2 * GROUP, 3]
    assert [sizes[group] for group in grouped(sizes)] == [
        [GROUP],
        [1, 0, GROUP - 1],
        [2 * GROUP],
        [3],
    ]
    assert list(grouped([])) == []


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr], ids=str)
def test_sparse_tensors_are_refused(layout: torch.layout) -> None:
    with pytest.raises(tacit.MisuseError, match=r"party 0: a sparse tensor .* to_dense\(\)"):
        everywhere(
            lambda: tacit.share(
                torch.eye(3).to_sparse(layout=layout) if tacit.session().party == 0 else None,
                owner=0,
            )
        )
