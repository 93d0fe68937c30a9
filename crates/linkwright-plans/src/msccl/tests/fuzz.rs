//! Thousands of damaged plans: none makes the reader panic or takes long, and what is accepted is verified.

use super::halves;
use crate::msccl::{read, recognises, write};
use linkwright_schedule::builder::Shape;
use linkwright_schedule::{collectives, verify};
use std::time::{Duration, Instant};

/// Longest time that one file may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Numbers that a program may stumble over.
const NUMBERS: [&str; 14] = [
    "-1",
    "0",
    "1",
    "2",
    "7",
    "255",
    "256",
    "65535",
    "65536",
    "1000000",
    "4194304",
    "4294967295",
    "-9223372036854775808",
    "99999999999999999999999",
];
/// Texts that have no place in a plan.
const TEXTS: [&str; 8] = [
    "<!DOCTYPE a [<!ENTITY b \"bbbbbbbb\">]>",
    "&b;",
    "<gpu id=\"0\">",
    "</tb>",
    "<linkwright>",
    "<!--",
    "\"",
    "\u{0}",
];

/// A generator of numbers; the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end.max(1)
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

/// Plans to damage.
fn plans() -> Vec<String> {
    let keys = [
        "allreduce/ring",
        "alltoall/bruck",
        "allgather/recursive_doubling",
        "reduce/binomial",
    ];
    let written = keys.iter().map(|key| {
        let schedule = collectives::build(key, &Shape::new(4, 16)).unwrap();
        write(&schedule).unwrap()
    });
    let foreign: Vec<String> = written.clone().map(|text| stripped(&text)).collect();
    written.chain(foreign).chain([halves()]).collect()
}

/// The same plan as another tool would write it: nothing is kept of the schedule.
pub(super) fn stripped(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.contains("linkwright>") && !line.contains("<buffer"));
    let plain = |line: &str| match line.split_once(" op=\"") {
        Some((step, _)) => format!("{step}/>\n"),
        None => format!("{line}\n"),
    };
    lines.map(plain).collect()
}

/// Damage a plan in one way.
fn damaged(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    if lines.is_empty() {
        return random.of(&TEXTS).to_string();
    }
    let (a, b) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(8) {
        0 => lines.swap(a, b),
        1 => lines.insert(b, lines[a].clone()),
        2 => drop(lines.remove(a)),
        3 => lines[a] = value_replaced(&lines[a], random, None),
        4 => lines[a].insert_str(0, random.of(&TEXTS)),
        5 => {
            let other = lines[b].clone();
            lines[a] = value_replaced(&lines[a], random, Some(&other));
        }
        6 => lines.truncate(a),
        _ => lines.insert(a, "<step>".repeat(random.below(1000))),
    }
    lines.join("\n")
}

/// A line with the value of one attribute replaced by a number, or by a value of another line.
fn value_replaced(line: &str, random: &mut Random, other: Option<&str>) -> String {
    let mut parts: Vec<&str> = line.split('"').collect();
    let values: Vec<usize> = (1..parts.len()).step_by(2).collect();
    if values.is_empty() {
        return line.to_string();
    }
    let others: Vec<&str> = other.map_or(Vec::new(), |other| {
        other.split('"').skip(1).step_by(2).collect()
    });
    parts[values[random.below(values.len())]] = match others.is_empty() {
        true => random.of(&NUMBERS),
        false => others[random.below(others.len())],
    };
    parts.join("\"")
}

fn fuzz(mutants: usize) {
    let (plans, mut random) = (plans(), Random(17));
    for plan in &plans {
        read(plan).unwrap();
    }
    let mut accepted = 0;
    for k in 0..mutants {
        let mut text = plans[k % plans.len()].clone();
        for _ in 0..=random.below(3) {
            text = damaged(&text, &mut random);
        }
        recognises(&text);
        let start = Instant::now();
        if let Ok(schedule) = read(&text) {
            verify(&schedule).unwrap();
            accepted += 1;
        }
        assert!(
            start.elapsed() < PATIENCE,
            "took {:?}:\n{text}",
            start.elapsed()
        );
    }
    assert!(
        accepted > 0 && accepted < mutants / 2,
        "{accepted} of {mutants}"
    );
}

#[test]
fn damaged_plans_are_refused_in_time() {
    fuzz(4_000);
}

#[test]
#[ignore = "a minute; the same with more mutants"]
fn many_damaged_plans_are_refused_in_time() {
    fuzz(100_000);
}
