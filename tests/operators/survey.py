"""A program that runs PyTorch's operator database on the reference and records the results.

It writes the list of supported operators (python/tacit/commands/operator_coverage.json) and the
page that is generated from it (docs/operators.md). It writes nothing if a result is wrong.
"""

import argparse
import re
import sys
import warnings
from pathlib import Path

import gaps
import harness

import tacit
from tacit.commands import operators
from tacit.commands.coverage import Coverage, operator_coverage

ROOT = Path(__file__).resolve().parents[2]

FILE = ROOT / "python" / "tacit" / "commands" / "operator_coverage.json"


class Verdict:
    """The results of an operator's samples."""

    def __init__(self, key: str) -> None:
        self.refusals: list[str] = []
        self.wrong: list[str] = []
        self.right = 0
        name, _, variant = key.partition("/")
        samples = harness.samples(name, variant)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcomes = tacit.launch(harness.attempt, samples, parties=2, protocol="plain")[0]
            for sample, found in zip(samples, outcomes, strict=True):
                self._add(key, sample, found)

    def _add(self, key: str, sample: harness.Sample, found: object) -> None:
        place = f"{key}, sample {sample.at}, all secret: {sample.all_secret}"
        if isinstance(found, tacit.MisuseError):
            self.refusals.append(str(found))
        elif isinstance(found, Exception):
            self.wrong.append(f"{place}: {found}")
        elif wrong := harness.wrong(sample, found, key not in gaps.UNDEFINED):
            self.wrong.append(f"{place}: {wrong}")
        else:
            self.right += 1

    @property
    def reason(self) -> str:
        """The shortest unambiguous form of the most frequent refusal."""
        reasons = [_reason(refusal) for refusal in self.refusals]
        return max(sorted(set(reasons)), key=reasons.count)


def _reason(refusal: str) -> str:
    if named := re.match(r"the operator ([\w.:]+) is not supported", refusal):
        return named[1].removesuffix(".default")
    return re.split(r" is not supported| is not computed|, which|; |: | \(in ", refusal)[0][:70]


def survey(keys: list[str]) -> tuple[dict[str, Verdict], list[str]]:
    """Returns all verdicts, and descriptions of all wrong results."""
    verdicts = {key: Verdict(key) for key in keys}
    return verdicts, [wrong for verdict in verdicts.values() for wrong in verdict.wrong]


def main() -> int:
    """Runs the survey. Prints wrong results and returns 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="OPERATOR", help="as the database has it: name/variant"
    )
    chosen = parser.parse_args().names
    everything = [f"{name}/{variant}" if variant else name for name, variant in harness.operators()]
    keys = [key for key in everything if key not in gaps.NO_INPUT | gaps.ELSEWHERE]
    if unknown := set(chosen) - set(keys):
        parser.error(f"not in PyTorch's database: {', '.join(sorted(unknown))}")
    verdicts, wrong = survey([key for key in keys if key in chosen] if chosen else keys)
    if wrong:
        print("\n".join(wrong))
        return 1
    before = operator_coverage()
    partly, refused = dict(before.partly), dict(before.refused)
    for key, verdict in verdicts.items():
        partly.pop(key, None)
        refused.pop(key, None)
        if verdict.refusals:
            (partly if verdict.right else refused)[key] = verdict.reason
    partly = {key: reason for key, reason in partly.items() if key in keys}
    refused = {key: reason for key, reason in refused.items() if key in keys}
    whole = [key for key in keys if key not in partly and key not in refused]
    FILE.write_text(Coverage([], whole, partly, refused).to_json())
    operator_coverage.cache_clear()
    (ROOT / "docs" / "operators.md").write_text(operators.page())
    print(f"{len(whole)} wholly, {len(partly)} partly, {len(refused)} refused, of {len(keys)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
