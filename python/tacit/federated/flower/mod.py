"""A client's half: what it learned goes to the servers, and a receipt to Flower's."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from flwr.app import ConfigRecord, Context, Message, MessageType, MetricRecord, RecordDict

from tacit.errors import MisuseError, TacitError
from tacit.federated.flower.records import RECORD, WEIGHT, as_number, only, tensors
from tacit.federated.service.client import Client, Receipt, Task, capped, shorter
from tacit.federated.service.config import Federation

#: A node's own settings: the path of the federation's file, and which of its clients the node is.
FEDERATION, CLIENT = "tacit-federation", "tacit-client"

#: Flower's name for which of a simulation's nodes one is.
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
    """A mod for a ``ClientApp``: what its training learned goes to a federation's servers, in
    secret, and not into the reply.

    A reply to any message has no more than the metrics that are named, and after training a
    receipt. The count of examples is secret too, unless it is named. What an app raises stays in
    its own log, since Flower sends an error's text to its server. Integers in a model, such as
    counts of steps, are nobody's update: those of Flower's server stay.

    ``functools.partial(secure_mod, metrics=["loss"])`` is a mod with what follows ``call_next``
    filled in.

    Args:
        msg: what Flower's server sent.
        ctxt: the node's. Its configuration has the path of the federation's file,
            ``tacit-federation``, and which client this is, ``tacit-client``; a simulation's nodes
            are numbered as they are.
        call_next: the app, or the next mod.
        federation: the path, where the node's configuration has none.
        metrics: the names of metrics that may travel. Each is a number.
        weighted_by: the metric that has the count of examples.

    Whether the servers refused what this client handed in before, it asks with the next message
    that it gets, of whatever kind, and its own log says why.

    Raises:
        TacitError: training or handing in failed. Why is in this client's log.
    """
    told = None
    try:
        _hear(ctxt, federation)
        if msg.metadata.message_type.split(".")[0] != MessageType.TRAIN:
            content, receipt = _content(call_next(msg, ctxt)), None
        else:
            content, receipt = _trained(msg, ctxt, call_next, federation, weighted_by)
        told = _told(content, receipt, frozenset(metrics))
    except Exception:
        _log.exception("nothing is handed in")
    # Not while the reason is at hand, which would go along with what is raised.
    if told is None:
        raise TacitError("this client has handed in nothing; its own log says why")
    return Message(told, reply_to=msg)


def _trained(
    msg: Message,
    ctxt: Context,
    call_next: Callable[[Message, Context], Message],
    federation: str | Path | None,
    weighted_by: str,
) -> tuple[RecordDict, Receipt]:
    """The reply of the app, and the receipt for what it learned."""
    rules, client = _client(ctxt, federation)
    if RECORD not in msg.content.config_records:
        raise MisuseError("Flower's server has no SecureAggregation: its message names no round")
    wanted = msg.content.config_records[RECORD]["round"]
    task = client.join(rules.timeout)
    if wanted != task.round:
        raise MisuseError(
            f"Flower's server is at round {wanted!r}, and the servers are at round {task.round}"
        )
    before = tensors(only(msg.content, "message"))
    content = _content(call_next(msg, ctxt))
    after = tensors(only(content, "reply"))
    shapes = [{name: each.shape for name, each in tensors.items()} for tensors in (before, after)]
    if shapes[0] != shapes[1]:
        raise MisuseError("the reply's arrays have other names or shapes than those of the message")
    weight = _weight(content, weighted_by)
    learned = {name: after[name].double() - before[name].double() for name in before}
    receipt = client.submit(learned, weight)
    if receipt.weight < weight:
        _log.warning("%s: %s", weighted_by, capped(weight, receipt.weight))
    if receipt.shortened < 1:
        _log.warning("%s", shorter(receipt.shortened, task.norm))
    ctxt.state[RECORD] = ConfigRecord({"round": receipt.round, "values": len(task.model)})
    return content, receipt


def _hear(ctxt: Context, federation: str | Path | None) -> None:
    """Tells this client's log whether what it handed in last was refused."""
    if RECORD not in ctxt.state.config_records:
        return
    number, values = (ctxt.state.config_records[RECORD][name] for name in ("round", "values"))
    del ctxt.state[RECORD]
    assert isinstance(number, int)
    assert isinstance(values, int)
    rules, client = _client(ctxt, federation)
    task = Task(number, torch.empty(values), rules.settings, 0.0, 0)
    try:
        reason = client.refusal(task, rules.timeout)
    except TacitError as error:
        # A round that came to nothing says so, and why this client's own did not count.
        reason = str(error)
    if reason is not None:
        _log.warning("round %d: %s", number, reason)


def _client(ctxt: Context, federation: str | Path | None) -> tuple[Federation, Client]:
    """Who this node is, by its own configuration first."""
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


def _weight(content: RecordDict, name: str) -> float:
    for record in content.metric_records.values():
        if name in record:
            return as_number(name, record[name])
    raise MisuseError(
        f"the reply has no metric {name!r}, the count of examples; weighted_by names another"
    )


def _told(content: RecordDict, receipt: Receipt | None, metrics: frozenset[str]) -> RecordDict:
    """What Flower's server is told."""
    named: dict[str, Any] = {
        name: as_number(name, value)
        for record in content.metric_records.values()
        for name, value in record.items()
        if name in metrics
    }
    told = RecordDict({"metrics": MetricRecord(named)})
    if receipt is not None:
        told[RECORD] = ConfigRecord({"round": receipt.round, "digest": receipt.digest})
    return told
