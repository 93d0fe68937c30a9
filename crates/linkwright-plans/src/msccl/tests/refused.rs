//! Plans that are refused, each with what the message must say.

use super::{allreduce, halves, xml};
use crate::msccl::read;

/// The message about `plan`, which must name `place` and `cure`.
pub(super) fn refused(plan: &str, place: &str, cure: &str) {
    let message = match read(plan) {
        Ok(_) => panic!("accepted:\n{plan}"),
        Err(error) => error.to_string(),
    };
    assert!(
        message.starts_with(place),
        "{message}\nshould begin with {place}"
    );
    assert!(message.contains(cure), "{message}\nshould contain {cure}");
    assert!(!message.contains('\n'), "{message}");
}

/// [`halves`] with one text replaced by another.
fn changed(from: &str, to: &str) -> String {
    let plan = halves();
    assert!(plan.contains(from), "no {from} in\n{plan}");
    plan.replacen(from, to, 1)
}

#[test]
fn files_that_are_no_plan() {
    let plan = halves();
    for end in [plan.len() / 3, plan.len() / 2, plan.len() - 9] {
        refused(&plan[..end], "line ", "cut");
    }
    refused("", "line 1", "there is no <algo>");
    refused(
        &plan.replace("</gpu>\n<gpu", "</gpu>text<gpu"),
        "line 8",
        "text between",
    );
    refused(&format!("{plan}{plan}"), "line 17", "a second <algo>");
    refused(
        &plan.replace("</gpu>", "<copy/></gpu>"),
        "line 8",
        "<copy> is not known in <gpu>",
    );
    refused(
        &plan.replace("<step", "<tb><step"),
        "line 4",
        "<tb> is not known in <tb>",
    );
    refused(&plan.replace("</tb>", "</gpu>"), "line 7", "damaged");
    let nested = "<algo>".repeat(100_000);
    refused(&nested, "line 1", "ngpus is missing");
}

#[test]
fn entities_and_document_types() {
    let bomb = "<!DOCTYPE a [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;\">]>";
    refused(&format!("{bomb}{}", halves()), "line 1", "document type");
    refused(
        &changed("cnt=\"1\"", "cnt=\"&a;\""),
        "gpu 0, tb 0, step 0",
        "cnt=\"&a;\"",
    );
    refused(&changed("</tb>", "&a;</tb>"), "line 7", "text between");
}

#[test]
fn a_plan_is_recognised_behind_what_may_stand_before_it() {
    let plan = halves();
    for before in ["", "\u{feff}", "<?xml version=\"1.0\"?>\n<!-- <tb> -->\n"] {
        assert!(crate::read(&format!("{before}{plan}")).is_ok(), "{before}");
    }
    let bomb = format!("<!DOCTYPE a [<!ENTITY a \"ha\">]>{plan}");
    let error = crate::read(&bomb).unwrap_err().to_string();
    assert!(error.contains("document type"), "{error}");
    assert!(crate::read("<topology><algo/></topology>").is_err());
}

#[test]
fn numbers_out_of_range() {
    refused(
        &changed("cnt=\"1\"", "cnt=\"99999999999999999999\""),
        "gpu 0, tb 0, step 0",
        "cnt=",
    );
    refused(
        &changed("cnt=\"1\"", "cnt=\"-1\""),
        "gpu 0, tb 0, step 0",
        "it must be 1 to",
    );
    refused(
        &changed("cnt=\"1\"", "cnt=\"one\""),
        "gpu 0, tb 0, step 0",
        "cnt=\"one\"",
    );
    refused(
        &changed("ngpus=\"2\"", "ngpus=\"4000000000\""),
        "line 1",
        "ngpus=",
    );
    refused(
        &changed("chan=\"0\"", "chan=\"4\""),
        "gpu 0, tb 0",
        "chan=\"4\"",
    );
    refused(
        &changed("s_chunks=\"0\"", "s_chunks=\"16000000\""),
        "gpu 0",
        "chunks; use fewer",
    );
    refused(
        &changed("cnt=\"1\"", ""),
        "gpu 0, tb 0, step 0",
        "cnt is missing",
    );
    refused(
        &changed("cnt=\"1\"", "cnt=\"1\" cnt=\"1\""),
        "gpu 0, tb 0, step 0",
        "stands there twice",
    );
    refused(
        &changed("s=\"1\"", "s=\"2\""),
        "gpu 0, tb 0, step 1",
        "this is step 1",
    );
    refused(
        &changed("inplace=\"1\"", "inplace=\"0\" outofplace=\"0\""),
        "line 1",
        "neither in place nor",
    );
    refused(
        &changed("proto=\"Simple\"", "proto=\"Fast\""),
        "line 1",
        "use Simple, LL or LL128",
    );
    refused(
        &changed("coll=\"allreduce\"", "coll=\"custom\""),
        "line 1",
        "name the collective",
    );
    refused(
        &changed("type=\"s\"", "type=\"ra\""),
        "gpu 0, tb 0, step 0",
        "use s, r, rcs",
    );
}

