//! Mutants of texts: whatever the reader is given, it answers in time and without a panic.

use crate::goal::read;
use proptest::prelude::*;
use std::time::{Duration, Instant};

const TEXT: &str = "// two ranks\nnum_ranks 2\nrank 0 {\nl1: calc 100 cpu 1\nl2: send 8b to 1 tag 7 cpu 0 nic 0\n\
                    l2 requires l1\nl3: recv 64b from 1 tag 0\nl4: calc 0\nl4 irequires l3\n/* between */\n}\n\
                    rank 1 {\nl1: recv 8b from 0 tag 7\nl2: send 64b to 0\nl2 requires l1\n}\n";

const WORDS: [&str; 20] = [
    "send",
    "recv",
    "calc",
    "requires",
    "irequires",
    "rank",
    "num_ranks",
    "tag -1",
    "cpu 255",
    "nic 3",
    "{",
    "}",
    ":",
    "l1",
    "l3",
    "0",
    "18446744073709551615",
    "4194304",
    "/*",
    "\n",
];

/// Replace, repeat, drop or swap words and lines, or cut the text.
fn mutant(changes: &[(u8, usize, usize)]) -> String {
    let mut lines: Vec<Vec<&str>> = TEXT.lines().map(|l| l.split(' ').collect()).collect();
    for &(what, a, b) in changes {
        let (line, other) = (a % lines.len(), b % lines.len());
        let word = b % lines[line].len().max(1);
        match what % 8 {
            0 => lines.swap(line, other),
            1 => lines.insert(other, lines[line].clone()),
            2 if lines.len() > 1 => {
                lines.remove(line);
            }
            3 if !lines[line].is_empty() => lines[line][word] = WORDS[a % WORDS.len()],
            4 => lines[line].insert(word, WORDS[a % WORDS.len()]),
            5 if !lines[line].is_empty() => {
                lines[line].remove(word);
            }
            6 if !lines[line].is_empty() => {
                lines[line].swap_remove(word);
            }
            _ => lines.truncate(line + 1),
        }
    }
    let lines: Vec<String> = lines.into_iter().map(|words| words.join(" ")).collect();
    lines.join("\n")
}

fn check(changes: &[(u8, usize, usize)]) {
    let text = mutant(changes);
    let start = Instant::now();
    if let Err(error) = read(&text) {
        assert!(error.to_string().len() < 1000, "{error}");
    }
    assert!(start.elapsed() < Duration::from_secs(2), "{text}");
}

fn changes() -> impl Strategy<Value = Vec<(u8, usize, usize)>> {
    proptest::collection::vec((any::<u8>(), 0..1000usize, 0..1000usize), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutants_are_read_or_refused(changes in changes()) {
        check(&changes);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9{}:/* \n-]{0,200}") {
        let _ = read(&format!("num_ranks 1\nrank 0 {{\n{text}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[ignore = "25 times as many as by default"]
    fn a_hundred_thousand_mutants_are_read_or_refused(changes in changes()) {
        check(&changes);
    }
}
