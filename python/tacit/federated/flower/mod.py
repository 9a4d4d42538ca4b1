"""The clients' half: a mod that sends updates to the servers, and receipts to Flower's server."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from flwr.app import (
    ArrayRecord,
    ConfigRecord,
    Context,
    Message,
    MessageType,
    MetricRecord,
    RecordDict,
)

from tacit.errors import MisuseError, TacitError
from tacit.federated.flower.records import RECORD, WEIGHT, as_number, only, tensors
from tacit.federated.rounds.selection import Selection
from tacit.federated.service.client import Client, Receipt, Task
from tacit.federated.service.config import Federation
from tacit.federated.service.remarks import capped, lengthened, shorter

#: A node's own settings: the path of the federation's file, and the number of the client it is.
FEDERATION, CLIENT = "tacit-federation", "tacit-client"

#: The key of a client's own arrays in its node's state.
PERSONAL = "tacit-personal"

#: Flower's name for the number of a node in a simulation.
PARTITION = "partition-id"

_log = logging.getLogger("flwr")


def secure_mod(
    msg: Message,
    ctxt: Context,
    call_next: Callable[[Message, Context], Message],
    *,
    federation: str | Path | None = None,
    metrics: Iterable[str] = (),
    weighted_by: str = WEIGHT,
) -> Message:
    """Sends what a ``ClientApp`` learned to a federation's servers, in secret. A Flower mod.

    The reply contains no update. A reply to any message has only the named metrics, and after
    training a receipt. The count of examples is secret too, unless it is named. An exception of an
    app stays in the client's own log, since Flower sends an error's text to its server. Integers in
    a model, such as counts of steps, are not part of an update: those of Flower's server stay.

    Arrays that do not travel (``include`` and ``exclude`` in the federation's file) are this
    client's own: after training they stay in the node's state, and they replace those of the next
    message before the app sees it.

    ``functools.partial(secure_mod, metrics=["loss"])`` is a mod with the arguments after
    ``call_next`` filled in.

    Args:
        msg: the message of Flower's server.
        ctxt: the node's context. Its configuration has the path of the federation's file,
            ``tacit-federation``, and the client's number, ``tacit-client``; in a simulation the
            node's number is used.
        call_next: the app, or the next mod.
        federation: the path, if the node's configuration has none.
        metrics: the names of metrics that may be sent. Each is a number.
        weighted_by: the metric that has the count of examples.

    With the next message of any kind, the client asks whether the servers refused its last
    submission, and writes the reason to its own log.

    Raises:
        TacitError: training or submitting failed. The reason is in this client's log.
    """
    reply = None
    try:
        _log_refusal(ctxt, federation)
        _put_own(msg, ctxt)
        kind = msg.metadata.message_type.split(".")[0]
        if kind == MessageType.TRAIN:
            content, receipt = _trained(msg, ctxt, call_next, federation, weighted_by)
        elif kind == MessageType.EVALUATE and RECORD in msg.content.config_records:
            content, receipt = _evaluated(msg, ctxt, call_next, federation, weighted_by)
        else:
            content, receipt = _content(call_next(msg, ctxt)), None
        reply = _reply(content, receipt, frozenset(metrics))
    except Exception:
        _log.exception("nothing is handed in")
    # Raised outside of the ``except`` block, so that the reason is not attached to the error.
    if reply is None:
        raise TacitError("this client has handed in nothing; its own log says why")
    return Message(reply, reply_to=msg)


def _trained(
    msg: Message,
    ctxt: Context,
    call_next: Callable[[Message, Context], Message],
    federation: str | Path | None,
    weighted_by: str,
) -> tuple[RecordDict, Receipt]:
    """Runs the app, and submits what it learned; returns its reply and the receipt."""
    if RECORD not in msg.content.config_records:
        raise MisuseError("Flower's server has no SecureAggregation: its message names no round")
    rules, client, task = _joined(msg, ctxt, federation)
    travelling, sent = rules.settings.travelling, only(msg.content, "message")
    before, content = tensors(sent, travelling), _content(call_next(msg, ctxt))
    made = only(content, "reply")
    after = tensors(made, travelling)
    shapes = [{name: each.shape for name, each in tensors.items()} for tensors in (before, after)]
    if shapes[0] != shapes[1]:
        raise MisuseError("the reply's arrays have other names or shapes than those of the message")
    weight, metrics = _counted(content, rules, weighted_by)
    learned = {name: after[name].double() - before[name].double() for name in before}
    # Of what does not travel, the client looks at the names only.
    stays = {name: torch.empty(0) for name in made if not travelling.takes(name)}
    # First: a client that is too late, or is refused, has trained its own arrays all the same.
    _keep_own(made, sent, travelling, ctxt)
    receipt = client.submit({**learned, **stays}, weight, metrics)
    counts = rules.settings.greatest_weight or 1.0
    if counts < weight:
        _log.warning("%s: %s", weighted_by, capped(weight, counts))
    if receipt.shortened < 1:
        _log.warning("%s", shorter(receipt.shortened, task.norm))
    if receipt.by_rounding < 1:
        _log.warning("%s", lengthened(receipt.by_rounding, task.norm))
    _note(ctxt, task)
    return content, receipt


def _evaluated(
    msg: Message,
    ctxt: Context,
    call_next: Callable[[Message, Context], Message],
    federation: str | Path | None,
    weighted_by: str,
) -> tuple[RecordDict, Receipt]:
    """Runs the app, and reports the metrics that the federation's file names to the servers."""
    rules, client, task = _joined(msg, ctxt, federation)
    if not task.is_evaluation:
        raise MisuseError(f"round {task.round} of the servers is no evaluation")
    content = _content(call_next(msg, ctxt))
    weight, metrics = _counted(content, rules, weighted_by)
    receipt = client.report(metrics, weight)
    _note(ctxt, task)
    return content, receipt


def _counted(
    content: RecordDict, rules: Federation, weighted_by: str
) -> tuple[float, dict[str, float]]:
    """Returns the count of examples in an app's reply, and the metrics that the file names."""
    weight = _number(content, weighted_by, "the count of examples; weighted_by names another")
    return weight, {name: _number(content, name) for name in rules.settings.metrics}


def _note(ctxt: Context, task: Task) -> None:
    """Notes the round in which this client handed something in; see :func:`_log_refusal`."""
    ctxt.state[RECORD] = ConfigRecord(
        {"round": task.round, "values": len(task.model), "evaluation": task.is_evaluation}
    )


def _joined(
    msg: Message, ctxt: Context, federation: str | Path | None
) -> tuple[Federation, Client, Task]:
    """Joins the servers' round of a message."""
    rules, client = _client(ctxt, federation)
    wanted = msg.content.config_records[RECORD]["round"]
    task = client.join(rules.timeout)
    if wanted != task.round:
        raise MisuseError(
            f"Flower's server is at round {wanted!r}, and the servers are at round {task.round}"
        )
    return rules, client, task


def _put_own(msg: Message, ctxt: Context) -> None:
    """Puts this client's own arrays into the model of a message.

    Raises:
        MisuseError: the model has no array of that name and shape.
    """
    # A message may be without a model, as a query is.
    if PERSONAL not in ctxt.state.array_records or not msg.content.array_records:
        return
    sent, own_arrays = only(msg.content, "message"), ctxt.state.array_records[PERSONAL]
    for name, own in own_arrays.items():
        if name not in sent or sent[name].shape != own.shape:
            raise MisuseError(
                f"this client's own array {name!r} of shape {list(own.shape)} has no place in the "
                "model of Flower's server: start the node anew, which forgets its own arrays"
            )
    # In a simulation all nodes and the server have the same objects, which stay as they are.
    own_model = ArrayRecord({**sent, **own_arrays})
    msg.content = RecordDict(
        {key: own_model if value is sent else value for key, value in msg.content.items()}
    )


def _keep_own(made: ArrayRecord, sent: ArrayRecord, travelling: Selection, ctxt: Context) -> None:
    """Keeps arrays that do not travel in the node's state.

    Those that training left as they came are not kept, such as a base model below adapters.
    """
    known = ctxt.state.array_records.get(PERSONAL, ArrayRecord())
    own = {
        name: array
        for name, array in made.items()
        if not travelling.takes(name)
        and (name in known or name not in sent or array.data != sent[name].data)
    }
    if own:
        ctxt.state[PERSONAL] = ArrayRecord(own)


def _log_refusal(ctxt: Context, federation: str | Path | None) -> None:
    """Logs whether this client's last submission was refused."""
    if RECORD not in ctxt.state.config_records:
        return
    entries = ctxt.state.config_records[RECORD]
    number, values, is_evaluation = (entries[name] for name in ("round", "values", "evaluation"))
    del ctxt.state[RECORD]
    assert isinstance(number, int)
    assert isinstance(values, int)
    rules, client = _client(ctxt, federation)
    settings = rules.settings.evaluating if is_evaluation else rules.settings
    task = Task(number, torch.empty(values), settings, 0.0, 0, is_evaluation=bool(is_evaluation))
    try:
        reason = client.refusal(task, rules.timeout)
    except TacitError as error:
        # The error says why the round has no result, and why this client's submission did not
        # count.
        reason = str(error)
    if reason is not None:
        _log.warning("round %d: %s", number, reason)


def _client(ctxt: Context, federation: str | Path | None) -> tuple[Federation, Client]:
    """Returns the federation and this node's client; the node's own configuration comes first."""
    path = ctxt.node_config.get(FEDERATION, federation)
    number = ctxt.node_config.get(CLIENT, ctxt.node_config.get(PARTITION))
    if path is None or number is None:
        raise MisuseError(
            f"a node needs {FEDERATION}, the path of the federation's file, and {CLIENT}, its "
            f"number there: "
            f"flower-supernode --node-config '{FEDERATION}=\"federation.toml\" {CLIENT}=7'"
        )
    return Federation.read(str(path)), Client(str(path), int(number))


def _content(reply: Message) -> RecordDict:
    if reply.has_error():
        raise MisuseError(f"the app replied with an error: {reply.error.reason}")
    return reply.content


def _number(
    content: RecordDict, name: str, what: str = "which the federation's file names"
) -> float:
    for record in content.metric_records.values():
        if name in record:
            return as_number(name, record[name])
    raise MisuseError(f"the reply has no metric {name!r}, {what}")


def _reply(content: RecordDict, receipt: Receipt | None, metrics: frozenset[str]) -> RecordDict:
    """Returns the reply for Flower's server."""
    named: dict[str, Any] = {
        name: as_number(name, value)
        for record in content.metric_records.values()
        for name, value in record.items()
        if name in metrics
    }
    reply = RecordDict({"metrics": MetricRecord(named)})
    if receipt is not None:
        reply[RECORD] = ConfigRecord({"round": receipt.round, "digest": receipt.digest})
    return reply
