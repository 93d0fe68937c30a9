//! Texts whose schedules are derived by hand, and texts that are wrong.

mod fuzz;

use super::{read, write::write};
use linkwright_schedule::ir::{OpKind, Schedule};
use linkwright_schedule::{collectives, patterns, text, verify, Shape};

/// The operations of the schedule that a GOAL text comes to, without the header.
fn operations(goal: &str) -> Vec<String> {
    let schedule = read(goal).unwrap();
    let text = text::print(&schedule);
    let lines = text
        .lines()
        .skip_while(|line| *line != "edges given")
        .skip(1);
    lines.map(str::to_string).collect()
}

fn problem(goal: &str) -> String {
    read(goal).unwrap_err().to_string()
}

/// Two ranks with these lines.
fn two(first: &str, second: &str) -> String {
    format!("num_ranks 2\nrank 0 {{\n{first}\n}}\nrank 1 {{\n{second}\n}}\n")
}

#[test]
fn a_message_is_a_put_and_what_requires_its_receive_waits_for_it() {
    let goal = two(
        "l1: calc 100\nl2: send 8b to 1 tag 7\nl2 requires l1",
        "l1: recv 8b from 0 tag 7\nl2: calc 50 cpu 3\nl2 requires l1",
    );
    assert_eq!(
        operations(&goal),
        [
            "step 1",
            "t0 compute 0 work=100 lane=0 after=-",
            "step 2",
            "t1 put 0:input8[0] -> 1:output8[0] replace lane=0 src_after=t0 dst_after=-",
            "step 3",
            "t2 compute 1 work=50 lane=3 after=t1",
            "end"
        ]
    );
}

#[test]
fn a_receive_passes_on_what_it_requires() {
    // l3 requires l2, which requires l1: both the message and the calculation are waited for.
    let goal = two(
        "s: send 1b to 1",
        "l1: calc 5 cpu 1\nl2: recv 1b from 0\nl2 requires l1\nl3: calc 9\nl3 requires l2",
    );
    assert_eq!(
        operations(&goal),
        [
            "step 1",
            "t0 put 0:input1[0] -> 1:output1[0] replace lane=0 src_after=- dst_after=-",
            "t1 compute 1 work=5 lane=1 after=-",
            "step 2",
            "t2 compute 1 work=9 lane=0 after=t0,t1",
            "end"
        ]
    );
}

#[test]
fn behind_a_start_is_order_in_a_lane_and_inherits_waits_in_another() {
    // b starts behind a: in the lane of a it needs no wait, in another one it waits for c as a does. d starts
    // behind a receive, which starts at once, so it does not wait for the message.
    let goal = |cpu: u32| {
        two(
            &format!(
                "c: calc 3 cpu 1\na: calc 4\na requires c\nb: calc 1 cpu {cpu}\nb irequires a\n\
                 r: recv 1b from 1\nd: calc 2 cpu 9\nd irequires r"
            ),
            "send 1b to 0",
        )
    };
    let waits = |goal: &str, work: &str| {
        let lines = operations(goal);
        let line = lines.iter().find(|line| line.contains(work)).unwrap();
        line.split("after=").nth(1).unwrap().to_string()
    };
    assert_eq!(waits(&goal(0), "work=1 "), "-");
    assert_eq!(waits(&goal(2), "work=1 "), waits(&goal(2), "work=4 "));
    assert_ne!(waits(&goal(2), "work=1 "), "-");
    assert_eq!(waits(&goal(2), "work=2 "), "-");
    let lines = operations(&goal(0));
    let place = |work: &str| lines.iter().position(|line| line.contains(work)).unwrap();
    assert!(
        place("work=4 ") < place("work=1 "),
        "the lane issues a before b"
    );
}

#[test]
fn equal_tags_are_matched_in_the_order_of_the_text() {
    let goal = two(
        "a: send 8b to 1 tag 1\nb: send 16b to 1 tag 1",
        "x: recv 8b from 0 tag 1\ny: recv 16b from 0 tag 1\nz: calc 0\nz requires y",
    );
    let schedule = read(&goal).unwrap();
    let waited = schedule.after(2)[0].op();
    assert_eq!(schedule.op_bytes(&schedule.ops()[waited as usize]), 16);
}

#[test]
fn a_receive_may_have_more_room_than_the_message_needs() {
    let schedule = read(&two("send 8b to 1", "recv 64b from 0")).unwrap();
    assert_eq!(schedule.op_bytes(&schedule.ops()[0]), 8);
}

