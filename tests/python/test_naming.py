"""Short names of machines: from processors, hosts and --name."""

from __future__ import annotations

import pytest

from linkwright.store import naming
from linkwright_cases import invoke


@pytest.mark.parametrize(
    ("processor", "short"),
    [
        ("Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz", "xeon-8370C"),
        ("Intel(R) Xeon(R) Processor @ 2.60GHz", "xeon-2.60GHz"),
        ("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", "xeon-E5-2680"),
        ("Intel(R) Core(TM) i7-8700K CPU @ 3.70GHz", "i7-8700K"),
        ("13th Gen Intel(R) Core(TM) i9-13900K", "i9-13900K"),
        ("AMD EPYC 7742 64-Core Processor", "epyc-7742"),
        ("AMD EPYC", "epyc"),
        ("AMD Ryzen 9 7950X 16-Core Processor", "ryzen-7950X"),
        ("AMD Ryzen Threadripper 3970X 32-Core Processor", "threadripper-3970X"),
        ("aarch64", "aarch64"),
        ("", "unknown processor"),
    ],
)
def test_processors_are_abbreviated(processor, short):
    assert naming.abbreviated(processor) == short


@pytest.mark.parametrize("name", ["node17", "login", "gpu-a"])
def test_a_chosen_host_name_is_shown(name):
    assert naming.chosen(name)
    assert naming.short_name({"processor": "AMD EPYC 7742", "host": name}) == f"{name} epyc-7742"


@pytest.mark.parametrize("name", ["4f1c9a2b77de", "localhost", "ip-10-0-3-17", "deadbeef", "", "4f3c-aaaa-bbbb-cccc"])
def test_a_random_host_name_is_not_shown(name):
    assert not naming.chosen(name)


def test_without_a_host_the_cores_tell_machines_apart():
    topology = [{"cpu": k, "package": "0", "core": str(k // 2)} for k in range(4)]
    assert naming.short_name({"processor": "AMD EPYC 7742", "topology": topology}) == "epyc-7742 2 cores"
    assert naming.short_name({"processor": "AMD EPYC 7742", "cpus_online": 1}) == "epyc-7742 1 core"
    assert naming.short_name({"processor": "AMD EPYC 7742"}, "mine") == "mine"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--on", "cell-be", "--name", "x"], "cell-be is a model"),
        (["--on", "threads,cell-be", "--name", "cell-be"], "has that name"),
        (["--on", "threads", "--name", " "], "is not a usable title"),
        (["--on", "threads", "--name", "a\nb"], "is not a usable title"),
        (["--on", "threads", "--name", "x" * 41], "1 to 40"),
    ],
)
def test_names_that_would_mislead_are_refused(tmp_path, arguments, told):
    done = invoke("dissect", *arguments, "--runs", str(tmp_path))
    assert done.status == 2
    assert told in done.err
    assert not list(tmp_path.iterdir())
