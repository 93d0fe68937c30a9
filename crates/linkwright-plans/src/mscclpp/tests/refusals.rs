//! Plans that are wrong, and what is said of them.

use super::*;

/// Change the operations of GPU 0 of the allgather.
fn changed(change: impl FnOnce(&mut Vec<Value>)) -> Value {
    let mut plan = gather();
    let ops = plan["gpus"][0]["threadblocks"][0]["ops"].as_array_mut();
    change(ops.expect("a list"));
    plan
}

#[track_caller]
fn refused(plan: &Value, place: &str, problem: &str) {
    refused_text(&plan.to_string(), place, problem);
}

#[track_caller]
fn refused_text(text: &str, place: &str, problem: &str) {
    let error = read(text).expect_err("it is wrong");
    assert_eq!(error.place.as_deref().unwrap_or(""), place, "{error}");
    assert!(error.problem.contains(problem), "{error}");
}

#[test]
fn waits_that_never_end() {
    let extra = changed(|ops| ops.push(wait()));
    refused(
        &extra,
        "gpu 0, threadblock 0, op 7",
        "waits for signal 3 from gpu 1, which sends 2",
    );
    let extra = changed(|ops| ops.push(signal()));
    refused(
        &extra,
        "gpu 0, threadblock 0, op 7",
        "gpu 1 never waits for signal 3",
    );
    // Both wait before they signal.
    let gpu = || vec![vec![wait(), signal()]];
    refused(
        &plan("allgather", true, [1, 2, 0], vec![gpu(), gpu()]),
        "gpu 0, threadblock 0, op 0",
        "never ends: gpu 0, threadblock 0, op 0 -> ",
    );
    let packets = changed(|ops| ops[3] = moves("upkt", &[near("s", 0, 1)], &[near("o", 1, 1)]));
    let mut packets = packets;
    packets["gpus"][0]["scratch_chunks"] = json!(1);
    refused(
        &packets,
        "gpu 0, threadblock 0, op 3",
        "packets that are never written",
    );
    let barrier = json!({"name": "barrier", "barrier_id": 0, "num_threadblocks": 2});
    refused(
        &changed(|ops| ops[4] = barrier),
        "gpu 0, threadblock 0, op 4",
        "1 thread blocks come",
    );
}

#[test]
fn accesses_without_an_order() {
    // Both GPUs write block 0 of GPU 1.
    let twice = changed(|ops| ops[3] = moves("put", &[near("o", 0, 1)], &[far("o", 1, 1)]));
    refused(&twice, "gpu 1, threadblock 0, op 3", "nothing orders them");
    // A second allgather forwards a block without a nop behind the wait.
    let forwards = |with: bool| {
        changed(|ops| {
            if with {
                ops.push(nop());
            }
            ops.push(moves("copy", &[near("o", 1, 1)], &[near("s", 0, 1)]));
        })
    };
    for with in [true, false] {
        let mut plan = forwards(with);
        plan["gpus"][0]["scratch_chunks"] = json!(1);
        match with {
            true => drop(accepted(&plan)),
            false => refused(
                &plan,
                "gpu 0, threadblock 0, op 7",
                "touches o[1] of gpu 0 as gpu 1, threadblock 0, op 3 does",
            ),
        }
    }
    // Relaxed signals say nothing of data.
    let relaxed = |name: &str| channel(name, "memory");
    let mut plan = forwards(true);
    plan["gpus"][0]["scratch_chunks"] = json!(1);
    plan["gpus"][0]["threadblocks"][0]["ops"][6] = relaxed("rlxwait");
    refused(&plan, "gpu 0, threadblock 0, op 8", "nothing orders them");
}

#[test]
fn gpus_that_end_too_early() {
    let mut plan = gather();
    for (gpu, op) in [(0, 5), (1, 6)] {
        let ops = plan["gpus"][gpu]["threadblocks"][0]["ops"].as_array_mut();
        ops.expect("a list").remove(op);
    }
    refused(
        &plan,
        "gpu 0, threadblock 0, op 3",
        "gpu 1 may end before this is done",
    );
}

#[test]
fn what_no_transfer_expresses() {
    let op = |name: &str| json!({"name": name});
    for name in ["glres", "glre", "gstore", "gstorepkt"] {
        refused(
            &changed(|ops| ops[3] = op(name)),
            "gpu 0, threadblock 0, op 3",
            "the switch",
        );
    }
    let pipeline = json!({"name": "pipeline", "iter_context": {"unit_size": 16, "num_chunks": 1}, "ops": [nop()]});
    refused(
        &changed(|ops| ops[3] = pipeline),
        "gpu 0, threadblock 0, op 3",
        "a schedule knows no bytes",
    );
    let mut other = gather();
    other["collective"] = json!("sendrecv");
    refused(
        &other,
        "collective",
        "`sendrecv` has no result that can be proved",
    );
    refused(
        &plan("alltoall", true, [2, 2, 0], vec![vec![], vec![]]),
        "inplace",
        "would lose its input",
    );
}

