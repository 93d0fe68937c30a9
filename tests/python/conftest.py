"""What holds for all tests."""

import signal


def pytest_configure():
    """Let interrupts reach what tests start: a shell has what it runs in the background ignore them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
