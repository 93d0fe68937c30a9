"""One rank of a training that is timed, in a Python that has PyTorch; it knows nothing of linkwright.

    in    one argument, JSON: {"model", "batch", "rank", "ranks", "cpu", "seed", "until_s", "steps", "delay_ms",
          "delayed", "store", "parent"}
    out   {"torch", "pinned", "gradient_bytes", "warm_up", "stamps": [[begin, ready, reduced, end], ...],
          "message": {"small_ns", "large_ns", "sum_ns", "large_bytes"} or null}

    begin                       ready      reduced          end, and the next begin
      | forward, backward, pack | allreduce | unpack, update |

All gradients travel at once after the backward pass, by gloo. Stamps are of the system's monotonic clock, which all
processes of a host share. Between ranks, exchanges of a small and of a large message, both ways at once, and sums of
two large arrays say beforehand what messages cost.
"""

import contextlib
import json
import os
import sys
import time

import torch
from torch import distributed, nn

# Steps that are not timed, and those that are timed at least and at most.
WARM_UP, LEAST, MOST = 3, 10, 100
# Bytes of the two messages, how often each is exchanged, and how many of these come before the timed ones.
SMALL_BYTES, LARGE_BYTES, EXCHANGES, COLD = 64, 8 << 20, 15, 3
MS_PER_S, NS_PER_S = 1000, 1_000_000_000  # this file runs where linkwright is not installed
WORDS, LENGTH, WIDTH, CLASSES = 1000, 32, 128, 100


class Residual(nn.Module):
    """Two convolutions around a shortcut."""

    def __init__(self, planes, out, stride):
        super().__init__()
        self.own = nn.Sequential(
            nn.Conv2d(planes, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
            nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out),
        )  # fmt: skip
        same = stride == 1 and planes == out
        self.shortcut = nn.Identity() if same else nn.Conv2d(planes, out, 1, stride, bias=False)

    def forward(self, x):
        """The sum of both ways."""
        return torch.relu(self.own(x) + self.shortcut(x))


