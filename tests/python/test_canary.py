from linkwright.executors.threads.canary import Canary, moved


def test_the_canary_gives_a_time_or_nothing():
    value = Canary().median_ns(1.0)
    assert value is None or value > 0


def test_a_machine_that_stays_says_nothing():
    assert moved([(100.0, 110.0), (100.0, 80.0), (None, None)]) is None
    assert moved([]) is None


def test_a_machine_that_moved_is_named_with_its_worst_launch():
    text = moved([(100.0, 130.0), (100.0, 350.0), (100.0, 101.0)])
    assert (
        text == "the machine's speed changed during 2 of 3 launches: a round trip took 100 ns before and 350 ns after"
    )