#[test]
fn a_million_steps() {
    let mut steps = String::from("tb 1 1 0\n");
    steps.push_str(&"s i0 i0 1\n".repeat(1_000_000));
    let plan = allreduce(2, 0, &[&steps, "tb 0 0 0\n r i0 i0 1"]);
    refused(&plan, "gpu 0, tb 0, step ", "at most 524288 steps are read");
}

#[test]
fn gpus_and_thread_blocks_without_gaps() {
    let idle = allreduce(2, 0, &["tb -1 -1 0", "tb -1 -1 0"]);
    let twice = idle.replace("<gpu id=\"1\"", "<gpu id=\"0\"");
    refused(&twice, "gpu 0 stands there twice", "keep one");
    refused(
        &changed("ngpus=\"2\"", "ngpus=\"3\""),
        "gpu 2 is missing",
        "ngpus=\"3\"",
    );
    refused(
        &changed("ngpus=\"2\"", "ngpus=\"1\""),
        "gpu 0",
        "send=\"1\"",
    );
    refused(
        &changed("<tb id=\"0\"", "<tb id=\"1\""),
        "gpu 0, tb 1",
        "tb 0 is missing",
    );
    refused(
        &changed("send=\"1\"", "send=\"0\""),
        "gpu 0, tb 0",
        "is the GPU itself",
    );
    refused(
        &changed("send=\"1\"", "send=\"-1\""),
        "gpu 0, tb 0, step 0",
        "name the GPU",
    );
}

#[test]
fn chunks_and_counts() {
    refused(
        &changed("srcoff=\"1\"", "srcoff=\"2\""),
        "gpu 0, tb 0, step 0",
        "chunks 2..3 of `i`, which has 2",
    );
    refused(
        &changed("dstbuf=\"i\" dstoff=\"0\"", "dstbuf=\"s\" dstoff=\"0\""),
        "gpu 0, tb 0, step 1",
        "of `s`",
    );
    let two = changed(
        "srcoff=\"1\" dstbuf=\"i\" dstoff=\"1\" cnt=\"1\"",
        "srcoff=\"0\" dstbuf=\"i\" dstoff=\"0\" cnt=\"2\"",
    );
    refused(
        &two,
        "gpu 0, tb 0, step 0",
        "sends 2 chunks, and gpu 1, tb 0, step 1 receives 1",
    );
    refused(
        &changed("i_chunks=\"2\"", "i_chunks=\"3\""),
        "gpu 0",
        "has 2",
    );
    let head = "proto=\"LL\" coll=\"allgather\" nchunksperloop=\"3\" inplace=\"1\"";
    let plan = xml(head, [0, 3, 0], &["tb 1 1 0", "tb 0 0 0"]);
    refused(&plan, "line 1", "not a multiple of ngpus=\"2\"");
}

#[test]
fn sends_and_receives_that_meet_nothing() {
    let plan = |first, second| allreduce(2, 0, &[first, second]);
    refused(
        &plan("tb 1 -1 0\n s i0 i0 1", "tb -1 -1 0"),
        "gpu 0, tb 0, step 0",
        "sends what no step receives",
    );
    refused(
        &plan("tb -1 -1 0", "tb -1 0 0\n r i0 i0 1"),
        "gpu 1, tb 0, step 0",
        "no thread block sends",
    );
    let more = plan("tb 1 -1 0\n s i0 i0 1", "tb -1 0 0\n r i0 i0 1\n r i1 i1 1");
    refused(&more, "gpu 1, tb 0, step 1", "receives what no step sends");
    let twice = plan(
        "tb 1 -1 0\n s i0 i0 1\n tb 1 -1 0\n s i1 i1 1",
        "tb -1 0 0\n r i0 i0 1\n r i1 i1 1",
    );
    refused(
        &twice,
        "gpu 0, tb 1",
        "from gpu 0 to gpu 1 on channel 0 belongs to tb 0 already",
    );
}

