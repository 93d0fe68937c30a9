//! Printing and reading are inverse; every mistake is named with its line.

use super::{parse, print, VERSION_LINE};
use crate::builder::Shape;
use crate::collectives::{find, REGISTRY};
use crate::ir::{Edge, OpKind};
use crate::verify;

const HEADER: &str =
    "linkwright-schedule 1\nranks 3\nelements 12\nspec allreduce\nbuffer output 3\n";

/// An allreduce over three ranks without edges: reduce to rank 0, then back.
fn inferred(operations: &str) -> String {
    format!("{HEADER}edges infer\n{operations}end\n")
}

fn given(operations: &str) -> String {
    format!("{HEADER}edges given\n{operations}end\n")
}

fn problem(text: &str) -> String {
    parse(text).expect_err("the text is wrong").to_string()
}

#[test]
fn every_algorithm_is_read_back_exactly() {
    for algorithm in REGISTRY {
        for p in [1, 2, 3, 4, 6, 8, 9, 16] {
            let grid = [(4, 4), (2, 4), (3, 3), (2, 2)]
                .into_iter()
                .find(|g| g.0 * g.1 == p);
            let flat = Shape::new(p, 100).with_root(p - 1);
            let shapes = [Some(flat.clone()), grid.map(|g| flat.with_grid(g.0, g.1))];
            for shape in shapes.into_iter().flatten() {
                let Ok(schedule) = (algorithm.build)(&shape) else {
                    continue;
                };
                let text = print(&schedule);
                let back =
                    parse(&text).unwrap_or_else(|e| panic!("{}: {e}\n{text}", algorithm.key()));
                assert_eq!(back, schedule, "{} p={p}", algorithm.key());
            }
        }
    }
}

#[test]
fn edges_are_inferred() {
    let text = inferred(
        "step 1\nput 1:output[0..3] -> 0:output[0..3] sum  # rank 1 first\nstep 2\n\
         t1 get 2:output[0..3] -> 0:output[0..3] reduce\nstep 3\n\
         put 0:output[0..3] -> 1:output[0..3] replace\n\n\
         put 0:output[0..3] -> 2:output[0..3] replace lane=1 hint=-x\n",
    );
    let schedule = parse(&text).unwrap();
    verify(&schedule).unwrap();
    assert_eq!(parse(&print(&schedule)).unwrap(), schedule);
    // An exchange reads the state before the step, so it goes through scratch.
    let text = "linkwright-schedule 1\nranks 2\nelements 12\nspec allreduce\nbuffer output 1\n\
                edges infer\nstep 1\nput 0:output[0] -> 1:output[0] sum\n\
                put 1:output[0] -> 0:output[0] sum\nend\n";
    let schedule = parse(text).unwrap();
    verify(&schedule).unwrap();
    assert_eq!(schedule.buffers.len(), 2);
}

#[test]
fn waits_at_the_other_side_become_notices() {
    // Rank 1 must have sent its vector on before rank 0 overwrites it.
    let text = given(
        "step 1\nt0 put 1:output[0] -> 0:output[0] reduce src_after=-\n\
         t1 put 2:output[0] -> 0:output[0] reduce dst_after=t0\n\
         t2 put 0:output[0] -> 1:output[0] replace src_after=t0,t1 dst_after=t0\n",
    );
    let schedule = parse(&text).unwrap();
    let kinds: Vec<OpKind> = schedule.ops().iter().map(|op| op.kind).collect();
    use OpKind::{Notice, Put};
    assert_eq!(kinds, [Put, Notice, Put, Notice, Put]);
    // t0 is seen by rank 0, which tells rank 2.
    let notice = schedule.ops()[1];
    assert_eq!((notice.from, notice.to), (0, 2));
    assert_eq!(schedule.after(1), [Edge::on(0)]);
    assert_eq!(schedule.after(2), [Edge::on(1)]);
    assert_eq!(schedule.after(4), [Edge::on(0), Edge::on(2), Edge::on(3)]);
}

#[test]
fn lists_of_ranges_are_kept() {
    let text = given(
        "step 1\nt0 put 0:output[0..1,2] -> 1:output[0,2..3] replace\n\
         t1 put 0:output[1..2,] -> 1:output[1,] replace\nt2 put 0:output[3..3] -> 1:output[0..0] \
         replace\n",
    );
    let schedule = parse(&text).unwrap();
    assert_eq!(schedule.ranges, [(0, 0, 1), (2, 2, 1), (1, 1, 1)]);
    assert!(print(&schedule).contains("t1 put 0:output[1,] -> 1:output[1,] replace"));
    assert_eq!(parse(&print(&schedule)).unwrap(), schedule);
}

#[test]
fn half_a_file_is_no_schedule() {
    let schedule = (REGISTRY[0].build)(&Shape::new(4, 16)).unwrap();
    let text = print(&schedule);
    for cut in 0..text.len() - 1 {
        assert!(
            parse(&text[..cut]).is_err(),
            "cut at {cut}: {}",
            &text[..cut]
        );
    }
    // Only the last newline may be missing.
    parse(&text[..text.len() - 1]).unwrap();
}