#[test]
fn wrong_names_and_numbers() {
    let at = "gpu 0, threadblock 0, op 3";
    let put = |src: Value, dst: Value| changed(|ops| ops[3] = moves("put", &[src], &[dst]));
    refused(
        &put(near("o", 2, 1), far("o", 0, 1)),
        at,
        "chunks 2..3 of `o` at gpu 0 do not exist; there are 2",
    );
    refused(
        &put(near("o", 0, 4_000_000_000), far("o", 0, 1)),
        at,
        "do not exist",
    );
    refused(&put(near("o", 0, 0), far("o", 0, 0)), at, "do not exist");
    refused(
        &put(near("o", 0, 2), far("o", 0, 1)),
        at,
        "2 parts of chunks go into 1",
    );
    refused(
        &put(near("o", 0, 1), near("o", 0, 1)),
        at,
        "a remote one (`buffer_id`) is needed",
    );
    let unknown = json!({"buffer_id": 9, "index": 0, "size": 1});
    refused(
        &put(near("o", 0, 1), unknown),
        at,
        "buffer_id 9 is not in remote_buffer_refs",
    );
    refused(
        &changed(|ops| ops[3] = moves("put", &[], &[])),
        at,
        "0 sources and 0 destinations",
    );
    let pws = changed(|ops| ops[3]["name"] = json!("pws"));
    refused(&pws, at, "only a port channel");
    let mut plan = gather();
    plan["gpus"][1]["id"] = json!(0);
    refused(&plan, "gpu 1", "id 0 stands in place 1");
    let mut plan = gather();
    plan["gpus"][0]["channels"][0]["connected_to"][0] = json!(2);
    refused(&plan, "gpu 0", "a channel leads to gpu 2");
    let mut plan = gather();
    for gpu in [0, 1] {
        plan["gpus"][gpu]["input_chunks"] = json!(2);
    }
    refused(
        &plan,
        "gpu 0",
        "output_chunks must be input_chunks times the GPUs",
    );
    let mut plan = gather();
    plan["gpus"].as_array_mut().expect("a list").pop();
    refused(&plan, "gpu 0", "output_chunks must be");
    let mut huge = gather();
    for gpu in [0, 1] {
        (
            huge["gpus"][gpu]["input_chunks"],
            huge["gpus"][gpu]["output_chunks"],
        ) = (json!(1 << 30), json!(1u32 << 31));
    }
    refused(&huge, "gpus", "use fewer chunks");
}

#[test]
fn wrong_results() {
    // Block 0 of GPU 0 goes to block 1 of GPU 1 and back again: neither gets block 1 of the other.
    let lost = changed(|ops| drop(ops.remove(3)));
    refused(&lost, "", "this does not carry out allgather in place");
}

#[test]
fn json_that_is_no_plan() {
    let text = gather().to_string();
    refused_text(&text[..text.len() / 2], "line 1", "EOF");
    refused_text(
        &text.replacen("\"inplace\":true", "\"inplace\":1", 1),
        "line 1",
        "expected a boolean",
    );
    refused_text(
        &text.replacen("\"index\":0", "\"index\":0.5", 1),
        "line 1",
        "floating point",
    );
    refused_text(
        &text.replacen("\"index\":0", "\"index\":-1", 1),
        "line 1",
        "integer `-1`",
    );
    refused_text(
        &text.replacen("\"index\":0", "\"index\":0,\"index\":0", 1),
        "line 1",
        "duplicate field `index`",
    );
    refused_text(
        &text.replacen("\"index\"", "\"inidex\"", 1),
        "line 1",
        "unknown field `inidex`",
    );
    refused_text(
        &text.replacen("\"put\"", "\"putt\"", 1),
        "line 1",
        "unknown variant `putt`",
    );
    let old = text.replacen("\"input_chunks\"", "\"inputChunks\"", 1);
    refused_text(&old, "line 1", "the format before MSCCL++ 0.8");
    let deep = format!(
        "{{\"gpus\": {}1{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert!(read(&deep).is_err());
    let ops = format!(
        "{{\"name\":\"pipeline\",\"ops\":{}1{}}}",
        "[".repeat(1000),
        "]".repeat(1000)
    );
    assert!(read(&text.replacen("{\"name\":\"nop\"}", &ops, 1)).is_err());
}

#[test]
fn what_is_recognised() {
    assert!((FORMAT.recognises)(&gather().to_string()));
    assert!((FORMAT.recognises)("\u{feff} {\n \"gpus\": []"));
    assert!(!(FORMAT.recognises)("{\"schema\": 1}") && !(FORMAT.recognises)("[\"gpus\"]"));
}

#[test]
fn more_than_is_read() {
    let mut plan = gather();
    plan["gpus"][0]["channels"][0]["connected_to"] = json!(vec![1; (1 << 21) + 1]);
    refused(&plan, "gpus", "channels; at most 2097152 are read");
    let many = changed(|ops| ops[5]["channel_ids"] = json!(vec![0; (1 << 21) + 1]));
    refused(&many, "gpu 0, threadblock 0, op 5", "use fewer");
    let buffer = json!({"name": "output", "mul": 1, "div": 1, "blocks": 2, "slices": 1});
    let mut plan = gather();
    plan["linkwright"] = json!({"root": 0, "buffers": vec![buffer; 256]});
    refused(&plan, "linkwright", "256 buffers; at most 255 are read");
    let mut plan = gather();
    plan["gpus"][0]["threadblocks"] = json!(vec![json!({"id": 0, "ops": []}); 256]);
    refused(&plan, "gpu 0", "256 threadblocks; at most 255 are read");
}