#[test]
fn dependencies_that_lead_nowhere() {
    let plan = |steps: &str| allreduce(2, 0, &[steps, "tb -1 -1 0"]);
    let waits = |after| {
        plan(&format!(
            "tb -1 -1 0\n cpy i0 i1 1\n tb -1 -1 0\n cpy i0 i1 1 {after}"
        ))
    };
    refused(
        &waits("@7.0"),
        "gpu 0, tb 1, step 0",
        "gpu 0, tb 7, step 0, which does not exist",
    );
    refused(
        &waits("@0.3"),
        "gpu 0, tb 1, step 0",
        "gpu 0, tb 0, step 3, which does not exist",
    );
    refused(
        &waits("@0.0"),
        "gpu 0, tb 1, step 0",
        "set hasdep=\"1\" there",
    );
    refused(
        &plan("tb -1 -1 0\n nop i0 i0 0"),
        "gpu 0, tb 0, step 0",
        "nop waits for nothing",
    );
    let last = plan("tb -1 -1 0\n cpy i0 i1 1 !\n tb -1 -1 0\n nop i0 i0 0 @0.0");
    refused(&last, "gpu 0, tb 1, step 0", "nop is the last step");
    let chain = plan("tb -1 -1 0\n cpy i0 i1 1 !\n tb -1 -1 0\n nop i0 i0 0 @0.0\n cpy i1 i0 1");
    refused(&chain, "gpu 0, tb 1, step 0", "must have a dependency too");
}

#[test]
fn reductions_that_the_runtime_joins_count_alike() {
    let plan = allreduce(
        3,
        0,
        &["tb -1 -1 0\n re i1 i0 1\n re i1 i0 2", "tb -1 -1 0"],
    );
    refused(&plan, "gpu 0, tb 0, step 0", "another cnt");
}

#[test]
fn two_writers_without_an_order() {
    let plan = |second: &str| {
        allreduce(
            1,
            0,
            &[
                &format!("tb -1 1 0\n rrc i0 i0 1 !\n tb -1 2 0\n rrc i0 i0 1 {second}"),
                "tb 0 -1 0\n s i0 i0 1",
                "tb 0 -1 0\n s i0 i0 1",
            ],
        )
    };
    refused(
        &plan(""),
        "gpu 0, tb 1, step 0",
        "touches i[0] of gpu 0 as gpu 0, tb 0, step 0 does",
    );
    refused(
        &plan("@0.0"),
        "this does not carry out allreduce in place",
        "rank 1",
    );
}

#[test]
fn results_that_are_not_what_the_file_says() {
    refused(
        &changed("coll=\"allreduce\"", "coll=\"reduce_scatter\""),
        "gpu 0",
        "o_chunks=\"2\"",
    );
    refused(
        &changed("type=\"rrcs\"", "type=\"rcs\""),
        "this does not carry out allreduce in place",
        "",
    );
    // Rank 1 gets the data of rank 0, but the file means rank 1 to be the root.
    let head = "proto=\"LL\" coll=\"broadcast\" nchunksperloop=\"1\" inplace=\"1\" root=\"1\"";
    let plan = xml(
        head,
        [1, 1, 0],
        &["tb 1 -1 0\n s i0 i0 1", "tb -1 0 0\n r i0 i0 1"],
    );
    refused(
        &plan,
        "this does not carry out broadcast in place with root 1 (the attribute root names another)",
        "",
    );
    let head = "proto=\"LL\" coll=\"alltoall\" nchunksperloop=\"2\" inplace=\"1\"";
    refused(
        &xml(head, [2, 2, 0], &["tb 1 1 0", "tb 0 0 0"]),
        "line 1",
        "neither in place nor",
    );
}

#[test]
fn what_a_file_keeps_of_a_schedule_must_fit() {
    let schedule = linkwright_schedule::collectives::build(
        "allreduce/ring",
        &linkwright_schedule::Shape::new(2, 8),
    );
    let text = crate::msccl::write(&schedule.unwrap()).unwrap();
    let later = text.replacen("op=\"0\"", "op=\"9\"", 2);
    refused(&later, "gpu 0, tb 0, step 1", "contradicts the order");
    refused(
        &text.replacen(" op=\"0\"", "", 1),
        "gpu 0, tb 0, step 0",
        "op is missing",
    );
    refused(
        &text.replacen("blocks=\"2\"", "blocks=\"3\"", 1),
        "buffer output",
        "not whole chunks",
    );
    let renamed = text.replacen("name=\"output\"", "name=\"outputs\"", 1);
    refused(
        &renamed,
        "gpu 0, tb 0, step 0",
        "not whole chunks of one buffer",
    );
}
