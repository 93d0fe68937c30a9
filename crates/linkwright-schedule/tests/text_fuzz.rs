//! Schedule files of strangers: every mutant is a schedule or a message, soon and without a panic.
//!
//! A mutant that reads is verified, printed and transformed too. `LINKWRIGHT_MUTANTS` asks for more of them.

use linkwright_schedule::collectives::{build, REGISTRY};
use linkwright_schedule::ir::Schedule;
use linkwright_schedule::transforms::{self, repeat};
use linkwright_schedule::{text, verify, Shape};
use std::time::{Duration, Instant};

/// Numbers at which something may wrap, words of other places, and nothing.
const WORDS: [&str; 24] = [
    "0",
    "1",
    "2",
    "127",
    "255",
    "256",
    "65535",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "-1",
    "1e308",
    "",
    "step",
    "end",
    "s0",
    "t0",
    "reduce",
    "0:output[0..4294967295]",
    "0:output[0,1]",
    "after=t1",
    "lane=255",
    "slices=4294967295",
]; // fmt: keep

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

/// One to four changes of lines, words and characters.
fn mutant(original: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = original.lines().map(String::from).collect();
    for _ in 0..=random.below(4) {
        let (line, other) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(8) {
            0 => lines.swap(line, other),
            1 => lines.insert(other, lines[line].clone()),
            2 if lines.len() > 1 => {
                lines.remove(line);
            }
            3 => lines.truncate(line + 1),
            4 => {
                let at = random.below(lines[line].len() + 1);
                if lines[line].is_char_boundary(at) {
                    lines[line].truncate(at);
                }
            }
            5 => lines[line] = number_changed(&lines[line], random),
            _ => lines[line] = word_changed(&lines[line], random),
        }
    }
    lines.join("\n")
}

fn word_changed(line: &str, random: &mut Random) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    let at = random.below(words.len());
    words[at] = WORDS[random.below(WORDS.len())];
    words.join(" ")
}

/// One run of digits becomes another number.
fn number_changed(line: &str, random: &mut Random) -> String {
    let is_start = |&(i, c): &(usize, char)| {
        c.is_ascii_digit() && !line[..i].ends_with(|before: char| before.is_ascii_digit())
    };
    let starts: Vec<usize> = line
        .char_indices()
        .filter(is_start)
        .map(|(i, _)| i)
        .collect();
    if starts.is_empty() {
        return line.to_string();
    }
    let start = starts[random.below(starts.len())];
    let digits = line[start..]
        .chars()
        .take_while(char::is_ascii_digit)
        .count();
    let number = WORDS[random.below(11)];
    format!("{}{number}{}", &line[..start], &line[start + digits..])
}

/// Everything that is done with the schedule of a stranger.
fn used(schedule: &Schedule) {
    let verified = verify(schedule).is_ok();
    let printed = text::print(schedule);
    let again = text::parse(&printed).expect("what was read and printed can be read");
    assert_eq!(verify(&again).is_ok(), verified, "{printed}");
    for transform in [transforms::unfuse, |s: &Schedule| {
        transforms::pipeline(s, 2)
    }] {
        match transform(schedule) {
            Ok(made) => {
                let proof = verify(&made).map(|_| ()).map_err(|error| error.to_string());
                assert!(!verified || proof.is_ok(), "{proof:?}\n{printed}");
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    if let Ok(made) = repeat(schedule, 2) {
        assert!(!verified || verify(&made).is_ok(), "{printed}");
    }
}

fn originals() -> Vec<String> {
    let shapes = [Shape::new(2, 8), Shape::new(4, 16), Shape::new(5, 23)];
    let keys = REGISTRY.iter().map(|algorithm| algorithm.key());
    let pairs = keys.flat_map(|key| shapes.clone().map(|shape| (key.clone(), shape)));
    let built = pairs.filter_map(|(key, shape)| build(&key, &shape).ok());
    built.map(|schedule| text::print(&schedule)).collect()
}

#[test]
fn every_mutant_is_read_or_refused() {
    let wanted = std::env::var("LINKWRIGHT_MUTANTS").ok();
    let count = wanted.map_or(20_000, |n| {
        n.parse().expect("LINKWRIGHT_MUTANTS is a number")
    });
    let originals = originals();
    let mut random = Random(1);
    let mut read = 0;
    for _ in 0..count {
        let text = mutant(&originals[random.below(originals.len())], &mut random);
        let start = Instant::now();
        match text::parse(&text) {
            Ok(schedule) => {
                read += 1;
                used(&schedule);
            }
            Err(error) => assert!(error.to_string().len() < 2000, "{error}"),
        }
        assert!(start.elapsed() < Duration::from_secs(5), "{text}");
    }
    // Neither are all refused at the door, nor do mutants change nothing.
    assert!(read > count / 100 && read < count, "{read} of {count}");
}
