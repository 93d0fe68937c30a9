"""Find the slow part of a cluster: which tests to run, what their results say, which test is next.

    machine -> parts that can be slow (parts.py) -> rounds of disjoint pairs (rounds.py)
            -> rate of each pair if one part is slow (effects.py)
    results (results.py) -> probability of each fault (posterior.py) -> next test (search.py) -> found, or healthy

A *fault* is a described machine with slower links. Parts whose links the same messages cross are one *place*: no test
of transfers tells them apart, and answers name them together.
"""
