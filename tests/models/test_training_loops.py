"""Training loops of libraries that are unaware of secret tensors run unmodified.

If a library needs a number itself, the refusal names a remedy, and the remedy works.

The tests import the libraries inside functions, since the imports take long and replace functions
of PyTorch.
"""

import logging
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import tacit
from replaced import put_back
from saying import said_twice

X = torch.randn(16, 4, generator=torch.Generator().manual_seed(1))
Y = (X.sum(1) > 0).long()

#: The loops and refusals below that run a Lightning Trainer in each party.
LIGHTNING = {"lightning", "results", "stopping", "files"}

#: A function that trains a model on given rows and classes, and returns a list of results.
Loop = Callable[[nn.Module, Any, Any], Any]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Silences the libraries' messages on processors, loggers and errors.

    It also restores the functions of PyTorch that the libraries replaced.
    """
    logging.disable(logging.ERROR)
    with warnings.catch_warnings(), put_back():
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)


def fresh() -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))


def shared(loop: Loop, name: str = "") -> Any:
    """Runs a loop on a secret model and secret rows, and returns its results revealed."""

    def program() -> Any:
        model = tacit.share_module(fresh(), owner=0, trainable=True)
        made = loop(model, tacit.share(X, owner=1), tacit.share(Y, owner=1))
        return [
            each.reveal() if isinstance(each, tacit.SecretTensor) else each for each in made or []
        ]

    # A Trainer patches PyTorch's classes for all threads while it makes its data loaders.
    return tacit.launch(program, transport="tcp" if name in LIGHTNING else "memory")[0]


def batches(x: Any, y: Any) -> Any:
    return DataLoader(TensorDataset(x, y), batch_size=8)


def optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)


def parameters(model: nn.Module) -> list[Any]:
    return [parameter.detach() for parameter in model.parameters()]


def known(value: Any) -> Any:
    """Returns a loss as a public number."""
    value = value.detach()
    return value.reveal() if isinstance(value, tacit.SecretTensor) else value


# The loops
# ----------------------------------------------------------------------------


def lightning_trainer(
    model: nn.Module, log: Callable[[Any], Any] = lambda loss: loss, **options: Any
) -> Any:
    """Returns a Trainer, and a Lightning module that holds the model."""
    import pytorch_lightning

    class Module(pytorch_lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def training_step(self, batch: Any, _: int) -> Any:
            loss = functional.cross_entropy(self.model(batch[0]), batch[1])
            self.log("loss", log(loss))
            return loss

        def test_step(self, batch: Any) -> Any:
            self.log("tested", log(functional.cross_entropy(self.model(batch[0]), batch[1])))

        def configure_optimizers(self) -> Any:
            return optimizer(self.model)

    silent = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    settings = {"max_epochs": 2, "accelerator": "cpu", **dict.fromkeys(silent, False), **options}
    return pytorch_lightning.Trainer(**settings), Module()


def lightning(model: nn.Module, x: Any, y: Any) -> Any:
    trainer, module = lightning_trainer(model, gradient_clip_val=1.0)
    trainer.fit(module, batches(x, y))
    return [*parameters(model), trainer.callback_metrics["loss"]]


def fabric(model: nn.Module, x: Any, y: Any) -> Any:
    from lightning_fabric import Fabric

    own = Fabric(accelerator="cpu", devices=1)
    wrapped, steps = own.setup(model, optimizer(model))
    for _ in range(2):
        for rows, classes in own.setup_dataloaders(batches(x, y)):
            steps.zero_grad()
            own.backward(functional.cross_entropy(wrapped(rows), classes))
            own.clip_gradients(wrapped, steps, max_norm=1.0)
            steps.step()
    return parameters(model)


def ignite(model: nn.Module, x: Any, y: Any) -> Any:
    from ignite.engine import create_supervised_evaluator, create_supervised_trainer

    trainer = create_supervised_trainer(
        model,
        optimizer(model),
        functional.cross_entropy,
        output_transform=lambda x, y, y_pred, loss: loss.detach(),  # noqa: ARG005
    )
    trainer.run(batches(x, y), max_epochs=2)
    evaluated = create_supervised_evaluator(model).run([(x, y)])
    return [*parameters(model), trainer.state.output, evaluated.output[0]]


def accelerate(model: nn.Module, x: Any, y: Any) -> Any:
    from accelerate import Accelerator

    own = Accelerator(cpu=True)
    prepared, steps, loader = own.prepare(model, optimizer(model), batches(x, y))
    for _ in range(2):
        for rows, classes in loader:
            steps.zero_grad()
            with own.autocast():
                loss = functional.cross_entropy(prepared(rows), classes)
            own.backward(loss)
            own.clip_grad_norm_(prepared.parameters(), 1.0)
            steps.step()
    return [*parameters(own.unwrap_model(prepared)), own.gather(loss.detach())]


def net(model: nn.Module, kind: str = "NeuralNet", *, knows: bool = True) -> Any:
    """Returns a skorch net whose losses are revealed, or stay secret if knows is False."""
    import skorch

    class Net(getattr(skorch, kind)):  # type: ignore[misc]
        def train_step(self, *args: Any, **kwargs: Any) -> Any:
            step = super().train_step(*args, **kwargs)
            return {**step, "loss": known(step["loss"])} if knows else step

    return Net(
        model,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.SGD,
        lr=0.2,
        optimizer__momentum=0.5,
        max_epochs=2,
        batch_size=8,
        train_split=None,
        verbose=0,
    )


def skorch(model: nn.Module, x: Any, y: Any) -> Any:
    fitted = net(model).fit(x, y)
    return [
        *parameters(fitted.module_),
        torch.tensor(fitted.history[:, "train_loss"]),
        fitted.forward(x),
    ]


@cache
def settings() -> Any:
    """Returns the settings of a Hugging Face Trainer.

    Choosing a device resets accelerate's state for all threads of a process. It is therefore done
    once, before any party begins.
    """
    from transformers import TrainingArguments

    made = TrainingArguments(
        num_train_epochs=2,
        per_device_train_batch_size=8,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        learning_rate=0.2,
        lr_scheduler_type="constant",
    )
    assert made.device.type == "cpu"
    return made


def transformers(model: nn.Module, x: Any, y: Any, *, knows: bool = True) -> Any:
    from transformers import Trainer

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, rows: Any, labels: Any) -> Any:
            outputs = self.model(rows)
            return {"loss": functional.cross_entropy(outputs, labels), "logits": outputs}

    class Own(Trainer):
        def training_step(self, *args: Any, **kwargs: Any) -> Any:
            loss = super().training_step(*args, **kwargs)
            return known(loss) if knows else loss

    rows = [{"rows": row, "labels": label} for row, label in zip(x, y, strict=True)]
    trainer = Own(Classifier(), settings(), train_dataset=rows, optimizers=(optimizer(model), None))
    trained = trainer.train()
    return [*parameters(model), torch.tensor(trained.training_loss)]


def timm(model: nn.Module, x: Any, y: Any) -> Any:
    from timm.loss import LabelSmoothingCrossEntropy
    from timm.optim import create_optimizer_v2
    from timm.scheduler import create_scheduler_v2
    from timm.utils import AverageMeter, ModelEmaV3, dispatch_clip_grad

    steps = create_optimizer_v2(model, opt="sgd", lr=0.2, momentum=0.5, weight_decay=1e-4)
    schedule, epochs = create_scheduler_v2(
        steps, sched="cosine", num_epochs=3, warmup_epochs=1, warmup_lr=1e-6
    )
    average, criterion, losses = (
        ModelEmaV3(model, decay=0.8),
        LabelSmoothingCrossEntropy(0.1),
        AverageMeter(),
    )
    for epoch in range(epochs):
        for rows, classes in batches(x, y):
            loss = criterion(model(rows), classes)
            steps.zero_grad()
            loss.backward()
            dispatch_clip_grad(model.parameters(), 1.0)
            steps.step()
            average.update(model)
            losses.update(known(loss).item(), len(rows))
        schedule.step(epoch + 1, losses.avg)
    return [*parameters(model), *parameters(average.module), torch.tensor(losses.avg)]


LOOPS: dict[str, Loop] = {
    "lightning": lightning,
    "fabric": fabric,
    "ignite": ignite,
    "accelerate": accelerate,
    "skorch": skorch,
    "transformers": transformers,
    "timm": timm,
}


@pytest.mark.parametrize("name", [*LOOPS])
def test_a_loop_trains_as_on_plain_tensors(name: str) -> None:
    torch.manual_seed(3)
    wanted = LOOPS[name](fresh(), X, Y)
    assert (wanted[0] - parameters(fresh())[0]).abs().max() > 0.02
    found = shared(LOOPS[name], name)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert (one - other).abs().max() < 5e-4


# Libraries that need a public number
# -------------------------------------------------------------------------


def results(log: Callable[[Any], Any]) -> Loop:
    """Returns a loop that gives the results of a test, which Lightning converts to numbers."""

    def loop(model: nn.Module, x: Any, y: Any) -> Any:
        trainer, module = lightning_trainer(model, log)
        return trainer.test(module, batches(x, y), verbose=False)[0].values()

    return loop


def stopped(log: Callable[[Any], Any]) -> Loop:
    """Returns a loop that ends when the loss stops falling."""

    def loop(model: nn.Module, x: Any, y: Any) -> Any:
        from pytorch_lightning.callbacks import EarlyStopping

        stopping = EarlyStopping("loss", check_on_train_epoch_end=True)
        trainer, module = lightning_trainer(model, log, callbacks=[stopping])
        trainer.fit(module, batches(x, y))
        return [trainer.current_epoch]

    return loop


def kept(**options: Any) -> Loop:
    """Returns a loop that saves shares, with or without Lightning's checkpoints."""

    def loop(model: nn.Module, x: Any, y: Any) -> Any:
        trainer, module = lightning_trainer(model, **options)
        trainer.fit(module, batches(x, y))
        tacit.save_checkpoint(
            f"{options['default_root_dir']}/{tacit.session().party}", module, step=2
        )
        return [trainer.current_epoch]

    return loop


