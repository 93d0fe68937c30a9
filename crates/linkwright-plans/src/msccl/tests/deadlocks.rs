//! Plans that never end, and some that only look so.

use super::refused::refused;
use super::{allreduce, xml};

#[test]
fn circles_are_printed() {
    let own = allreduce(1, 0, &["tb -1 -1 0\n cpy i0 i0 1 @0.0 !", "tb -1 -1 0"]);
    refused(
        &own,
        "gpu 0, tb 0, step 0",
        "gpu 0, tb 0, step 0 -> gpu 0, tb 0, step 0",
    );
    let both_receive = allreduce(
        1,
        0,
        &[
            "tb 1 1 0\n rrc i0 i0 1\n s i0 i0 1",
            "tb 0 0 0\n rrc i0 i0 1\n s i0 i0 1",
        ],
    );
    let circle = "gpu 0, tb 0, step 0 -> gpu 1, tb 0, step 1 -> gpu 1, tb 0, step 0 -> gpu 0, tb 0, step 1 -> \
                  gpu 0, tb 0, step 0";
    refused(&both_receive, "gpu 0, tb 0, step 0", circle);
    let flags = allreduce(
        1,
        0,
        &[
            "tb -1 -1 0\n cpy i0 i0 1 @1.0 !\n tb -1 -1 0\n cpy i0 i0 1 @0.0 !",
            "tb -1 -1 0",
        ],
    );
    refused(
        &flags,
        "gpu 0, tb 0, step 0",
        "gpu 0, tb 0, step 0 -> gpu 0, tb 1, step 0 -> gpu 0, tb 0, step 0",
    );
}

/// An exchange in which both send `sends` chunks, one by one, before they receive any.
fn eager(proto: &str, sends: u32, max_bytes: &str) -> String {
    let block = |peer, from, to| {
        let send = |k: u32| format!("s {from}{k} o{k} 1\n");
        let recv = |k: u32| format!("r {to}{} {to}{} 1\n", k, k);
        let both = (0..sends).map(send).chain((0..sends).map(recv));
        format!("tb {peer} {peer} 0\n{}", both.collect::<String>())
    };
    let (first, second) = (block(1, "o", "s"), block(0, "o", "s"));
    let head = format!(
        "proto=\"{proto}\" coll=\"allreduce\" nchunksperloop=\"{sends}\" inplace=\"1\" {max_bytes}"
    );
    xml(&head, [sends, sends, sends], &[&first, &second])
}

#[test]
fn a_connection_holds_two_messages_or_eight() {
    // None of these is an allreduce, so what gets past the deadlock fails there.
    let result = "this does not carry out allreduce";
    refused(&eager("Simple", 2, ""), result, "");
    refused(
        &eager("Simple", 3, ""),
        "gpu 0, tb 0, step 2",
        "holds 2 messages",
    );
    refused(&eager("LL", 8, ""), result, "");
    refused(
        &eager("LL128", 9, ""),
        "gpu 0, tb 0, step 8",
        "holds 8 messages",
    );
}

#[test]
fn long_steps_are_several_messages_where_the_data_are_large() {
    let plan = |max_bytes: &str| {
        let block = |peer| format!("tb {peer} {peer} 0\n s o0 s0 4\n r o0 s0 4");
        let head = format!(
            "proto=\"Simple\" coll=\"allreduce\" nchunksperloop=\"4\" inplace=\"1\" {max_bytes}"
        );
        xml(&head, [4, 4, 4], &[&block(1), &block(0)])
    };
    // 4 MiB in 4 chunks are two messages of 2 MiB; 8 MiB are four, and none is freed before both have sent.
    refused(
        &plan("maxBytes=\"4194304\""),
        "this does not carry out allreduce",
        "",
    );
    refused(
        &plan("maxBytes=\"8388608\""),
        "gpu 0, tb 0, step 0",
        "holds 2 messages of 1 chunks",
    );
    refused(
        &plan("maxBytes=\"0\""),
        "gpu 0, tb 0, step 0",
        "or lower maxBytes",
    );
    refused(&plan(""), "gpu 0, tb 0, step 0", "never ends");
}