#[test]
fn mistakes_are_named_with_their_line() {
    let cases = [
        (
            String::new(),
            "line 1: the file is empty; begin with `linkwright-schedule 1`",
        ),
        (
            "{}".into(),
            "line 1: `{}` is no schedule; this program reads files that begin with",
        ),
        (
            "linkwright-schedule 2\n".into(),
            "line 1: version `2` is unknown; this program reads",
        ),
        (
            format!("{VERSION_LINE}\nrank 3\n"),
            "line 2: `rank` is no line of the header",
        ),
        (
            format!("{VERSION_LINE}\nranks 3\nranks 3\n"),
            "line 3: `ranks` a second time",
        ),
        (
            format!("{VERSION_LINE}\nranks 0\nelements 1\nspec allreduce\nedges given\nend\n"),
            "line 6: 0 ranks and 0 memories in the header; 1 to",
        ),
        (
            format!("{HEADER}step 1\n"),
            "line 6: the header has no line `edges`; add it above",
        ),
        (
            given("step 1\nt0 pot 0:output[0] -> 1:output[0] reduce\n"),
            "line 8: no operation called `pot`; known are put",
        ),
        (
            given("step 1\nt0 fence 0\nt0 fence 0\n"),
            "line 9: t0 exists already; ids count up, the next is t1",
        ),
        (
            given("step 1\nt0 fence 0 after=t1\n"),
            "line 8: t0 waits for t1, which is not earlier",
        ),
        (
            given("step 1\nt0 put 0:output[2..4] -> 1:output[0..2] reduce\n"),
            "line 8: `2..4]`: the chunks 2..4 do not exist; `output` has chunks 0..3",
        ),
        (
            given("step 1\nt0 put 0:output[0..2] -> 1:output[0] reduce\n"),
            "line 8: 2 chunks in 1 ranges are sent into 1 in 1; make them equal",
        ),
        (
            given("step 1\nt0 put 0:output[0] -> 3:output[0] reduce\n"),
            "line 8: participant 3 does not exist; there are 3 ranks and 0 memories",
        ),
        (
            given("step 1\nt0 put 0:input[0] -> 1:output[0] reduce\n"),
            "line 8: no buffer called `input[0]`; add it to the header",
        ),
        (
            given("step 1\nt0 fence 0 lane=256\n"),
            "line 8: lane 256 does not exist",
        ),
        (
            given("step 1\nt0 fence 0 lame=2\n"),
            "line 8: `lame=2` is no property of this operation; known are lane=, hint=, fenced, after=",
        ),
        (
            given("step 1\nt0 notice 0 -> 1 fenced lane=1 fenced\n"),
            "line 8: `fenced` stands behind another; leave one",
        ),
        (
            given("step 1\nt0 put 0:output[0] -> 1:output[0] reduce src_after=- src_after=-\n"),
            "line 8: `src_after=-` stands behind another; leave one",
        ),
        (
            given("step 99999999999\n"),
            "line 7: `99999999999`, too large for a step number",
        ),
        (
            given("step 1\nt0 barrier 0 s0\n"),
            "line 8: set s0 is not in the header",
        ),
        (
            given(
                "step 1\nt0 put 0:output[0] -> 1:output[0] reduce\n\
                t1 put 2:output[0] -> 1:output[0] reduce src_after=- dst_after=t0!\n",
            ),
            "line 9: rank 1 waits for t0, which it cannot see",
        ),
        (
            inferred("step 1\nt0 fence 0 after=t0\n"),
            "line 8: t0 waits for t0",
        ),
        (
            inferred("step 1\nfence 0\nfence 0 after=t0\n"),
            "line 9: an edge in a file with",
        ),
    ];
    for (text, expected) in cases {
        let found = problem(&text);
        assert!(
            found.starts_with(expected),
            "expected {expected}\nfound    {found}"
        );
    }
}

/// Whatever a file contains, it is read or refused, and what is read is verified or refused.
#[test]
fn damaged_files_do_no_harm() {
    let built = |key: &str, p| print(&(find(key).unwrap().build)(&Shape::new(p, 12)).unwrap());
    let texts = [
        built("allreduce/ring", 3),
        built("allreduce/swing_bandwidth", 8),
        built("allreduce/shared_memory", 3),
        built("broadcast/multicast", 4),
        inferred(
            "step 1\nput 1:output[0..3] -> 0:output[0..3] sum\nstep 2\n\
                  put 0:output[0..2] -> 1:output[1..3] replace\nfence 0\nstep 3\n\
                  get 0:output[2] -> 2:output[2] sum\ncompute 1 work=3\n",
        ),
    ];
    let pieces: [&[u8]; 12] = [
        b"0",
        b"7",
        b"99999999",
        b" ",
        b"\n",
        b"-",
        b",",
        b"..",
        b"t1",
        b"!",
        b"get",
        b"\xc3\xa9",
    ];
    let mut state = 1u64;
    let mut choose = |below: usize| {
        state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut read = 0;
    for round in 0..20_000 {
        let mut bytes = texts[round % texts.len()].clone().into_bytes();
        for _ in 0..1 + choose(3) {
            let at = choose(bytes.len());
            // Another digit mostly leaves a file that can be read.
            if let Some(digit) = bytes[at..].iter_mut().find(|b| b.is_ascii_digit()) {
                *digit = b'0' + choose(10) as u8;
            }
            if choose(4) > 0 {
                continue;
            }
            let end = (at + choose(4)).min(bytes.len());
            bytes.splice(at..end, pieces[choose(pieces.len())].iter().copied());
        }
        if let Ok(schedule) = parse(&String::from_utf8_lossy(&bytes)) {
            read += 1;
            let _ = verify(&schedule);
            assert_eq!(parse(&print(&schedule)).as_ref(), Ok(&schedule));
        }
    }
    assert!(read > 1000, "only {read} files were read");
}