def trained(**options: Any) -> Loop:
    def loop(model: nn.Module, x: Any, y: Any) -> Any:
        from ignite.engine import create_supervised_trainer

        trainer = create_supervised_trainer(
            model, optimizer(model), functional.cross_entropy, **options
        )
        return [trainer.run(batches(x, y)).epoch]

    return loop


def measured(**options: Any) -> Loop:
    def loop(model: nn.Module, x: Any, y: Any) -> Any:
        from ignite.engine import create_supervised_evaluator
        from ignite.metrics import Accuracy

        metrics = {"accuracy": Accuracy(**options)}
        return create_supervised_evaluator(model, metrics=metrics).run([(x, y)]).metrics.values()

    return loop


def judged(score: Callable[[Any], Any]) -> Loop:
    def loop(model: nn.Module, x: Any, y: Any) -> Any:
        from ignite.engine import Events, create_supervised_evaluator
        from ignite.handlers import EarlyStopping

        evaluator = create_supervised_evaluator(
            model,
            output_transform=lambda x, y, y_pred: functional.cross_entropy(y_pred, y),  # noqa: ARG005
        )
        stopping = EarlyStopping(1, lambda engine: score(engine.state.output), evaluator)
        evaluator.add_event_handler(Events.ITERATION_COMPLETED, stopping)
        return [evaluator.run([(x, y)] * 2).epoch]

    return loop


