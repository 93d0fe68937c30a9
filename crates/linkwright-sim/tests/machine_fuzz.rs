//! Machine files of strangers: every mutant is a machine or a message, soon and without a panic.
//!
//! A mutant that reads prices a small allreduce and lists its numbers. `LINKWRIGHT_MUTANTS` asks for more of them.

use linkwright_core::machine::Grid;
use linkwright_core::Machine;
use linkwright_schedule::collectives::build;
use linkwright_schedule::Shape;
use linkwright_sim::placement::Placement;
use linkwright_sim::{ask, lowered, How};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Numbers at which something may wrap or run out, and words that stand elsewhere.
const WORDS: [&str; 26] = [
    "0",
    "1",
    "2",
    "3",
    "0.5",
    "1e-30",
    "1e30",
    "127",
    "255",
    "256",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "1e308",
    "-1",
    "nan",
    "true",
    "\"any\"",
    "\"ns\"",
    "\"count\"",
    "[]",
    "{}",
    "\"\"",
];

/// The generator of the mutants: seeded, so that a failure can be seen again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % bound.max(1) as u64) as usize
    }
}

/// One to three changes: of a line, or of what stands behind an equals sign.
fn mutant(original: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = original.lines().map(String::from).collect();
    for _ in 0..=random.below(3) {
        let (line, other) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(10) {
            0 => lines.swap(line, other),
            1 => lines.insert(other, lines[line].clone()),
            2 if lines.len() > 1 => {
                lines.remove(line);
            }
            3 if random.below(10) == 0 => lines.truncate(line + 1),
            _ => lines[line] = value_changed(&lines[line], random),
        }
    }
    lines.join("\n")
}

/// The value behind one equals sign becomes another.
fn value_changed(line: &str, random: &mut Random) -> String {
    let signs: Vec<usize> = line.match_indices("= ").map(|(at, _)| at + 2).collect();
    if signs.is_empty() {
        return line.to_string();
    }
    // The first sign of a number's table opens it; the second stands before its value.
    let start = signs[random.below(signs.len().min(3))];
    let end = line[start..]
        .find([',', '}'])
        .map_or(line.len(), |at| start + at);
    let word = WORDS[random.below(WORDS.len())];
    format!("{}{word}{}", &line[..start], &line[end..])
}

/// Everything that is done with the machine of a stranger.
fn used(machine: &Machine) {
    assert!(machine.numbers().len() < 10_000);
    let Some(sized) = sized(machine) else {
        return;
    };
    let ranks = sized.ranks().min(4) as u32;
    let Ok(built) = build("allreduce/ring", &Shape::new(ranks, 64)) else {
        return;
    };
    for path in [None, sized.paths().first().map(|path| path.name.clone())] {
        let Ok(lower) = lowered(&built, &sized, path.as_deref(), &Placement::Identity) else {
            continue;
        };
        let options = How {
            noise: path.is_none(),
            path,
            ..How::default()
        };
        if let Err(error) = ask(&sized, lower.as_ref().unwrap_or(&built), &options) {
            assert!(error.to_string().len() < 3000, "{error}");
        }
    }
}

fn sized(machine: &Machine) -> Option<Machine> {
    match machine.open_size() {
        Some(_) => (machine
            .with_grid(Grid::new(2, 2))
            .or_else(|_| machine.with_endpoints(4)))
        .ok(),
        None => Some(machine.clone()),
    }
}

fn shipped() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/linkwright/machines");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect()
}

/// The lines of a mutant that its original lacks.
fn changes(original: &str, mutant: &str) -> String {
    let known: BTreeSet<&str> = original.lines().collect();
    let new: Vec<&str> = mutant
        .lines()
        .filter(|line| !known.contains(line))
        .collect();
    format!(
        "{}\n{}",
        original.lines().next().unwrap_or_default(),
        new.join("\n")
    )
}

#[test]
fn every_mutant_is_a_machine_or_a_message() {
    let wanted = std::env::var("LINKWRIGHT_MUTANTS").ok();
    let count: usize = wanted.map_or(1_500, |n| {
        n.parse().expect("LINKWRIGHT_MUTANTS is a number")
    });
    let originals = shipped();
    let mut random = Random(1);
    let mut read = 0;
    for _ in 0..count {
        let original = &originals[random.below(originals.len())];
        let text = mutant(original, &mut random);
        let start = Instant::now();
        match Machine::parse(&text, "mutant.toml") {
            Ok(machine) => {
                read += 1;
                used(&machine);
            }
            Err(error) => assert!(error.to_string().len() < 3000, "{error}"),
        }
        let took = start.elapsed();
        assert!(
            took < Duration::from_secs(30),
            "{took:?}: {}",
            changes(original, &text)
        );
    }
    // Neither are all refused at the door, nor do mutants change nothing.
    assert!(read > count / 20 && read < count, "{read} of {count}");
}
