"""What two schedules spend their time on, side by side."""

from linkwright.show.report.spent import Spent, compared


def test_parts_are_shares_of_each_time_and_the_second_one_orders_them():
    # 2 s: 75 % waiting are 1.5 s, 25 % latency 0.5 s; 1 s: 60 % latency, 40 % compute, no waiting.
    before = Spent("Before", 2.0, {"waiting": 0.75, "latency": 0.25})
    after = Spent("After", 1.0, {"latency": 0.6, "compute": 0.4})
    table = compared("Why", before, after)
    assert [column.title for column in table.columns] == ["Critical path", "Before", "After"]
    assert [row[0].text for row in table.rows] == ["latency", "compute", "waiting"]
    assert [(row[1].sort, row[2].sort) for row in table.rows] == [(0.5, 0.6), (0.0, 0.4), (1.5, 0.0)]
    assert [(row[1].detail, row[2].detail) for row in table.rows] == [("25%", "60%"), ("0%", "40%"), ("75%", "0%")]
