"""``tacit.compile``: compiles a model to a program and its weights.

The owner of the model runs the compiler, in the clear."""

import logging
import math
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch

from tacit.compilation.calibration import Batches, batches, observed, promised
from tacit.compilation.graph import Draft, of_dtype, plain
from tacit.compilation.importers import draft_of
from tacit.compilation.importers.scikit_learn import Estimator
from tacit.compilation.passes import improve
from tacit.compilation.passes.assign_scales import Data, are_classes, assign_scales
from tacit.compilation.passes.assign_widths import assign_widths
from tacit.compilation.passes.choose_approximations import MOST_BUDGET, choose_approximations
from tacit.compilation.passes.drop_low_bits import drop_low_bits
from tacit.compilation.passes.fold_normalisation import as_eager
from tacit.compilation.passes.merge_truncations import merge_truncations, truncations
from tacit.compilation.passes.narrow_products import narrow_products
from tacit.compilation.passes.scale_inputs import scale_inputs
from tacit.compilation.program import Program
from tacit.compilation.verify import verify_draft
from tacit.compilation.weights import Weights, of_draft
from tacit.errors import MisuseError

_log = logging.getLogger(__name__)

#: Values of ``widths``: the width proved for each comparison, or one width for all. The choice
#: decides how much a program reveals about the numbers in a model.
PROVED, UNIFORM = "proved", "uniform"

#: Greatest margin of guards; with a greater one they save nothing.
MOST_MARGIN = 2.0**16

#: Greatest number of names in one message.
MOST_NAMES = 8

#: Callback that receives messages about the progress.
Progress = Callable[[str], None]


Given = ParamSpec("Given")
Made = TypeVar("Made")

_compile_lock = threading.RLock()


def exclusive(function: Callable[Given, Made]) -> Callable[Given, Made]:
    """Restricts a function to one thread at a time.

    PyTorch's export changes global state of the process, and parties may be threads that each
    compile."""

    @wraps(function)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        with _compile_lock:
            return function(*args, **kwargs)

    return called


