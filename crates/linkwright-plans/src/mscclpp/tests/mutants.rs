//! Damaged files: each is refused or gives a schedule that is proved, soon and without a panic.

use super::round_trips::built_in;
use super::*;
use linkwright_schedule::verify;
use std::time::{Duration, Instant};

/// Longest time for one file.
const PATIENCE: Duration = Duration::from_secs(2);

/// A small generator of random numbers (Knuth's constants).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % end.max(1)
    }
}

fn originals() -> Vec<Value> {
    let keep = [
        "allreduce/ring",
        "alltoall/direct",
        "reduce_scatter/recursive_halving",
        "gather/binomial",
    ];
    let written = built_in(4)
        .into_iter()
        .filter(|(a, _)| keep.contains(&a.key().as_str()));
    let texts = written.map(|(_, schedule)| (FORMAT.write)(&schedule).unwrap());
    let mut values: Vec<Value> = texts
        .map(|text| serde_json::from_str(&text).unwrap())
        .collect();
    values.push(gather());
    let mut foreign = values[0].clone();
    foreign.as_object_mut().unwrap().remove("linkwright");
    values.push(foreign);
    values
}

/// All values inside `value`, depth first, counted; the `at`-th is changed.
fn change(value: &mut Value, at: &mut usize, how: &mut dyn FnMut(&mut Value)) {
    if *at == 0 {
        how(value);
    }
    *at = at.wrapping_sub(1);
    match value {
        Value::Array(list) => list.iter_mut().for_each(|inner| change(inner, at, how)),
        Value::Object(map) => map.values_mut().for_each(|inner| change(inner, at, how)),
        _ => {}
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum::<usize>(),
        _ => 0,
    }
}

fn other(value: &Value, random: &mut Random) -> Value {
    let numbers = [0, 1, 2, 3, 255, 256, 65_536, u64::from(u32::MAX), u64::MAX];
    match (value, random.below(4)) {
        (Value::Number(_), 0) => json!(-1),
        (Value::Number(_), 1) => json!(0.5),
        (Value::Number(_), _) => json!(numbers[random.below(numbers.len())]),
        (Value::String(_), 0) => json!("switch"),
        (Value::String(_), _) => json!(
            ["put", "get", "wait", "signal", "nop", "re", "ppkt", "upkt", "i", "s", "port"]
                [random.below(11)]
        ),
        (Value::Bool(known), _) => json!(!known),
        (Value::Array(list), which) => {
            let mut list = list.clone();
            let (a, b) = (random.below(list.len()), random.below(list.len()));
            match which {
                _ if list.is_empty() => list.push(json!({})),
                0 => drop(list.remove(a)),
                1 => list.push(list[a].clone()),
                _ => list.swap(a, b),
            }
            json!(list)
        }
        (_, 0) => Value::Null,
        (_, 1) => json!({}),
        _ => json!([[[]]]),
    }
}

fn mutant(value: &Value, random: &mut Random) -> String {
    let mut value = value.clone();
    for _ in 0..1 + random.below(3) {
        let mut at = random.below(count(&value));
        change(&mut value, &mut at, &mut |inner| {
            *inner = other(inner, random)
        });
    }
    let mut text = value.to_string();
    let at = random.below(text.len());
    match random.below(8) {
        0 => text.truncate(at),
        1 => text = text.replacen("\"size\":1", "\"size\":1,\"size\":2", 1),
        2 => text.insert_str(at, &"[".repeat(300)),
        3 => drop(text.drain(at..text.len().min(at + 20))),
        _ => {}
    }
    text
}

fn all(mutants: usize) {
    let (originals, mut random, mut read_well) = (originals(), Random(17), 0);
    for original in &originals {
        accepted(original);
    }
    for _ in 0..mutants {
        let text = mutant(&originals[random.below(originals.len())], &mut random);
        let start = Instant::now();
        if let Ok(schedule) = read(&text) {
            verify(&schedule).unwrap();
            read_well += 1;
        }
        assert!(start.elapsed() < PATIENCE, "{text}");
    }
    // Some changes mean nothing, such as another name.
    assert!(
        read_well > mutants / 200 && read_well < mutants / 2,
        "{read_well} of {mutants}"
    );
}

#[test]
fn damaged_plans() {
    all(3000);
}

#[test]
#[ignore = "takes a minute"]
fn many_damaged_plans() {
    all(100_000);
}