#[test]
fn the_whole_grammar_is_read() {
    let goal = "/* a\n comment */ // and another\r\nnum_ranks 2\nrank 1 { // ranks in any order\n\
                recv 2b from 0 tag 0 cpu 1 nic 2 }\n\nrank 0\n{\n\t_x\n}\n";
    assert!(problem(goal).starts_with("line 9: `_` means nothing in GOAL"));
    let goal = goal.replace("\t_x\n", "\tsend 2 b to 1 nic 3 // at the end\n");
    assert_eq!(read(&goal).unwrap().ops().len(), 1);
}

#[test]
fn every_message_has_exactly_its_bytes() {
    // Few sizes have buffers of their own; many share chunks of their common divisor.
    for sizes in [
        vec![1, 7, 1 << 40, 1 << 20],
        (1..=300).map(|i| 24 * i).collect::<Vec<u64>>(),
    ] {
        let lines = |word: &str, peer: u32| -> String {
            let line = |(tag, size): (usize, &u64)| format!("{word} {size}b {peer} tag {tag}\n");
            sizes.iter().enumerate().map(line).collect()
        };
        let goal = two(
            &lines("send", 1).replace("b 1", "b to 1"),
            &lines("recv", 0).replace("b 0", "b from 0"),
        );
        let schedule = read(&goal).unwrap();
        let moved: Vec<u64> = schedule
            .ops()
            .iter()
            .map(|op| schedule.op_bytes(op))
            .collect();
        assert_eq!(moved, sizes);
        let mut places: Vec<_> = (schedule.ops().iter())
            .map(|op| (op.dst_buffer.0, op.dst, op.count))
            .collect();
        places.sort_unstable();
        assert!(places
            .windows(2)
            .all(|w| w[0].0 < w[1].0 || w[0].1 + w[0].2 <= w[1].1));
    }
}

#[test]
fn a_cut_that_would_not_fit_is_refused() {
    let large = |size: u64| {
        two(
            &format!("send 1b to 1 tag 1\nsend {size}b to 1\n"),
            &format!("recv 1b from 0 tag 1\nrecv {size}b from 0\n"),
        )
    };
    assert!(read(&large(1 << 40)).is_ok());
    let problem = problem(&large((1 << 32) + 1));
    assert!(
        problem.contains("4294967297 B arrive at one rank")
            && problem.contains("no larger common divisor than 1 B; round"),
        "{problem}"
    );
}

/// Rank 1 receives `count` messages one after another; `behind` stands behind each receive.
fn chain(count: usize, behind: impl Fn(usize) -> String) -> String {
    let sends: String = (0..count)
        .map(|i| format!("send 1b to 1 tag {i}\n"))
        .collect();
    let receive = |i: usize| match i {
        0 => format!("r0: recv 1b from 0 tag 0\n{}", behind(0)),
        _ => format!(
            "r{i}: recv 1b from 0 tag {i}\nr{i} requires r{}\n{}",
            i - 1,
            behind(i)
        ),
    };
    two(&sends, &(0..count).map(receive).collect::<String>())
}

#[test]
fn long_chains_of_receives_pass_on_all_messages() {
    let last = chain(9000, |i| match i {
        8999 => format!("c: calc 1\nc requires r{i}\n"),
        _ => String::new(),
    });
    assert_eq!(read(&last).unwrap().edge_count(), 9000);
    let each = chain(3000, |i| format!("c{i}: calc 1\nc{i} requires r{i}\n"));
    let problem = problem(&each);
    assert!(problem.contains("let a `calc 0` require them"), "{problem}");
}

#[test]
fn circles_are_shown() {
    let goal = two(
        "l1: recv 1b from 1\nl2: send 1b to 1\nl2 requires l1",
        "l3: recv 1b from 0\nl4: send 1b to 0\nl4 requires l3",
    );
    assert_eq!(
        problem(&goal),
        "line 3 (l1 of rank 0): waits for itself, so the plan never ends: line 3 (l1 of rank 0) -> \
         line 9 (l4 of rank 1) -> line 8 (l3 of rank 1) -> line 4 (l2 of rank 0) -> line 3 (l1 of rank 0); \
         remove one of the waits"
    );
    let alone = two("l1: calc 5\nl1 requires l1", "");
    assert!(
        problem(&alone).contains("ends: line 3 (l1 of rank 0) -> line 3 (l1 of rank 0); "),
        "{}",
        problem(&alone)
    );
    let chain: String = (0..20).map(|i| format!("a{i}: calc 1\n")).collect();
    let waits: String = (0..20)
        .map(|i| format!("a{i} requires a{}\n", (i + 1) % 20))
        .collect();
    let long = problem(&two(&(chain + &waits), ""));
    assert!(long.contains("(a11 of rank 0) -> ...; remove"), "{long}");
}