@exclusive
def compile(  # noqa: A001
    model: torch.nn.Module | Estimator | str | Path,
    example: Any = None,
    *,
    calibrate: Any = None,
    labels: Any = None,
    widths: str = PROVED,
    margin: float | None = None,
    error_budget: float | None = None,
    tolerance: float | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    secret: Collection[str] = (),
    results: Collection[str] = (),
    public: Mapping[str, Any] | None = None,
    progress: Progress = lambda _: None,
) -> tuple[Program, Weights]:
    """Compiles a model for inference on secret data.

    Returns the program, which the parties agree on, and the weights, which stay with the owner of
    the model. The program is public: its graph, shapes, scales, widths, and the intervals of its
    values. These reveal something about the weights and the calibration data; ``widths="uniform"``
    reveals less.

    Args:
        model: a module in evaluation mode, or the path of an ONNX file, of an exported program
            (``.pt2``), or of a TensorFlow model (the folder of a SavedModel, a frozen graph,
            ``.keras``). ``FILE.py:callable`` names a function that returns a module and an example.
            Load only your own ``.pt2`` and TensorFlow files, because loading them can run code.
            Or a fitted estimator or pipeline of scikit-learn, which may hold estimators of XGBoost
            and LightGBM (``pip install 'tacit-mpc[sklearn]'``).
        example: inputs of a module, with the shapes that it will run on: a tensor, a tuple of the
            arguments, or a mapping from their names. A file that leaves shapes open also takes an
            example; without it the shapes are those of one row of the calibration data. An
            estimator takes an example (rows, columns).
        calibrate: inputs like those of later runs: a tensor (N, ...), or for several inputs a tuple
            of tensors or a mapping from their names. The compiler chooses scales on them. It also
            fixes the interval that each input must lie in: the range of its calibration data,
            widened on both sides by a quarter of its span. Without calibration data inputs may be
            any numbers, and scales are the default ones.
        labels: the correct classes of the calibration data, (N,); by default the classes that the
            plain model gives.
        widths: "proved" for the width proved for each comparison, or "uniform" for one width for
            all.
        margin: how many times greater the numbers that a ReLU compares may be than in calibration.
            If there are calibration data, comparisons have no more bits than that. A comparison for
            which a proof would require more bits has a guard: greater numbers raise a RangeError
            instead of giving a result. By default the margin is 4, in programs whose guards save
            more than the ten rounds that testing them takes.
        error_budget: greatest error of GELU, SiLU, sigmoid, tanh, erf, softplus, exp, log, softmax,
            reciprocals and roots, relative where they are above 1; at most 2^−6. Each has the
            cheapest series within the budget. By default they have their usual accuracy, and a
            cheaper series only where an interval is proved.
        tolerance: greatest error of a ReLU. Its comparison, and that of no other operator, ignores
            all bits below the tolerance, so a positive number below it may become zero. By default
            no bits are ignored.
        shapes: shapes, by name, of the inputs of a file that leaves them open.
        secret: names of zero-dimensional numbers of an ONNX file that were learned, such as a
            temperature. Other such numbers become public, like those of a formula, and so does
            whatever decides on a shape, an If or a Loop; ``progress`` reports which. What is named
            here is kept secret, or the model is refused.
        results: names of the outputs of a file or an estimator that the program computes, such as
            "label"; by default all.
        public: inputs of a file that all parties know, by name: numbers, lists or tensors. They
            become part of the program, which takes the others only. So control flow may depend on
            them.
        progress: called with a message about each step.

    Raises:
        UnsupportedOperatorError: secret tensors lack operators of the model; the error names all of
            them.
        MisuseError: the model is in training mode, branches on values or holds NaN; the calibration
            data do not fit; or no scale can hold the model's numbers.
    """
    if widths not in (PROVED, UNIFORM):
        raise MisuseError(f'widths are "{PROVED}" or "{UNIFORM}", not {widths!r}')
    if margin is not None and not 1 <= margin <= MOST_MARGIN:
        raise MisuseError(f"the margin of guards is 1 to {MOST_MARGIN:g}, not {margin!r}")
    if error_budget is not None and not 0 <= error_budget <= MOST_BUDGET:
        raise MisuseError(f"an error budget is 0 to {MOST_BUDGET:g}, not {error_budget!r}")
    if tolerance is not None and not 0 < tolerance < math.inf:
        raise MisuseError(f"a tolerance is a number above 0, not {tolerance!r}")
    if labels is not None and calibrate is None:
        raise MisuseError("labels belong to calibration data, and none are given")
    progress("reading the model")
    draft = draft_of(model, example, shapes, calibrate, secret, results, public)
    verify_draft(draft)
    if draft.public:
        progress(
            f"numbers of the file that become public unless named as secret: {_first(draft.public)}"
        )
    given = None if calibrate is None else batches(draft, calibrate, labels)
    before = draft.copy()
    improve(before, (as_eager,))
    data = None if given is None else _data(before, given)
    if given is not None:
        scale_inputs(draft, given.inputs)
        given = given.scaled(draft.exponents)
        verify_draft(draft)
        draft.intervals, draft.calibration = promised(given), given.inputs
    progress("improving the graph")
    improve(draft)
    # Weights as they will be read back from their file.
    draft.weights = {
        name: of_dtype(value, torch.float64) for name, value in of_draft(draft).items()
    }
    choose = partial(choose_approximations, budget=error_budget, proved=widths != UNIFORM)
    if given is not None:
        progress("choosing scales")
        assert data is not None
        assign_scales(draft, data, choose)
        verify_draft(draft)
        progress("choosing widths")
    choose(draft)
    verify_draft(draft)
    seen = None if given is None else observed(draft, given)
    assign_widths(draft, seen, margin, uniform=widths == UNIFORM)
    verify_draft(draft)
    if given is not None and widths != UNIFORM:
        merge_truncations(draft)
        verify_draft(draft)
    narrow_products(draft, uniform=widths == UNIFORM)
    verify_draft(draft)
    progress(f"{truncations(draft.graph)} truncations are left of {truncations(before.graph)}")
    if tolerance is not None:
        dropped = drop_low_bits(draft, tolerance, uniform=widths == UNIFORM)
        verify_draft(draft)
        progress(f"{sum(map(bool, dropped))} ReLUs drop low bits, of {len(dropped)} that could")
    if given is None:
        progress(
            f"nothing has shown that the numbers of the model stay below {draft.scale.limit:g}, "
            "where products are right: calibration data (--calibrate) show it for inputs like "
            "them"
        )
    program = Program.of(draft)
    model_before = Program.of(before)
    _log.info("compiled the program %s, of %d operations", program.digest, len(draft.graph.nodes))
    return program, Weights(of_draft(draft), program.digest, model_before, of_draft(before))


def _first(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _data(draft: Draft, given: Batches) -> Data:
    results = [plain(draft, batch) for batch in given.inputs]
    together = [
        torch.cat([part.reshape(part.shape or (1,)) for part in each])
        for each in zip(*results, strict=True)
    ]
    for each in together:
        if each.is_floating_point() and not bool(each.isfinite().all()):
            raise MisuseError("the plain model gives NaN or infinity on the calibration data")
    classes = together[0].shape[1] if are_classes(together[0]) else 0
    if given.labels is not None and not bool(
        ((given.labels >= 0) & (given.labels < classes)).all()
    ):
        raise MisuseError(f"the labels are not classes of the model, which has {classes}")
    return Data(given.inputs, together, given.labels)
