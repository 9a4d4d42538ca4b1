"""Three hospitals learn how long patients stay with each treatment, and show each other no patient.

On this machine, with all three parties in one process:

    python program.py --trial

As one party of a session, with its own number in the place of I:

    tacit run --config parties.toml --party I program.py
"""

import sys

import torch

import tacit

# The patients of each hospital: days in hospital, and whether they had the new treatment. A real
# program reads its own party's patients from a file, and has nobody else's.
DAYS = [
    [6.0, 9.0, 4.0, 11.0, 7.0, 5.0],
    [8.0, 12.0, 5.0, 6.0, 10.0],
    [7.0, 4.0, 9.0, 6.0],
]
TREATED = [
    [True, False, True, False, False, True],
    [False, False, True, True, False],
    [False, True, False, True],
]


def main() -> tuple[torch.Tensor, torch.Tensor]:
    """Runs in every party: the same lines, each with its own data."""
    party = tacit.session().party
    days, treated = [], []
    for owner in range(3):
        # The owner shares its data; the others pass None. From here on nobody sees the numbers. How
        # many patients a hospital has is public.
        is_own = party == owner
        days.append(tacit.share(torch.tensor(DAYS[owner]) if is_own else None, owner=owner))
        treated.append(
            tacit.share(torch.tensor(TREATED[owner]).float() if is_own else None, owner=owner)
        )
    stay, has_new = torch.cat(days), torch.cat(treated)

    # Ordinary PyTorch, on numbers that are secret.
    new = (stay * has_new).sum() / has_new.sum()
    old = (stay * (1 - has_new)).sum() / (1 - has_new).sum()

    # Only what is revealed is seen; reveal(to=I) shows it to party I alone.
    found = new.reveal(), old.reveal()
    if party == 0:
        print(f"mean stay: {found[0]:.2f} days with the new treatment, {found[1]:.2f} without")
    return found


if __name__ == "__main__":
    if "--trial" in sys.argv:
        tacit.launch(main)
    else:
        main()  # `tacit run` has opened the session