#[test]
fn an_exchange_behind_the_start_of_receives_is_no_circle() {
    let rank = |other: u32| {
        format!("r: recv 1b from {other}\ns: send 1b to {other}\ns irequires r\nc: calc 1\nc requires r")
    };
    assert_eq!(read(&two(&rank(1), &rank(0))).unwrap().ops().len(), 4);
}

#[test]
fn mistakes_name_line_and_cure() {
    let of_rank_0 = |lines: &str| problem(&two(lines, ""));
    for (lines, place, cure) in [
        (
            "send 8b to 1 tag 3",
            "line 3",
            "add `recv 8b from 0 tag 3` to rank 1",
        ),
        (
            "recv 8b from 1",
            "line 3",
            "add `send 8b to 0 tag 0` to rank 1",
        ),
        ("send 0b to 1", "line 3", "the smallest is `1b`"),
        ("send 8b to 0", "line 3", "write `calc` for its time"),
        ("send 8b to 2", "line 3", "there are 0 to 1"),
        ("send 8 to 1", "line 3", "`to` stands where `b` is expected"),
        (
            "send 8b from 1",
            "line 3",
            "`from` stands where `to` is expected",
        ),
        ("recv 8b from -1", "line 3", "name the source"),
        ("recv 8b from 1 tag -1", "line 3", "name the tag"),
        (
            "send 8b to 1 tag 4294967295",
            "line 3",
            "the largest is 4294967294",
        ),
        ("calc 18446744073709551616", "line 3", "64 bits"),
        ("calc 5 cpu 256", "line 3", "the largest is 255"),
        ("calc 5 cpu 1 cpu 1", "line 3", "write it once"),
        ("calc 5 tag 1", "line 3", "leave it out"),
        (
            "calc 5 gpu 1",
            "line 3",
            "`gpu` stands where `tag`, `cpu`, `nic`",
        ),
        (
            "calc",
            "line 3",
            "the end of the line stands where a time in ns is expected",
        ),
        ("l1: calc 1\nl2 requires l1", "line 4", "no operation `l2`"),
        ("l1: calc 1\nl1 requires l3", "line 4", "no operation `l3`"),
        ("l1: calc 1\nl1: calc 2", "line 4", "already, on line 3"),
        ("l1: wait 1", "line 3", "write `send`, `recv` or `calc`"),
        ("l1 calc 1", "line 3", "after `l1`"),
        ("calc 1 }", "line 4", "where `rank` is expected"),
        ("/* calc", "line 3", "close it with `*/`"),
        ("calc 1 §", "line 3", "means nothing in GOAL"),
    ] {
        let problem = of_rank_0(lines);
        assert!(problem.starts_with(place), "{lines}: {problem}");
        assert!(problem.contains(cure), "{lines}: {problem}");
    }
    assert!(problem("num_ranks 2\nrank 0 {\n").contains("the file ends within rank 0"));
    assert!(problem("num_ranks 2\nrank 0 {\n}\n").contains("add `rank 1 { }`"));
    assert!(problem("num_ranks 1\nrank 0 { }\nrank 0 { }").contains("already, on line 2"));
    assert!(problem("num_ranks 0\n").starts_with("line 1: 0 ranks"));
    assert!(problem("num_ranks 4194305\n").contains("1 to 4194304"));
    assert!(problem("num_ranks 4194304\n").contains("rank 0 is missing"));
    assert!(problem(&two("send 9b to 1", "recv 8b from 0")).contains("make the receive as large"));
}

#[test]
fn a_file_is_recognised_behind_comments() {
    assert!(super::lexer::begins(
        "\n// made by hand\n/* twice */ num_ranks 2\n"
    ));
    assert!(!super::lexer::begins("// num_ranks 2\n"));
    assert!(crate::read("num_ranks 1\nrank 0 {\ncalc 1\n}\n").is_ok());
}

/// Messages as (from, to, bytes), ascending; a message without data counts as 1 B.
fn messages(schedule: &Schedule) -> Vec<(u32, u32, u64)> {
    let mut found = Vec::new();
    for op in schedule.ops().iter().filter(|op| op.is_message()) {
        let bytes = schedule.op_bytes(op).max(1);
        found.extend(schedule.targets(op).iter().map(|&to| (op.from, to, bytes)));
        if op.kind == OpKind::Get {
            found.push((op.to, op.from, 1)); // the request
        }
    }
    found.sort_unstable();
    found
}

