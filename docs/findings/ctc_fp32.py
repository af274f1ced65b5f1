"""CTC in fp32 over 1,000 steps: how far loss and gradient are from float64, in PyTorch, optax and TensorFlow.

Each framework that can be imported is asked: python ctc_fp32.py. What is right is computed here, in float64.
"""

import numpy as np

STEPS, CLASSES, LABELS, BATCH = 1000, 59, 100, 4
random = np.random.RandomState(0)
labels = random.randint(1, CLASSES, (BATCH, LABELS))
lengths = np.array([1000, 900, 700, 500])
start = (random.uniform(-1, 1, (BATCH, STEPS, CLASSES)) * 0.2).astype("f")


def forward_variables(emissions, states):
    """For each step and state, the log probability of all paths that lead to it."""
    found = np.full(emissions.shape, -np.inf)
    found[0, :2] = emissions[0, :2]
    skippable = np.zeros(len(states), bool)
    skippable[2:] = (states[2:] != 0) & (states[2:] != states[:-2])
    for t in range(1, len(emissions)):
        before = np.concatenate([[-np.inf, -np.inf], found[t - 1]])
        skip = np.where(skippable, before[:-2], -np.inf)
        found[t] = np.logaddexp(np.logaddexp(before[2:], before[1:-1]), skip) + emissions[t]
    return found


def exact(logits):
    """The losses and the gradient of their mean, in float64."""
    losses, gradient = [], np.zeros(logits.shape)
    for index, (one, count) in enumerate(zip(logits.astype("d"), lengths, strict=True)):
        log_probabilities = one[:count] - np.log(np.exp(one[:count]).sum(axis=1, keepdims=True))
        states = np.zeros(2 * LABELS + 1, int)
        states[1::2] = labels[index]
        emissions = log_probabilities[:, states]
        forward = forward_variables(emissions, states)
        backward = forward_variables(emissions[::-1, ::-1], states[::-1])[::-1, ::-1]
        likelihood = np.logaddexp(forward[-1, -1], forward[-1, -2])
        posterior = np.exp(forward + backward - emissions - likelihood) @ np.eye(CLASSES)[states]
        gradient[index, :count] = (np.exp(log_probabilities) - posterior) / BATCH
        losses.append(-likelihood)
    return np.array(losses), gradient


def by_pytorch(logits):
    import torch

    x = torch.tensor(logits).requires_grad_()
    sizes = torch.tensor(lengths), torch.full((BATCH,), LABELS)
    log_probabilities = x.transpose(0, 1).log_softmax(2)
    losses = torch.nn.functional.ctc_loss(log_probabilities, torch.tensor(labels), *sizes, reduction="none")
    losses.mean().backward()
    return losses.detach().numpy(), x.grad.numpy()


def by_optax(logits):
    import jax
    import optax

    padding = (np.arange(STEPS) >= lengths[:, None]).astype("f")

    def mean(x):
        losses = optax.ctc_loss(x, padding, labels, np.zeros(labels.shape, "f"))
        return losses.mean(), losses

    (_, losses), gradient = jax.value_and_grad(mean, has_aux=True)(logits)
    return np.asarray(losses), np.asarray(gradient)


def by_tensorflow(logits, sparse):
    import tensorflow as tf

    @tf.function
    def losses_and_gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            targets = tf.sparse.from_dense(labels.astype("i")) if sparse else labels.astype("i")
            losses = tf.nn.ctc_loss(targets, x, [LABELS] * BATCH, lengths.astype("i"), False, blank_index=0)
            mean = tf.reduce_mean(losses)
        return losses, tape.gradient(mean, x)

    return [one.numpy() for one in losses_and_gradient(tf.constant(logits))]


ASKED = {
    "PyTorch": by_pytorch,
    "optax": by_optax,
    "TensorFlow, sparse labels": lambda logits: by_tensorflow(logits, True),
    "TensorFlow, dense labels": lambda logits: by_tensorflow(logits, False),
}
for higher in (0, 5, 10, 20):
    logits = start.copy()
    logits[:, :, 0] += higher
    right, gradient = exact(logits)
    for name, compute in ASKED.items():
        try:
            found, found_gradient = compute(logits)
        except ImportError:
            continue
        off = np.linalg.norm(found_gradient - gradient) / np.linalg.norm(gradient)
        print(
            f"blank's logit {higher:2d} higher, losses {right.min():.0f} to {right.max():.0f}, {name}: "
            f"loss off by {np.abs(found / right - 1).max():.1e}, gradient by {off:.1e}"
        )
