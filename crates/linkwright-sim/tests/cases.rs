//! Runs the hand-derived cases in `tests/cases/*.toml`: machine, schedule, expected times.
//!
//! A case is `ranks`, `bytes` (of everyone's vector), `steps` (each a list of `put FROM TO`,
//! `get FROM TO`, `multicast FROM TO,TO`, `aggregate FROM,FROM TO,TO`, or `barrier`), optionally `issue`,
//! `late = { rank, by_ns }`, `sharing` and `sends`, and `finish_ns` of every rank. The whole vector moves, or part k of its
//! `parts` with `part=k`; `reduce` combines. `link_bytes` is what some links carry. A comment has the derivation.

use linkwright_core::{Machine, Skew, TimePs};
use linkwright_schedule::builder::{Builder, Shape};
use linkwright_schedule::{Buffer, Collective, Schedule};
use linkwright_sim::placement::Placement;
use linkwright_sim::run::lowered;
use linkwright_sim::{ask, How};
use std::fs;
use std::path::PathBuf;
use toml::{Table, Value};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases")
}

fn integer(table: &Table, key: &str) -> u64 {
    let value = table.get(key).and_then(Value::as_integer);
    value.unwrap_or_else(|| panic!("{key} is missing")) as u64
}

fn list<'a>(value: &'a Value, what: &str) -> &'a [Value] {
    value
        .as_array()
        .unwrap_or_else(|| panic!("{what} is not a list"))
}

fn schedule(case: &Table) -> Schedule {
    let ranks = integer(case, "ranks") as u32;
    let mut shape = Shape::new(ranks, integer(case, "bytes"));
    shape.element_bytes = 1;
    let mut b = Builder::new(Collective::Pattern, &shape);
    let parts = case.get("parts").map_or(1, |_| integer(case, "parts")) as u32;
    let output = b.buffer(Buffer::vector("output", parts));
    for step in list(&case["steps"], "steps") {
        b.step();
        for line in list(step, "a step") {
            let words: Vec<&str> = line.as_str().expect("a text").split(' ').collect();
            let rank = |i: usize| words[i].parse::<u32>().expect("a rank");
            let set = |i: usize| -> Vec<u32> {
                let ranks = words[i].split(',');
                ranks.map(|r| r.parse().expect("a rank")).collect()
            };
            let part = words.iter().find_map(|word| word.strip_prefix("part="));
            let data = match part {
                Some(part) => output.at(part.parse().expect("a part")),
                None => output.range(0..parts),
            };
            let written = match words[0] {
                "put" => b.put(rank(1), data, rank(2), data),
                "get" => b.get(rank(1), data, rank(2), data),
                "multicast" => b.multicast(rank(1), data, &set(2), data),
                "aggregate" => b.aggregate(&set(1), data, &set(2), data),
                "barrier" => {
                    b.barrier(&(0..ranks).collect::<Vec<_>>());
                    continue;
                }
                other => panic!("unknown operation {other}"),
            };
            match words[3..].iter().find(|word| !word.starts_with("part=")) {
                Some(&"reduce") => drop(written.reduce()),
                Some(other) => panic!("unknown option {other}"),
                None => {}
            }
        }
    }
    b.finish().expect("a schedule")
}

fn options(case: &Table) -> How {
    let issue = case
        .get("issue")
        .and_then(Value::as_str)
        .unwrap_or("blocking");
    let late = case.get("late").and_then(Value::as_table);
    How {
        issue: issue.parse().unwrap_or_else(|e| panic!("{e}")),
        skew: late.map_or(Skew::None, |late| Skew::Late {
            rank: integer(late, "rank") as u32,
            by: TimePs::from_ns(integer(late, "by_ns")),
        }),
        sends: case.get("sends").and_then(Value::as_float),
        ..How::default()
    }
}

#[test]
fn all_cases() {
    let (mut count, mut wrong) = (0, Vec::<String>::new());
    let files = fs::read_dir(folder()).expect("the folder of cases");
    let mut files: Vec<PathBuf> = files.map(|f| f.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let table: Table = text
            .parse()
            .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let machine = format!(
            "machines/{}.toml",
            table["machine"].as_str().expect("a name")
        );
        let text = fs::read_to_string(folder().join(&machine)).unwrap();
        for case in list(&table["case"], "case") {
            let case = case.as_table().expect("a case");
            let name = format!("{}: {:?}", file.display(), case["name"].as_str());
            let sharing = case
                .get("sharing")
                .and_then(Value::as_str)
                .map(|s| format!("[fabric]\nsharing = \"{s}\""));
            let text = text.replace("[fabric]", sharing.as_deref().unwrap_or("[fabric]"));
            let machine = Machine::parse(&text, &machine).unwrap_or_else(|e| panic!("{e}"));
            let written = schedule(case);
            let lower = lowered(&written, &machine, None, &Placement::Identity)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            let result = ask(&machine, lower.as_ref().unwrap_or(&written), &options(case));
            let result = result.unwrap_or_else(|e| panic!("{name}: {e}"));
            for (link, bytes) in case
                .get("link_bytes")
                .and_then(Value::as_table)
                .into_iter()
                .flatten()
            {
                let links = &result.simulation.links;
                let at = links.names.iter().position(|name| name == link);
                let carried = links.bytes[at.unwrap_or_else(|| panic!("{name}: no link {link}"))];
                if Some(carried as i64) != bytes.as_integer() {
                    wrong.push(format!("{name}: {link} carries {carried}"));
                }
            }
            let expected = list(&case["finish_ns"], "finish_ns").iter();
            let expected = expected.map(|v| v.as_integer().expect("a time") as u64 * 1000);
            let expected: Vec<u64> = expected.collect();
            if result.simulation.finish != expected {
                wrong.push(format!("{name}: {:?}", result.simulation.finish));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 55, "{count} cases");
}
