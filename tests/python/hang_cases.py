"""Dumps of jobs that hang, in the formats of the tools, generated: no line of them was recorded."""

import json
import pickle

GROUP = ("0", "default_pg")


def entry(number, name="all_reduce", *, group=GROUP, sizes=(1024,), out=None, dtype="Float", state="completed",
          at=0, p2p=False):  # fmt: skip
    """An entry of the flight recorder; `number` counts the group's collectives, or its sends and receives."""
    begun = state != "scheduled"
    return {
        "record_id": at, "pg_id": int(group[0]), "process_group": list(group),
        "collective_seq_id": 0 if p2p else number,
        "p2p_seq_id": number if p2p else 0, "op_id": number, "profiling_name": f"nccl:{name}",
        "input_sizes": [list(sizes)], "input_dtypes": [dtype], "output_sizes": [list(out or sizes)],
        "output_dtypes": [dtype], "state": state, "is_p2p": p2p, "retired": state == "completed",
        "time_created_ns": 1_700_000_000_000_000_000 + at, "time_discovered_started_ns": at + 1 if begun else None,
        "time_discovered_completed_ns": at + 2 if state == "completed" else None, "timeout_ms": 600000,
    }  # fmt: skip


def dump(entries, groups=None, **keys):
    """A dump of one rank; `groups` is (name, description) -> ranks."""
    groups = groups or {GROUP: [0, 1, 2, 3]}
    for at, one in enumerate(entries):
        one["record_id"] = at
    config = {name: {"name": name, "desc": desc, "ranks": str(ranks)} for (name, desc), ranks in groups.items()}
    return {"version": "2.10", "pg_config": config, "entries": entries, **keys}


def write(folder, dumps, as_json=False):
    """Files of the flight recorder, one for each rank."""
    for rank, its in dumps.items():
        if as_json:
            (folder / f"nccl_trace_rank_{rank}.json").write_text(json.dumps(its), encoding="utf-8")
        else:
            (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(its, protocol=2))
    return folder


def behind(rank=2, ranks=4, last=7):
    """One rank does not come to the last allreduce, and the others wait."""
    full = [entry(n) for n in range(1, last)]
    return {
        at: dump([*map(dict, full)] + ([] if at == rank else [entry(last, state="started")]),
                 {GROUP: list(range(ranks))})
        for at in range(ranks)
    }  # fmt: skip


def cycle():
    """Ranks 0 and 1 are in two groups and enter them in different order."""
    one, two = ("1", "dp"), ("2", "tp")
    groups = {one: [0, 1], two: [0, 1]}
    first = [entry(1, group=one, state="started"), entry(1, "all_gather", group=two, state="scheduled")]
    second = [entry(1, "all_gather", group=two, state="started"), entry(1, group=one, state="scheduled")]
    return {0: dump(first, groups), 1: dump(second, groups)}


def watchdog(rank, number=641, kind="ALLREDUCE", numel=1024, *, last=None, completed=None, group="0(default_pg)"):
    """What a rank prints that has timed out."""
    head = f"[rank{rank}]:[E1003 18:37:01.832146912 ProcessGroupNCCL.cpp:607]"
    pg, _, name = group.partition("(")
    of = f"[PG ID {pg} PG GUID {pg}({name} Rank {rank}]"
    return (
        f"{head} [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={number}, OpType={kind}, "
        f"NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000) ran for 600013 milliseconds before timing out.\n"
        f"{head} {of} Exception (either an error or timeout) detected by watchdog at work: {number}, last enqueued "
        f"NCCL work: {last or number}, last completed NCCL work: {completed or number - 1}.\n"
    )


def signalled(rank, last=640):
    """What a rank prints that another one asks for its dump."""
    return (
        f"[rank{rank}]:[E1003 18:37:02.1 ProcessGroupNCCL.cpp:1537] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] "
        f"Received a dump signal due to a collective timeout from  rank 0 and we will try our best to dump the debug "
        f"info. Last enqueued NCCL work: {last}, last completed NCCL work: {last}.This is most likely\n"
    )


def ras(warnings="", errors="", rows="    0         1         4         8        32        32   RUNNING  MISMATCH\n"):
    """The text of ncclras."""
    return (
        "NCCL version 2.27.3 compiled with CUDA 12.8\nCUDA runtime version 12080, driver version 12080\n\nJob summary\n"
        "===========\n\n  Nodes  Processes         GPUs  Processes     GPUs\n"
        "(total)   per node  per process    (total)  (total)\n      4          8            1         32       32\n\n"
        "Communicators... (0.00s)\n=============\n\n"
        "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
        f"    #  in group  per comm  per node  per comm  in group\n{rows}\nErrors\n======\n\n{errors}\nWarnings\n"
        f"========\n\n{warnings}"
    )


RAS_DEAD = ras(
    errors="DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
    "  Process 3487 on node 10.0.0.3 managing GPU 5\n\n#0-0 (cf264af53edbe986) INCOMPLETE\n"
    "  Missing communicator data from 1 rank\n  The missing rank: 21\n\n",
    rows="    0         1         4       7-8        32        32   RUNNING  INCOMPLETE\n",
)


def ras_json(counts, missing=(), size=None):
    """The JSON of ncclras: for each communicator, rank -> number of operations by kind; all on host n0."""
    communicators = []
    for at, its in enumerate(counts):
        listed = [
            {"rank": number, "host": "n0", "pid": 100 + device, "cuda_dev": device, "nvml_dev": device,
             "status": {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False,
                        "abort_flag": False},
             "collective_counts": {"Broadcast": 0, "AllGather": 0, "AllReduce": 0} | its[device]}
            for number, device in enumerate(sorted(its))
        ]  # fmt: skip
        lost = [
            {"rank": rank, "host": "n0", "pid": 100 + rank, "cuda_dev": rank, "nvml_dev": rank,
             "status": {"unresponsive": True, "considered_dead": dead}}
            for rank, dead in missing
        ]  # fmt: skip
        communicators.append({
            "hash": f"0x{at + 1:x}", "secondary_hash": "0x1:0x2", "size": size or len(listed) + len(lost),
            "ranks_count": len(listed), "missing_ranks_count": len(lost), "ranks": listed, "missing_ranks": lost,
        })  # fmt: skip
    document = {
        "nccl_version": "2.29.1", "cuda_runtime_version": 13000, "timestamp": "2025-12-19 13:06:53",
        "communicators_count": len(communicators), "communicators": communicators,
        "ras": {"collection_time_sec": 0.0, "timeouts_count": 0},
    }  # fmt: skip
    return json.dumps(document, indent=2)


# What mutants are made of: (name of the file, text).
ALONE = ras(
    "#0-0 (0123456789abcdef) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
    "  31 ranks have launched up to operation 641\n"
    "  Rank 12 has launched up to operation 640 -- GPU 4 managed by process 1000 on node n2\n\n"
)
KINDS = {
    "ras": ("ras.txt", ALONE),
    "ras-dead": ("ras.txt", RAS_DEAD),
    "ras-json": ("ras.json", ras_json([{0: {"AllReduce": 5}, 1: {"AllReduce": 4}, 2: {"AllReduce": 5}}], [(3, True)])),
    "recorder": ("nccl_trace_rank_0.json", json.dumps(cycle()[0], indent=1)),
    "watchdog": ("log.txt", watchdog(0) + watchdog(1, kind="ALLGATHER", numel=7) + signalled(2)),
}  # fmt: skip
