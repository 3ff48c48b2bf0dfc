"""Train a small GPT to write psalms, character by character.

The text is `data/psalms.txt`, from the King James Version; the last tenth is kept for validation.

    python examples/char_gpt.py            # 1500 steps, about a minute
    python examples/char_gpt.py --short    # a few steps, to see that everything runs
"""

import argparse
from pathlib import Path

import numpy as np

import namoo
import namoo.numpy as jnp
from namoo import data, lax, nn, optim, random, train

HERE = Path(__file__).parent
CONTEXT = 64


class Block(namoo.Module):
    """A transformer block: attention to earlier positions, then an MLP."""

    norms: list
    attention: nn.MultiheadAttention
    mlp: nn.MLP

    def __init__(self, width, heads, *, key):
        attention, mlp = random.split(key)
        self.norms = [nn.RMSNorm(width), nn.RMSNorm(width)]
        self.attention = nn.MultiheadAttention(heads, width, rotary=True, key=attention)
        self.mlp = nn.MLP(width, width, 4 * width, depth=1, activation=nn.gelu, key=mlp)

    def __call__(self, x):
        h = namoo.vmap(self.norms[0])(x)
        x = x + self.attention(h, h, h, is_causal=True)
        return x + namoo.vmap(lambda x: self.mlp(self.norms[1](x)))(x)


class GPT(namoo.Module):
    """Map the tokens of one text to the logits of each next token."""

    embed: nn.Embedding
    blocks: list
    norm: nn.RMSNorm

    def __init__(self, tokens, width=64, heads=4, depth=3, *, key):
        key, embed = random.split(key)
        self.embed = nn.Embedding(weight=0.1 * random.normal(embed, (tokens, width)))
        self.blocks = [Block(width, heads, key=k) for k in random.split(key, depth)]
        self.norm = nn.RMSNorm(width)

    def __call__(self, tokens):
        x = namoo.vmap(self.embed)(tokens)
        for block in self.blocks:
            x = block(x)
        return namoo.vmap(self.norm)(x) @ self.embed.weight.T  # tied weights


@namoo.jit
def loss_of(model, tokens):
    """Return the mean loss, in nats per character, of a batch of texts (batch, CONTEXT + 1)."""
    logits = namoo.vmap(model)(tokens[:, :-1])
    return optim.losses.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


@namoo.jit
def train_step(state, tokens):
    loss, grads = namoo.value_and_grad(loss_of)(state.params, tokens)
    return state.apply_gradients(grads=grads), loss


@namoo.jit(static_argnames="length")
def sample(model, start, key, length, temperature=0.8):
    """Continue a text of CONTEXT tokens by `length` tokens sampled from the model."""

    def step(window, key):
        token = random.categorical(key, model(window)[-1] / temperature)
        return jnp.append(window[1:], token), token

    return lax.scan(step, start, random.split(key, length))[1]


def main(steps=1500, batch_size=16, check_every=100, *, picture):
    """Train, draw the curves, print a sample, and return the validation loss."""
    text = (HERE / "data" / "psalms.txt").read_text(encoding="ascii")
    letters = sorted(set(text))
    tokens = np.array([letters.index(c) for c in text], np.int32)
    border = len(tokens) * 9 // 10
    loader = data.Loader(data.windows(tokens[:border], CONTEXT + 1), batch_size, key=random.key(1))
    checks = data.Loader(data.windows(tokens[border:], CONTEXT + 1, stride=CONTEXT), 50)

    rate = optim.warmup_cosine_decay_schedule(0.0, 5e-3, steps // 20, steps)
    tx = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(rate, b2=0.99))
    state = train.TrainState.create(params=GPT(len(letters), key=random.key(0)), tx=tx)
    print(f"{len(tokens):,} characters, {len(letters)} different ones")

    log = train.Logger(kinds=["console"])
    due, shown = train.every(check_every), train.progress(loader.steps(steps), total=steps)
    for step, batch in enumerate(shown, 1):
        state, loss = train_step(state, batch)
        shown(loss=loss)
        if due(step):
            log(step, loss=loss, val_loss=train.evaluate(loss_of, state.params, checks))
    train.plot(log, picture, title="Nats a character, of the Psalms")

    written = sample(state.params, tokens[border : border + CONTEXT], random.key(2), length=400)
    print("".join(letters[i] for i in written))
    result = log.history[-1]["val_loss"]
    print(f"validation loss: {result:.3f} nats a character; {picture}")
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a small GPT on the Psalms.")
    parser.add_argument("--short", action="store_true", help="20 steps")
    parser.add_argument("--out", default=HERE / "out" / "char_gpt.svg", help="the picture")
    args = parser.parse_args()
    main(**({"steps": 20, "check_every": 10} if args.short else {}), picture=args.out)
