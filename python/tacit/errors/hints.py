"""Remedies for libraries that use operations that secret tensors do not have.

The user did not write the line that fails, so the remedy says which option of the library to
change."""

from typing import NamedTuple

from tacit.errors import source_lines


class Remedy(NamedTuple):
    """A remedy for a failing operation in the code of a library."""

    #: Prefix of the module's name.
    module: str
    #: Part of the function's or the module's name.
    part: str
    #: Part of the refusal's text.
    about: str
    instead: str


#: Parts of refusals about writing, about tensors that a compiler flattens, and about pickling; the
#: empty text matches all.
INTO_PLAIN, FLATTENED, PICKLED, ANYTHING = "into a plain", "taken apart", "pickled", ""

#: Remedy for forward-mode derivatives. PyTorch has one forward mode for all threads, and parties
#: may be threads.
BACKWARDS = (
    "take derivatives backwards, which does not need it: torch.autograd.grad, torch.func.grad or "
    "jacrev, not "
    "jvp, jacfwd or hessian"
)

#: Module in which PyTorch compares tensors for tests, and its remedy.
COMPARISON = "torch.testing._comparison"
COMPARED = "compare what may be known: torch.testing.assert_close(x.reveal(), y)"

#: Remedy for PyTorch's compilers, whose programs run on one machine.
UNCOMPILED = (
    "call the module as it is, shared by tacit.share_module, which runs without; tacit.compile "
    "compiles a "
    "plain model, before it is shared"
)

#: Names of Lightning's packages, the separate ones and the combined one.
LIGHTNING = ("lightning", "pytorch_lightning", "lightning_fabric")

#: All remedies. The first match counts.
REMEDIES = (
    Remedy(
        "transformers.trainer",
        ANYTHING,
        "item()",
        "the Trainer keeps how large losses were: have it know them, by a class of yours whose "
        "training_step(self, *args, **kwargs) returns super().training_step(*args, "
        "**kwargs).reveal()",
    ),
    Remedy(
        "transformers.generation",
        ANYTHING,
        ANYTHING,
        "generate() takes the first words as inputs_embeds=model.get_input_embeddings()(words), "
        "with "
        "eos_token_id=None, pad_token_id=None, num_beams=1, a mask that all know, and nothing that "
        "looks at "
        "the words, as no_repeat_ngram_size does",
    ),
    Remedy(
        "transformers",
        "mask",
        ANYTHING,
        "give the mask with four dimensions, which is taken as it is, not with two: mask.bool()[:, "
        "None, "
        "None, :].expand(-1, 1, n, -1) for n words; of a model in which words see those before "
        "them alone "
        "that & torch.ones(n, n).bool().tril()",
    ),
    Remedy(
        "torch.nn.modules.module",
        "_load_from_state_dict",
        INTO_PLAIN,
        "load them with assign=True, which makes the module's tensors secret, or share the module "
        "before: "
        "tacit.share_module(module, owner=...)",
    ),
    Remedy("torch._dynamo.convert_frame", ANYTHING, FLATTENED, UNCOMPILED),
    Remedy("torch.export", ANYTHING, FLATTENED, UNCOMPILED),
    Remedy(
        "torch.jit",
        ANYTHING,
        ANYTHING,
        "trace with check_trace=False, or with plain tensors: what was traced runs on secret ones "
        "too",
    ),
    Remedy(
        "torch.nn.modules.transformer",
        "_detect_is_causal_mask",
        ANYTHING,
        "say whether the mask is causal: is_causal=False, or True in the place of the mask",
    ),
    Remedy(
        "torch.nn.functional",
        "gaussian_nll_loss",
        ANYTHING,
        "write it out: (torch.log(var) + (input - target) ** 2 / var).mean() / 2",
    ),
    Remedy(
        "torch.nn.utils.rnn",
        "pad_sequence",
        INTO_PLAIN,
        "pad each by torch.nn.functional.pad, and torch.stack them",
    ),
    *(
        Remedy(
            package,
            ANYTHING,
            PICKLED,
            "make the Trainer with enable_checkpointing=False, and keep the model by "
            "tacit.save_checkpoint",
        )
        for package in LIGHTNING
    ),
    *(
        Remedy(
            package,
            ANYTHING,
            ANYTHING,
            "log for the Trainer's results, bars, loggers and callbacks what all may know: "
            "self.log(name, value.reveal())",
        )
        for package in LIGHTNING
    ),
    Remedy(
        "ignite.engine",
        ANYTHING,
        ANYTHING,
        "the engine's output is a number by default: give output_transform=lambda x, y, y_pred, "
        "loss: "
        "loss.detach(), which stays secret, or loss.reveal()",
    ),
    Remedy(
        "ignite.metrics",
        ANYTHING,
        ANYTHING,
        "metrics of ignite are numbers: reveal what they are made of, by output_transform=lambda "
        "output: "
        "tuple(each.reveal() for each in output), or compute them in secret by torchmetrics",
    ),
    Remedy(
        "ignite.handlers",
        ANYTHING,
        ANYTHING,
        "have it judge by what all may know: score_function=lambda engine: "
        "engine.state.output.reveal()",
    ),
    Remedy(
        "skorch.utils",
        ANYTHING,
        ANYTHING,
        "skorch makes arrays of the classes that a NeuralNetClassifier is fitted to, and of "
        "predictions: fit "
        "a skorch.NeuralNet, and predict by net.forward(x), which stays secret",
    ),
    Remedy(
        "skorch.net",
        ANYTHING,
        ANYTHING,
        "skorch's history keeps how large losses were: have it know them, by a class of yours "
        "whose "
        "train_step(self, *args, **kwargs), and validation_step likewise, returns "
        '{**step, "loss": step["loss"].detach().reveal()} of step = super().train_step(*args, '
        "**kwargs)",
    ),
    Remedy("torch._functorch", "jvp", ANYTHING, BACKWARDS),
    Remedy("torch.autograd.forward_ad", "make_dual", ANYTHING, BACKWARDS),
    Remedy(
        "torch.distributions",
        ANYTHING,
        "_is_all_true",
        "make the distribution with validate_args=False",
    ),
    Remedy("torch.nn.utils.prune", ANYTHING, ANYTHING, "prune before the module is shared"),
    Remedy(
        "torch.nn.modules.adaptive",
        "forward",
        ANYTHING,
        "take its log_prob(), which computes all classes",
    ),
    Remedy(
        "torch.optim.lbfgs",
        ANYTHING,
        ANYTHING,
        "take an optimiser whose steps do not depend on how large something is, such as SGD or Adam",
    ),
    Remedy(
        "torch.optim.lr_scheduler",
        "step",
        ANYTHING,
        "step it by what all may know: scheduler.step(loss.reveal())",
    ),
    Remedy(
        "torch.optim.swa_utils",
        ANYTHING,
        INTO_PLAIN,
        "share the model before it is averaged: AveragedModel(tacit.share_module(model, owner=...))",
    ),
    Remedy(
        "torch.optim",
        ANYTHING,
        INTO_PLAIN,
        "make the parameters secret before the optimiser is made: tacit.share_module(model, "
        "owner=..., "
        "trainable=True)",
    ),
)


def here(what: str) -> str | None:
    """Returns the remedy for ``what``, if the list has the code that asks for it, or ``None``.

    Frames are matched from the innermost to the user's innermost frame."""
    for module, function in source_lines.calls():
        for each in REMEDIES:
            fits = each.part in function or each.part in module
            if fits and each.about in what and f"{module}.".startswith(f"{each.module}."):
                return each.instead
    return None
