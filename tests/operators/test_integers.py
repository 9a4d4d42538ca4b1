"""Bits, shifts, divisions and powers of integers are exact, and so is the rounding of fractions."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tacit

LOWEST, HIGHEST = -(2**63), 2**63 - 1
WORDS = torch.tensor([0, 1, -1, 5, -7, 2**40 + 3, -(2**55) - 1, HIGHEST, LOWEST])
OTHERS = torch.tensor([3, -1, 12, -6, HIGHEST, 2**35, 2**40 - 1, LOWEST, 0])
SMALL = torch.tensor([-128, -3, 0, 77, 127], dtype=torch.int8)
UNSIGNED = torch.tensor([0, 1, 128, 200, 255], dtype=torch.uint8)
NUMBERS = torch.tensor([0, 1, -1, 7, -7, 100, -(2**29), 2**29 + 5, 2**40 + 1])
DIVISORS = torch.tensor([3, -1, 2, -3, 7, -(2**20), 1, 3, 2**30 - 3])
#: Dividends and divisors at the ends of int64, and next to multiples.
DIVIDED = torch.tensor(
    [
        LOWEST,
        LOWEST,
        LOWEST,
        LOWEST + 1,
        HIGHEST,
        HIGHEST,
        HIGHEST,
        -1,
        0,
        2**45,
        2**61,
        -(2**61) - 1,
        3**39 - 1,
    ]
)
DIVIDING = torch.tensor(
    [1, -3, LOWEST, HIGHEST, LOWEST, HIGHEST, -1, LOWEST, LOWEST, 3, -(2**61), 2**61, 3**20]
)
FRACTIONS = torch.tensor(
    [0.0, 0.5, -0.5, 1.5, 2.5, -2.5, -0.25, 7.99999, -7.99999, 1000.5, -(2.0**14) + 0.125]
)

Call = Callable[..., Any]

#: One secret operand, and a function of it and public numbers.
ALONE: dict[str, tuple[torch.Tensor, Call]] = {
    "not": (WORDS, lambda x: ~x),
    "not, no sign": (UNSIGNED, lambda x: ~x),
    "and a mask": (WORDS, lambda x: x & 0xFF0),
    "and a negative mask": (WORDS, lambda x: x & -16),
    "or": (WORDS, lambda x: x | 5),
    "reversed xor": (WORDS, lambda x: 12 ^ x),
    "tensor": (WORDS, lambda x: x & OTHERS),
    "left": (WORDS, lambda x: x << 3),
    "left by several": (SMALL, lambda x: x << torch.tensor([0, 1, 5, 7, 9], dtype=torch.int8)),
    "right": (WORDS, lambda x: x >> 3),
    "right by several": (WORDS, lambda x: x >> torch.arange(9) * 9),
    "right, small": (SMALL, lambda x: x >> 2),
    "right, no sign": (UNSIGNED, lambda x: x >> 2),
    "logical not": (WORDS, torch.logical_not),
    "logical xor": (WORDS, lambda x: torch.logical_xor(x, OTHERS)),
    "floor of a quotient": (NUMBERS, lambda x: x // 7),
    "by a negative number": (NUMBERS, lambda x: torch.div(x, -7, rounding_mode="trunc")),
    "by few": (
        WORDS[:-2],
        lambda x: torch.stack(
            [torch.div(x, by, rounding_mode="floor") for by in (1, 2, 3, -3, 4, 5)]
        ),
    ),
    "rest of few": (WORDS[:-2], lambda x: torch.stack([x % by for by in (1, -1, 2, 3, 4)])),
    "all words": (
        WORDS,
        lambda x: torch.stack([x // 7, x // -7, x % 10, x % -(2**61), x // HIGHEST]),
    ),
    "all words towards zero": (WORDS, lambda x: torch.div(x, -3, rounding_mode="trunc")),
    "all words, rest": (WORDS, lambda x: torch.stack([torch.fmod(x, 10), torch.fmod(x, LOWEST)])),
    "by several": (WORDS, lambda x: x // OTHERS.clamp(min=1)),
    "small by several": (
        SMALL,
        lambda x: x // torch.tensor([3, -1, 5, -128, 127], dtype=torch.int8),
    ),
    "by a large number": (WORDS[:-2], lambda x: torch.div(x, 2**55, rounding_mode="floor")),
    "of large numbers": (WORDS[:-2], lambda x: torch.remainder(x, 10)),
    "fmod": (NUMBERS, lambda x: torch.fmod(x, -6)),
    "floor": (FRACTIONS, torch.floor),
    "ceil": (FRACTIONS, torch.ceil),
    "trunc": (FRACTIONS, torch.trunc),
    "frac": (FRACTIONS[:-2], torch.frac),
    "round": (FRACTIONS, torch.round),
    "long": (FRACTIONS, lambda x: x.long()),
    "char": (FRACTIONS[:-2], lambda x: x.to(torch.int8)),
    "fractions by a fraction": (FRACTIONS, lambda x: torch.div(x, 0.75, rounding_mode="floor")),
    "remainder of fractions": (FRACTIONS, lambda x: x % -2.5),
    "lists": (
        WORDS,
        lambda x: torch.cat(torch._foreach_add(torch._foreach_mul([x, x], [x, x]), [2, 3])),
    ),
    "integers as fractions": (NUMBERS, lambda x: x.double() + 0),
}

#: Two secret operands, and a function of them.
BETWEEN: dict[str, tuple[torch.Tensor, torch.Tensor, Call]] = {
    "and": (WORDS, OTHERS, torch.bitwise_and),
    "or": (WORDS, OTHERS, torch.bitwise_or),
    "xor": (WORDS, OTHERS, torch.bitwise_xor),
    "small xor": (SMALL, SMALL.flip(0), torch.bitwise_xor),
    "and of two kinds": (SMALL, UNSIGNED, torch.bitwise_and),
    "logical or": (WORDS, OTHERS, torch.logical_or),
    "left": (WORDS, torch.tensor([0, 1, 63, 3, 40, 5, 8, 1, 62]), torch.bitwise_left_shift),
    "right": (WORDS, torch.tensor([0, 1, 63, 3, 40, 5, 8, 1, 62]), torch.bitwise_right_shift),
    "right, no sign": (
        UNSIGNED,
        torch.tensor([0, 1, 3, 7, 5], dtype=torch.uint8),
        torch.bitwise_right_shift,
    ),
    "floor": (NUMBERS, DIVISORS, torch.floor_divide),
    "towards zero": (NUMBERS, DIVISORS, lambda x, y: torch.div(x, y, rounding_mode="trunc")),
    "floor of all words": (DIVIDED, DIVIDING, torch.floor_divide),
    "all words towards zero": (
        DIVIDED,
        DIVIDING,
        lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    ),
    "remainder of all words": (DIVIDED, DIVIDING, torch.remainder),
    "remainder": (NUMBERS, DIVISORS, torch.remainder),
    "fmod": (NUMBERS, DIVISORS, torch.fmod),
    "remainder of fractions": (FRACTIONS, FRACTIONS.flip(0) + 3.25, torch.remainder),
}

#: Operands of powers that wrap around, of inverses, and of exponents with all 64 bits.
BASES = torch.tensor([2, 3, -4, 0, 1, -1, HIGHEST, LOWEST, 5, -1, 1, 7, -2, 0, 3, -5])
EXPONENTS = torch.tensor([5, 2, 3, 0, -5, -4, 3, 1, 41, HIGHEST, LOWEST, -2, 63, -1, 64, 2**62 + 1])
FEW, SMALL_BASES = torch.tensor([3, 5, -3, 1, 0], dtype=torch.int8), SMALL[[1, 3, 0, 4, 2]]
ALONE |= {
    "power of two": (EXPONENTS, lambda n: 2**n),
    "power of a negative number": (EXPONENTS, lambda n: (-3) ** n),
    "powers of one, minus one and zero": (
        EXPONENTS,
        lambda n: torch.stack([1**n, (-1) ** n, 0**n]),
    ),
    "powers of several": (EXPONENTS, lambda n: BASES**n),
    "small powers of several": (FEW, lambda n: SMALL_BASES**n),
    "powers of small ones": (UNSIGNED, lambda n: 3**n),
    "many public powers": (BASES, lambda x: x[:, None] ** torch.arange(20)),
    "all public powers": (BASES, lambda x: x**EXPONENTS),
    "a negative public power": (BASES, lambda x: x ** torch.tensor(-3)),
    "great public powers": (BASES, lambda x: torch.stack([x**63, x**65, x**HIGHEST])),
    "public powers in place": (BASES, lambda x: x.clone().pow_(torch.arange(16))),
    "no powers": (BASES[:0], lambda x: x ** EXPONENTS[:0]),
}
BETWEEN |= {
    "powers": (BASES, EXPONENTS, torch.pow),
    "powers by pairs": (BASES[:3], EXPONENTS[:4], lambda x, n: x[:, None] ** n),
    "powers of one by several": (BASES[:3], EXPONENTS[:12], lambda x, n: x[1] ** n.reshape(4, 3)),
    "small powers": (SMALL_BASES, FEW, torch.pow),
    "powers without a sign": (UNSIGNED, UNSIGNED.flip(0), torch.pow),
    "great powers of small ones": (SMALL, EXPONENTS[:5], torch.pow),
    "small powers by a number": (SMALL_BASES, torch.tensor(259), torch.pow),
    "small powers by a negative number": (SMALL_BASES, torch.tensor(-3), torch.pow),
    "small powers of a number": (torch.tensor(257), FEW, torch.pow),
    "powers by a bit": (BASES, EXPONENTS > 3, torch.pow),
    "powers of a bit": (BASES > 1, EXPONENTS, torch.pow),
}

#: Shift distances out of range, and the last ones within the range.
FAR = torch.tensor([64, 65, -1, -64, 1000, 63, LOWEST, HIGHEST, LOWEST + 63])
NEAR = torch.tensor([8, 7, -1, 100, -128], dtype=torch.int8)
BETWEEN |= {
    f"{name} by {what}": (x, y, shift)
    for name, shift in (("left", torch.bitwise_left_shift), ("right", torch.bitwise_right_shift))
    for what, x, y in (
        ("far distances", WORDS, FAR),
        ("far distances of the sign alone", WORDS.new_tensor([-5]), FAR),
        ("small distances", SMALL, NEAR),
        ("distances without a sign", UNSIGNED, torch.tensor([8, 7, 64, 255, 0], dtype=torch.uint8)),
        ("distances of another kind", SMALL, FAR[:5].int()),
    )
}


def test_integers_and_rounding_are_exact(everywhere: Callable[..., Any]) -> None:
    def program() -> list[torch.Tensor]:
        found = [call(tacit.share(x, owner=0)) for x, call in ALONE.values()]
        found += [
            call(tacit.share(x, owner=0), tacit.share(y, owner=1))
            for x, y, call in BETWEEN.values()
        ]
        return [value.reveal() for value in found]

    plain = [call(x) for x, call in ALONE.values()] + [
        call(x, y) for x, y, call in BETWEEN.values()
    ]
    names = [*ALONE, *BETWEEN]
    for name, mine, theirs in zip(names, everywhere(program), plain, strict=True):
        assert mine.dtype == theirs.dtype, name
        tolerance = 2e-5 * (theirs.dtype.is_floating_point)
        assert torch.allclose(mine, theirs, rtol=0, atol=tolerance), (name, mine, theirs)


#: For dtypes of base and exponent, None if public: the rounds, and the bits for each result.
POWERS: dict[str, tuple[torch.dtype | None, torch.dtype | None, int, int]] = {
    "int64 by int64": (torch.int64, torch.int64, 93, 42655),
    "public by int64": (None, torch.int64, 17, 29919),
    "int8 by int8": (torch.int8, torch.int8, 27, 5149),
    "uint8 by uint8": (torch.uint8, torch.uint8, 17, 4801),
    "int64 by 0 to 15": (torch.int64, None, 5, 1152),
}


def test_powers_of_integers_cost_what_is_declared() -> None:
    numbers = torch.arange(192)

    def program(of: torch.dtype | None, by: torch.dtype | None) -> Any:
        x = 2 if of is None else tacit.share((numbers % 7).to(of), owner=0)
        n = numbers % 16 if by is None else tacit.share((numbers % 5).to(by), owner=1)
        before = tacit.session().meter.total
        _ = x**n
        return before, tacit.session().meter.total

    found = {}
    for name, (of, by, *_) in POWERS.items():
        readings = tacit.launch(program, of, by)
        begun, ended = (max(each[at].rounds for each in readings) for at in (0, 1))
        sent = sum(after.payload_bytes - before.payload_bytes for before, after in readings)
        found[name] = (of, by, ended - begun, sent * 8 / len(numbers))
    assert found == POWERS


def test_true_quotients_of_integers_up_to_the_limit_of_fractions(
    everywhere: Callable[..., Any],
) -> None:
    words = torch.tensor([2**30 - 1, 1 - 2**30, 3, 0])

    def program() -> tuple[torch.Tensor, torch.Tensor]:
        x, three = tacit.share(words, owner=0), tacit.share(torch.full((4,), 3), owner=1)
        return (x / 3).reveal(), (x / three).reveal()

    by_public, by_secret = everywhere(program)
    assert torch.allclose(by_public.double(), words.double() / 3, rtol=2**-21, atol=2**-14)
    assert torch.allclose(by_secret.double(), words.double() / 3, rtol=2**-12, atol=2**-13)


def test_domains() -> None:
    def program() -> list[torch.Tensor]:
        x, zero = (
            tacit.share(torch.tensor([7, -7]), owner=0),
            tacit.share(torch.tensor([0, 0]), owner=1),
        )
        for divide in (lambda: x // 0, lambda: x % torch.tensor([0, 3])):
            with pytest.raises(tacit.UnsupportedOperatorError, match="division by zero"):
                divide()
        with pytest.raises(tacit.UnsupportedOperatorError, match="bitwise logic on fractions"):
            x.double() & 3
        decimals = tacit.share(torch.tensor([1.23456, -1234.5]), owner=0)
        results = [x // zero, x % zero, decimals.round(decimals=2), decimals.round(decimals=-2)]
        return [value.reveal() for value in results]

    quotient, rest, fine, coarse = tacit.launch(program, protocol="plain")[0]
    assert quotient.tolist() == rest.tolist() == [7, -7]
    assert torch.allclose(fine, torch.tensor([1.23, -1234.5]), atol=2e-5)
    assert torch.allclose(coarse, torch.tensor([0.0, -1200.0]), atol=1e-3)


#: Operands of comparisons at the ends of int64. Their differences have 65 bits.
ENDS = torch.tensor([LOWEST, LOWEST + 1, -(2**62) - 1, -1, 0, 1, 2**62 + 1, HIGHEST - 1, HIGHEST])
ORDER: dict[str, Call] = {
    "with zero": lambda x: torch.stack([x < 0, x > 0, x <= 0, x >= 0, x.signbit()]),
    "with one": lambda x: torch.stack([x < 1, x > -1, x >= 1, x <= -1]),
    "with the least": lambda x: torch.stack([x < LOWEST, x > LOWEST, x == LOWEST, x <= LOWEST]),
    "with several": lambda x: torch.stack([x < ENDS.flip(0), ENDS.flip(0) < x, x != ENDS.flip(0)]),
    "sign": torch.sign,
    "absolute": torch.abs,
    "relu": torch.relu,
    "clamp": lambda x: torch.clamp(x, -(2**62) - 5, HIGHEST - 1),
    "clamp from": lambda x: torch.clamp(x, min=ENDS.flip(0)),
    "clamp to": lambda x: torch.clamp(x, max=LOWEST + 1),
    "max": lambda x: torch.stack([*x.max(0), *x.min(0), x.max(), x.min(), x.amax(), x.amin()]),
    "argmax": lambda x: torch.stack([x.flip(0).argmax(), x.argmin()]),
    "sort": lambda x: torch.cat([*x.roll(4).sort(), *x.roll(3).sort(descending=True), *x.topk(2)]),
    "sort, equal ones": lambda x: torch.cat(
        torch.stack([x[0], x[8], x[0], x[8]]).sort(stable=True)
    ),
    "cummax": lambda x: torch.cat([*x.roll(4).cummax(0), *x.roll(4).cummin(0)]),
    "mode": lambda x: torch.cat([x, x[:1]]).mode().values,
    "one of": lambda x: torch.isin(x, torch.tensor([LOWEST, 1])),
    "pooled": lambda x: torch.nn.functional.max_pool2d(x.roll(4).reshape(1, 3, 3), (1, 3)),
}


def test_all_words_are_in_order(everywhere: Callable[..., Any]) -> None:
    def program() -> list[torch.Tensor]:
        x, y = tacit.share(ENDS, owner=0), tacit.share(ENDS, owner=1)
        found = [call(x) for call in ORDER.values()]
        left, right = x.unsqueeze(1), y.unsqueeze(0)
        found += [left < right, left >= right, left == right]
        found += [
            torch.maximum(left, right),
            torch.minimum(left, right),
            torch.clamp(left, right, y[4]),
        ]
        return [value.reveal() for value in found]

    left, right = ENDS.unsqueeze(1), ENDS.unsqueeze(0)
    plain = [call(ENDS) for call in ORDER.values()] + [left < right, left >= right, left == right]
    plain += [
        torch.maximum(left, right),
        torch.minimum(left, right),
        torch.clamp(left, right, ENDS[4]),
    ]
    names = [*ORDER, "less", "not less", "equal", "maximum", "minimum", "between secrets"]
    for name, mine, theirs in zip(names, everywhere(program), plain, strict=True):
        assert torch.equal(mine, theirs), (name, mine, theirs)


def test_small_integers_are_compared_by_as_many_bits(everywhere: Callable[..., Any]) -> None:
    def program() -> list[torch.Tensor]:
        small, unsigned = tacit.share(SMALL, owner=0), tacit.share(UNSIGNED, owner=1)
        wide, bits = (
            tacit.share(ENDS[[0, 3, 4, 5, 8]], owner=0),
            tacit.share(UNSIGNED > 100, owner=1),
        )
        found = [
            small < unsigned,
            small < wide,
            unsigned > wide,
            bits < small,
            bits > 0,
        ]
        return [
            value.reveal()
            for value in [*found, unsigned.max() == 255, small.sort(descending=True)[0]]
        ]

    wide, bits = ENDS[[0, 3, 4, 5, 8]], UNSIGNED > 100
    plain = [UNSIGNED > SMALL, wide > SMALL, wide < UNSIGNED, bits < SMALL, bits > 0]
    plain += [UNSIGNED.max() == 255, SMALL.sort(descending=True)[0]]
    for at, (mine, theirs) in enumerate(zip(everywhere(program), plain, strict=True)):
        assert torch.equal(mine, theirs), (at, mine, theirs)


def test_an_index_far_below_zero_is_out_of_range(everywhere: Callable[..., Any]) -> None:
    def program() -> torch.Tensor:
        index = tacit.share(torch.tensor([LOWEST, LOWEST + 2, HIGHEST, 2, -1]), owner=0)
        return torch.gather(torch.tensor([5, 6, 7]), 0, index).reveal()

    assert everywhere(program).tolist() == [0, 0, 0, 7, 0]
