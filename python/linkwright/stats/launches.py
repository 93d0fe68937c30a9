"""The median of each launch, which is what one launch says of an experiment."""

from __future__ import annotations

import numpy as np
import pandas as pd


def launch_medians(samples: pd.DataFrame) -> dict[str, np.ndarray]:
    """Experiment -> the median time of the slowest rank in each launch that was not set aside."""
    if samples.empty:
        return {}
    slowest = samples[samples["rank"].isna()]
    if "set_aside" in slowest:  # runs of earlier versions do not say which launches were disturbed
        slowest = slowest[slowest["set_aside"].isna()]
    medians = slowest.groupby(["experiment", "launch"])["value_ns"].median()
    return {key: group.to_numpy() for key, group in medians.groupby(level=0)}
