"""A survey of salaries among five employers.

They learn the mean, median, quartiles and a histogram of all salaries, and nothing else about each
other's. The number of employees of each is public.

    tacit run --config parties.toml --party I examples/salary_survey.py

This needs five [[party]] tables in parties.toml, and protocol = "additive".
"""

import torch

import tacit

#: Limits of the histogram's bins, in thousands a year.
BRACKETS = torch.tensor([0.0, 30.0, 45.0, 60.0, 80.0, 120.0, 1000.0])


def own_salaries(party: int) -> torch.Tensor:
    """Returns the salaries this party pays, in thousands a year. A real party would read them from
    a file."""
    generator = torch.Generator().manual_seed(party)
    return 35 + 5 * party + 25 * torch.rand(20 + 3 * party, generator=generator).square()


def main() -> dict[str, torch.Tensor]:
    """Runs the same program at every party."""
    session = tacit.session()
    own = own_salaries(session.party)
    everybody = torch.cat(
        [
            tacit.share(own if party == session.party else None, owner=party)
            for party in range(session.parties)
        ]
    )
    found = {
        "mean": everybody.mean().reveal(),
        "median": everybody.median().reveal(),
        "quartiles": everybody.quantile(torch.tensor([0.25, 0.75])).reveal(),
        "histogram": torch.histogram(everybody, BRACKETS).hist.reveal(),
    }
    if session.party == 0:
        lower, upper = found["quartiles"]
        print(
            f"{len(everybody)} people earn {found['mean']:.2f} thousand on average; half of them "
            f"at most"
        )
        print(f"{found['median']:.2f}, and the middle half {lower:.2f} to {upper:.2f}")
        for low, high, count in zip(BRACKETS[:-1], BRACKETS[1:], found["histogram"], strict=True):
            print(f"{low:5.0f} to {high:4.0f}  {'#' * int(count)}")
    return found


if __name__ == "__main__":
    main()
