"""Messages that stand for a bundle of equal channels."""

import pytest

import linkwright as lw
from linkwright import _native
from linkwright.ask.answer import How, ask
from linkwright.base.errors import LinkwrightError

LINK_GBPS, CHANNEL_GBPS, BYTES = 100, 10, 1_000_000_000

MACHINE = """
[machine]
name = "pair"
summary = "two ranks, one link of 100 GB/s, 10 GB/s a channel"
description = "For tests."
format = 1
sources = ["by hand"]

[[level]]
name = "GPU"
count = 2
source = "by hand"

[endpoints]
count = 2
name = "GPU {i}"
source = "by hand"

[fabric]
kind = "flow"

[fabric.links.wire]
edges = ["GPU 0 - GPU 1"]
source = "by hand"
bandwidth = { value = 100, unit = "GB/s", status = "assumed", source = "by hand" }

[fabric.transport.wire]
links = ["wire"]
start = { value = 0, unit = "us", status = "assumed", source = "by hand" }
CHANNEL

[path.put]
summary = "a write"
fused_combine = true
CHANNELS
"""
CHANNEL = 'channel = { value = 10, unit = "GB/s", status = "assumed", source = "by hand" }'
CHANNELS = 'channels = { value = 4, unit = "count", status = "assumed", source = "by hand" }'


def machine(channel: str = CHANNEL, channels: str = "") -> _native.Machine:
    return _native.Machine.parse(MACHINE.replace("CHANNELS", channels).replace("CHANNEL", channel), "pair.toml")


def seconds(described: _native.Machine, channels: int | None = None) -> float:
    schedule = lw.schedule("broadcast", "linear", ranks=2, size=BYTES)
    return ask(described, schedule, How(channels=channels)).time.s


@pytest.mark.parametrize(
    ("channels", "gbps"),
    # n channels carry 10 n GB/s, and the link no more than 100.
    [(None, LINK_GBPS), (1, CHANNEL_GBPS), (4, 4 * CHANNEL_GBPS), (10, LINK_GBPS), (64, LINK_GBPS)],
)
def test_a_bundle_carries_what_its_channels_do_up_to_the_link(channels: int | None, gbps: int) -> None:
    assert seconds(machine(), channels) == pytest.approx(BYTES / (gbps * 1e9), rel=1e-9)


def test_the_path_counts_channels_unless_the_run_does() -> None:
    described = machine(channels=CHANNELS)
    assert seconds(described) == pytest.approx(BYTES / 40e9)
    assert seconds(described, 2) == pytest.approx(BYTES / 20e9)


def test_a_transport_without_a_limit_carries_what_the_link_does() -> None:
    assert seconds(machine(channel=""), 1) == pytest.approx(BYTES / 100e9)


def test_channels_that_nothing_limits_are_refused() -> None:
    with pytest.raises(LinkwrightError, match="no transport says what one carries; add `channel`"):
        seconds(machine(channel="", channels=CHANNELS))


def test_no_channel_is_refused() -> None:
    with pytest.raises(LinkwrightError, match="0 channels carry nothing"):
        seconds(machine(), 0)
    with pytest.raises(LinkwrightError, match="0 channels carry nothing"):
        machine(channels=CHANNELS.replace("= 4", "= 0"))