#[test]
fn every_algorithm_and_pattern_comes_back_with_its_messages() {
    let mut served = 0;
    for ranks in [2, 5, 8] {
        let shape = Shape::new(ranks, 840);
        let algorithms = collectives::REGISTRY.iter().map(|a| (a.build)(&shape));
        let patterns = patterns::REGISTRY
            .iter()
            .map(|p| (p.build)(&patterns::Traffic::new(shape.clone())));
        for schedule in algorithms.chain(patterns).flatten() {
            let text = write(&schedule).unwrap();
            let back = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let sent = messages(&schedule);
            // Barriers and aggregations become messages of their own.
            let replaced = [OpKind::Barrier, OpKind::Aggregate].map(|kind| schedule.has(kind));
            if replaced.contains(&true) || schedule.memories > 0 {
                assert!(messages(&back).len() >= sent.len());
            } else {
                let acknowledged = text.lines().filter(|line| line.starts_with('k')).count();
                assert_eq!(
                    messages(&back).len(),
                    sent.len() + acknowledged / 2,
                    "{text}"
                );
                let mut rest = messages(&back);
                for message in &sent {
                    let place = rest.iter().position(|other| other == message);
                    rest.swap_remove(
                        place.unwrap_or_else(|| panic!("{message:?} is lost\n{text}")),
                    );
                }
            }
            verify(&back).unwrap();
            served += 1;
        }
    }
    assert!(served > 60, "{served}");
}

#[test]
fn what_came_from_goal_comes_back_equal() {
    let goal = two(
        "a: calc 7 cpu 255\nb: send 24b to 1\nb requires a\nc: send 8b to 1 tag 1 cpu 4\nc irequires b\n\
         recv 8b from 1 tag 9",
        "x: recv 24b from 0\ny: recv 8b from 0 tag 1\nz: send 8b to 0 tag 9\nz requires x\nz requires y",
    );
    let schedule = read(&goal).unwrap();
    assert_eq!(read(&write(&schedule).unwrap()).unwrap(), schedule);
}

#[test]
fn what_is_written() {
    let text = "linkwright-schedule 1\nranks 2\nelements 4\nspec allreduce\nbuffer output 1\nbuffer scratch 1\n\
                edges infer\nstep 1\nput 0:output[0] -> 1:scratch[0] replace\nstep 2\n\
                local 1:scratch[0] -> 1:output[0] reduce\nstep 3\nget 1:output[0] -> 0:output[0] replace\nend\n";
    let written = write(&text::parse(text).unwrap()).unwrap();
    let expected = [
        "// allreduce of 16 B over 2 ranks",
        "num_ranks 2",
        "",
        "rank 0 {",
        "s0: send 16b to 1 tag 0",
        "r2: recv 1b from 1 tag 2", // a notice: the sum is there
        "q3: send 1b to 1 tag 3",
        "q3 requires s0",
        "q3 requires r2",
        "q3 irequires s0",
        "r3: recv 16b from 1 tag 3",
        "}",
        "",
        "rank 1 {",
        "r0: recv 16b from 0 tag 0",
        "c1: calc 0 cpu 255",
        "c1 requires r0",
        "s2: send 1b to 0 tag 2",
        "s2 requires c1",
        "a3: recv 1b from 0 tag 3",
        "s3: send 16b to 0 tag 3 cpu 254",
        "s3 requires a3",
        "}",
    ];
    assert_eq!(written.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn fences_wait_for_acknowledgements() {
    let text = "linkwright-schedule 1\nranks 2\nelements 4\nspec pattern\nbuffer output 2\nedges given\nstep 1\n\
                t0 put 0:output[0] -> 1:output[0] replace src_after=- dst_after=-\nstep 2\n\
                t1 fence 0 after=-\nstep 3\nt2 compute 0 work=5 lane=3 after=-\nend\n";
    let written = write(&text::parse(text).unwrap()).unwrap();
    let of_rank_0: Vec<&str> = written
        .split("rank 1 {")
        .next()
        .unwrap()
        .lines()
        .skip(4)
        .collect();
    let expected = [
        "s0: send 8b to 1 tag 0",
        "g0: recv 1b from 1 tag 0",
        "f1: calc 0",
        "f1 requires s0",
        "f1 requires g0",
        "c2: calc 5 cpu 3",
        "c2 requires f1",
        "}",
        "",
    ];
    assert_eq!(of_rank_0, expected);
    assert!(
        written.contains("k0: send 1b to 0 tag 0 cpu 255\nk0 requires r0\n"),
        "{written}"
    );
    assert_eq!(read(&written).unwrap().ops().len(), 4);
}