def fitted(kind: str, *, knows: bool) -> Loop:
    return lambda model, x, y: parameters(net(model, kind, knows=knows).fit(x, y).module_)


SECRET = {"output_transform": lambda x, y, y_pred, loss: loss.detach()}  # noqa: ARG005
REVEALED = {"output_transform": lambda output: tuple(each.reveal() for each in output)}

#: By name: a loop that is refused, words of the remedy, and the loop with the remedy applied.
REFUSED: dict[str, tuple[Loop, str, Loop]] = {
    "results": (results(lambda loss: loss), "self.log(name, value.reveal())", results(known)),
    "stopping": (stopped(lambda loss: loss), "self.log(name, value.reveal())", stopped(known)),
    "outputs": (trained(), "y_pred, loss: loss.detach(), which stays secret", trained(**SECRET)),
    "metrics": (measured(), "tuple(each.reveal() for each in output)", measured(**REVEALED)),
    "scores": (
        judged(lambda loss: -loss),
        "engine.state.output.reveal()",
        judged(lambda loss: -known(loss)),
    ),
    "classes": (
        fitted("NeuralNetClassifier", knows=True),
        "fit a skorch.NeuralNet, and predict by net.forward(x)",
        fitted("NeuralNet", knows=True),
    ),
    "history": (
        fitted("NeuralNet", knows=False),
        '{**step, "loss": step["loss"].detach().reveal()}',
        fitted("NeuralNet", knows=True),
    ),
}


@pytest.mark.parametrize("name", [*REFUSED])
def test_what_a_library_must_know_is_refused_and_its_remedy_works(name: str) -> None:
    refused, words, remedied = REFUSED[name]
    with pytest.raises(tacit.MisuseError) as caught:
        shared(refused, name)
    assert words in str(caught.value)
    assert not said_twice(str(caught.value))
    assert shared(remedied, name)


def test_files_of_lightning_are_refused_and_those_of_shares_are_not(tmp_path: Path) -> None:
    with pytest.raises(
        tacit.MisuseError, match="not pickled; make the Trainer with enable_checkpointing=Fal"
    ):
        shared(kept(enable_checkpointing=True, default_root_dir=tmp_path), "files")
    assert shared(kept(enable_checkpointing=False, default_root_dir=tmp_path), "files") == [2]
    assert (tmp_path / "0").exists()


def test_mean_losses_of_transformers_are_refused_and_known_ones_are_not() -> None:
    assert settings()
    with pytest.raises(tacit.MisuseError) as caught:
        shared(lambda model, x, y: transformers(model, x, y, knows=False))
    words = "training_step(self, *args, **kwargs) returns super().training_step(*args, **kwargs).reveal()"
    assert words in str(caught.value)
    assert shared(transformers)
