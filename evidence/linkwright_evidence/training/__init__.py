"""Training of large language models: tokens per second and GPU of published runs, 8 to 256 GPUs, H100 to GB300.

Parts: `predict` (a row in the words of the product), `cells` (published rows with their predictions, and
`--conditions`), `fit` (the one number of each GPU) and `claims` (the order of machines and of layouts).

Source: performance summaries of NVIDIA Megatron-Bridge, releases 26.02 to 26.08; `references/training/README.md`.
"""

from __future__ import annotations

from linkwright.advise.predict.llm import compute
from linkwright_evidence import Options, scoring
from linkwright_evidence.outcome import Outcome
from linkwright_evidence.training import cells, claims, fit
from linkwright_evidence.training.predict import HIDES_EXPERTS, ThroughputModel

TITLE = "Training of large language models, published tokens per second and GPU, on models"
NOTES = {
    "scores": "Errors in percent of the rows that calibrated nothing. `bias` is the median with its sign, positive if "
    "the model is too fast.",
    "predictions": "What the model says of the given conditions; `remark` says what stands for the system.",
    "refused": "Rows without a prediction, and why.",
}
RULES = {
    f"exchanges of experts are hidden from release {HIDES_EXPERTS} on": "rows of that release are 1.3 to 1.4 times as "
    "fast with the same layout",
    "a copy that one GPU cannot hold is shared (FSDP)": "rows without tp, pp and ep whose `fsdp` says nothing",
}


def reproduce(options: Options) -> Outcome:
    """The whole study; with `--conditions`, predictions only."""
    model = ThroughputModel()
    rows = cells.read(options.conditions) if options.conditions else cells.published()
    answers = cells.predictions(model, rows, options)
    made = cells.cells(rows, answers)
    outcome = Outcome(
        paper="training",
        title=TITLE,
        machine=", ".join(sorted({str(cell.keys["system"]) for cell in made})),
        tuned=_tuned(),
        cells=made,
        claims=[] if options.conditions else claims.check(made),
        notes=NOTES,
    )
    outcome.tables = {"refused": cells.refused(rows, answers)}
    if options.conditions:
        outcome.tables["predictions"] = cells.rows(rows, answers)
        return outcome
    outcome.tables["scores"] = cells.scores(made)
    outcome.verdicts = {
        one.name: one.verdict for one in scoring.scores(made, dict.fromkeys({c.table for c in made}, cells.TARGET))
    }
    return outcome


def _tuned() -> list[dict]:
    """Return the one number of each GPU, the constants that are assumed, and the rules."""
    numbers = [
        {
            "machine": name,
            "key": "reached",
            "value": f"{row['value']:g}",
            "unit": "ratio",
            "status": row["status"],
            "source": row["source"],
        }
        for name, row in fit.shipped().items()
    ]
    assumed = {
        "STREAMED": (compute.STREAMED, "share of the memory's rate that kernels reach which only stream"),
        "LEFT_IN_BF16": (compute.LEFT_IN_BF16, "share of the products that the NVFP4 recipe leaves in bf16"),
        "ATTENTION_BACKWARD": (compute.ATTENTION_BACKWARD, "operations of attention backward over forward"),
    }
    numbers += [
        {"machine": "training", "key": key, "value": f"{value:g}", "unit": "ratio", "status": "assumed", "source": why}
        for key, (value, why) in assumed.items()
    ]
    rule = {"machine": "training", "unit": "rule", "status": "post_hoc"}
    return numbers + [rule | {"key": key, "value": why, "source": why} for key, why in RULES.items()]
