"""The Flower client app, which runs at a SuperNode."""

from functools import partial  # tacit

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from digits.task import examples, learn, network
from tacit.federated.flower import secure_mod  # tacit

app = ClientApp(mods=[partial(secure_mod, metrics=["loss"])])  # tacit


@app.train()
def train(msg: Message, context: Context) -> Message:
    """Trains the model that Flower's server sent on the client's own examples."""
    model = network()
    model.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    images, labels = examples(
        context.node_config["partition-id"], context.node_config["num-partitions"]
    )
    loss = learn(model, images, labels)
    metrics = MetricRecord({"loss": loss, "num-examples": len(labels)})
    return Message(
        RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics}), reply_to=msg
    )
