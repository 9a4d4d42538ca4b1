"""Private classification of text by a BERT model.

Party 0 has the model, party 1 has the reviews, and only party 1 learns which of them are
favourable. The words stay secret too: each is a secret number, and its embedding is looked up in
secret.

Run all parties on this machine, with a small model that is first trained in the clear, and compare
with inference in the clear:

    python examples/text.py
"""

import random

import torch
from transformers import BertConfig, BertForSequenceClassification

import tacit

MODEL_OWNER, DATA_OWNER = 0, 1

THINGS = ["film", "plot", "cast", "music", "ending", "camera", "pace", "dialogue"]
GOOD = ["great", "moving", "brilliant", "warm", "clever", "lovely"]
BAD = ["dull", "weak", "clumsy", "cold", "tedious", "poor"]
WORDS = ["[pad]", "the", "was", "and", "not", *THINGS, *GOOD, *BAD]

#: Words of a review. Shorter reviews are padded; the model is trained on padded reviews too.
LENGTH = 11


def review(draw: random.Random) -> tuple[str, int]:
    """Draws a review, and whether it is favourable."""
    favourable = draw.random() < 0.5
    clauses = []
    for _ in range(draw.randint(1, 2)):
        denied = draw.random() < 0.3
        word = draw.choice(GOOD if favourable != denied else BAD)
        clauses.append(f"the {draw.choice(THINGS)} was {'not ' if denied else ''}{word}")
    return " and ".join(clauses), int(favourable)


def tokens(texts: list[str]) -> torch.Tensor:
    """Returns the token numbers of the texts, one row per text."""
    rows = [[WORDS.index(word) for word in text.split()] for text in texts]
    return torch.tensor([(row + [0] * LENGTH)[:LENGTH] for row in rows])


def network() -> BertForSequenceClassification:
    """Returns the architecture, which all parties know."""
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        num_labels=2,
    )
    return BertForSequenceClassification(config)


def trained() -> BertForSequenceClassification:
    """Returns a model that its owner trained in the clear."""
    torch.manual_seed(1)
    draw, model = random.Random(1), network().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(200):
        texts, labels = zip(*(review(draw) for _ in range(32)), strict=True)
        optimizer.zero_grad()
        model(tokens(list(texts)), labels=torch.tensor(labels)).loss.backward()
        optimizer.step()
    return model.eval()


def classify(
    weights: dict[str, torch.Tensor] | None, texts: list[str] | None
) -> torch.Tensor | None:
    """Classifies the reviews; every party runs this function. Returns the logits to the reviews'
    owner."""
    model = network().eval()
    if weights is not None:
        model.load_state_dict(weights)
    tacit.share_module(model, owner=MODEL_OWNER)
    words = tacit.share(None if texts is None else tokens(texts), owner=DATA_OWNER)
    with torch.no_grad():
        return model(words).logits.reveal(to=DATA_OWNER)


def _party(weights: dict[str, torch.Tensor], texts: list[str]) -> torch.Tensor | None:
    party = tacit.session().party
    return classify(
        weights if party == MODEL_OWNER else None, texts if party == DATA_OWNER else None
    )


def main() -> None:
    """Runs the trial."""
    print("The model's owner trains in the clear ...")
    model, draw = trained(), random.Random(2)
    texts, labels = zip(*(review(draw) for _ in range(8)), strict=True)
    with torch.no_grad():
        plain = model(tokens(list(texts))).logits
    print("Three parties classify in secret ...")
    secret = tacit.launch(_party, model.state_dict(), list(texts))[DATA_OWNER]
    for text, label, found in zip(texts, labels, secret.argmax(1), strict=True):
        wrong = "" if found == label else "  (wrong)"
        print(f"  {'favourable' if found else 'unfavourable':<13} {text}{wrong}")
    same = int((secret.argmax(1) == plain.argmax(1)).sum())
    error = (secret - plain).abs().max()
    print(f"{same} of {len(texts)} as in the clear; no logit is off by more than {error:.1e}")


if __name__ == "__main__":
    main()