class TextEncoder(nn.Module):
    """Embedded words through encoder layers."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 4)
        self.last = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        """Scores of each text."""
        return self.last(self.layers(self.words(x)).mean(1))


def resnet():
    """ResNet-20 for images of 32 x 32: 0.3 M parameters."""
    sides = [(16, 1)] * 3 + [(32, 2)] + [(32, 1)] * 2 + [(64, 2)] + [(64, 1)] * 2
    planes, layers = 16, [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    for out, stride in sides:
        layers.append(Residual(planes, out, stride))
        planes = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(planes, CLASSES))


def alexnet():
    """AlexNet for images of 64 x 64, with dense layers of half the width: 7 M parameters."""
    convolutions, planes = [], 3
    for out, side, stride, pools in ((64, 11, 4, 0), (192, 5, 1, 1), (384, 3, 1, 1), (256, 3, 1, 0), (256, 3, 1, 1)):
        convolutions += [nn.MaxPool2d(2)] * pools + [nn.Conv2d(planes, out, side, stride, side // 2), nn.ReLU()]
        planes = out
    dense = [nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, CLASSES)]
    return nn.Sequential(*convolutions, nn.Flatten(), *dense)


def vgg():
    """VGG-11 for images of 32 x 32, with half of the planes: 2 M parameters."""
    planes, layers = 3, []
    for out in (32, 0, 64, 0, 128, 128, 0, 256, 256, 0, 256, 256, 0):
        layers += [nn.Conv2d(planes, out, 3, 1, 1), nn.ReLU()] if out else [nn.MaxPool2d(2)]
        planes = out or planes
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(planes, CLASSES))


def mlp():
    """Three dense layers: 6 M parameters."""
    return nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, CLASSES))


def images(side):
    """Return how a batch of random images is made."""
    return lambda batch: torch.randn(batch, 3, side, side)


# Model -> how it is built, and how random samples of a batch are made. `training_step.MODELS` has the same names.
MODELS = {
    "resnet": (resnet, images(32)),
    "alexnet": (alexnet, images(64)),
    "vgg": (vgg, images(32)),
    "mlp": (mlp, lambda batch: torch.randn(batch, 1024)),
    "transformer-tiny": (TextEncoder, lambda batch: torch.randint(WORDS, (batch, LENGTH))),
}


def stepper(asked):
    """Return a function that does one step and returns its stamps, and the bytes of the gradients."""
    build, samples = MODELS[asked["model"]]
    torch.manual_seed(asked["seed"])
    model, inputs = build(), samples(asked["batch"])
    targets = torch.randint(CLASSES, (asked["batch"],))
    parameters = list(model.parameters())
    update = torch.optim.SGD(parameters, 1e-3)
    sizes = [p.numel() for p in parameters]
    flat = torch.zeros(sum(sizes))
    pairs = [(place.view_as(p), p) for place, p in zip(flat.split(sizes), parameters, strict=True)]

    def step():
        if os.getppid() != asked["parent"]:
            sys.exit("the run has ended")
        begin = time.monotonic_ns()
        if asked["delay_ms"] and asked["delayed"] == asked["rank"]:
            time.sleep(asked["delay_ms"] / MS_PER_S)
        update.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        for place, p in pairs:
            place.copy_(p.grad)
        ready = time.monotonic_ns()
        if asked["ranks"] > 1:
            distributed.all_reduce(flat)
        reduced = time.monotonic_ns()
        for place, p in pairs:
            torch.div(place, asked["ranks"], out=p.grad)
        update.step()
        return [begin, ready, reduced, time.monotonic_ns()]

    return step, flat.numel() * flat.element_size()


def timed(call):
    """Return times of a call in ns, one after the other, without the cold ones."""
    found = []
    for _ in range(EXCHANGES):
        began = time.monotonic_ns()
        call()
        found.append(time.monotonic_ns() - began)
    return found[COLD:]


def messages(rank):
    """Return what messages between ranks 0 and 1 take, both ways at once, and what summing two large arrays takes."""

    def exchange(size):
        out, into = torch.ones(size // 4), torch.ones(size // 4)

        def call():
            for wait in (distributed.isend(out, 1 - rank), distributed.irecv(into, 1 - rank)):
                wait.wait()

        return timed(call)

    found = {name: exchange(size) for name, size in (("small_ns", SMALL_BYTES), ("large_ns", LARGE_BYTES))}
    a, b = torch.ones(LARGE_BYTES // 4), torch.ones(LARGE_BYTES // 4)
    return {**found, "sum_ns": timed(lambda: a.add_(b)), "large_bytes": LARGE_BYTES}


def main():
    """Train, and print what was timed."""
    asked = json.loads(sys.argv[1])
    try:
        os.sched_setaffinity(0, [asked["cpu"]])
        pinned = True
    except OSError:
        pinned = False
    torch.set_num_threads(1)
    rank, ranks, message = asked["rank"], asked["ranks"], None
    if ranks > 1:
        place = "file://" + asked["store"]
        distributed.init_process_group("gloo", init_method=place, rank=rank, world_size=ranks)
        message = messages(rank) if rank < 2 else None
        distributed.barrier()
    step, gradient_bytes = stepper(asked)
    warm = [step() for _ in range(WARM_UP)]
    fit = (asked["until_s"] - time.monotonic()) * NS_PER_S / (warm[-1][3] - warm[-1][0])
    count = torch.tensor(min(max(LEAST, int(fit)), asked["steps"] or MOST))
    if ranks > 1:
        distributed.broadcast(count, 0)
    stamps = [*warm, *(step() for _ in range(int(count)))]
    found = {"torch": torch.__version__, "pinned": pinned, "gradient_bytes": gradient_bytes, "warm_up": WARM_UP}
    print(json.dumps({**found, "stamps": stamps, "message": message}), flush=True)
    if ranks > 1:
        with contextlib.suppress(RuntimeError):  # the other has left
            distributed.barrier()
        os._exit(0)  # threads of gloo may abort an exit that runs destructors


if __name__ == "__main__":
    main()
