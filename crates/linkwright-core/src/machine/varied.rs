//! The machine as it may be just as well: every rate and time of its fabric drawn again.
//!
//! A machine file states its numbers to three digits; the machine itself is off by some per cent, by link and by day. A
//! comparison that holds only for the stated digits says little, so it is repeated on machines like
//!
//! ```text
//!   value' = value * u,   u uniform in [1 - within, 1 + within), one u for each number of [fabric]
//! ```
//!
//! Numbers are drawn independently, because nothing says which of them err together. A list has one number for each of
//! its members. Counts, sizes and shares are structure and stay, as do the software costs of paths: those of both
//! schedules change alike. What was a whole number of cycles stays one, as some fabrics need it.

use super::number::Number;
use super::tree::{self, Node, Value};
use super::unit::{Clocked, Dimension};
use super::Machine;
use crate::error::{At, MachineError};
use crate::random::Random;

impl Machine {
    /// This machine with every rate and time of its fabric drawn again, at most a share of `within` away from what the
    /// file says. An error where the file holds for its own values only; a fabric may refuse others too.
    pub fn varied(&self, within: f64, random: &mut Random) -> Result<Machine, MachineError> {
        let mut changed = self.tree.clone();
        let at = At {
            file: self.file().to_string(),
            line: 0,
            key: "fabric".to_string(),
        };
        let fabric = changed.entries.iter_mut().find(|(key, _)| key == "fabric");
        if let Some((_, node)) = fabric {
            vary(node, &at, &mut || 1.0 + within * (2.0 * unit(random) - 1.0))?;
        }
        self.changed(changed)
    }
}

/// A number in [0, 1).
fn unit(random: &mut Random) -> f64 {
    const STEPS: u64 = 1 << 53;
    random.below(STEPS) as f64 / STEPS as f64
}

/// Multiply what is a rate or a time below `node` by factors of their own.
fn vary(node: &mut Node, at: &At, factor: &mut dyn FnMut() -> f64) -> Result<(), MachineError> {
    match &mut node.value {
        Value::Table(table) => {
            let below = |key: &str| At {
                key: format!("{}.{key}", at.key),
                ..at.clone()
            };
            let mut entries = table.entries.iter_mut();
            entries.try_for_each(|(key, inner)| vary(inner, &below(key), factor))
        }
        Value::List(items) => items.iter_mut().try_for_each(|item| vary(item, at, factor)),
        Value::Number(number) => match drawn(number, factor) {
            Some(literal) => tree::replace(node, &literal, at),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// A number as a file would write it, multiplied; none of what is neither a rate nor a time.
fn drawn(number: &Number, factor: &mut dyn FnMut() -> f64) -> Option<String> {
    if !matches!(number.unit.dimension, Dimension::Time | Dimension::Rate) {
        return None;
    }
    let in_cycles = number.unit.dimension == Dimension::Time && number.unit.clocked != Clocked::No;
    let mut literals = number.values.iter().map(|value| {
        let drawn = value.to_f64() * factor();
        match in_cycles && value.whole().is_some() {
            true => format!("{drawn:.0}"),
            false => format!("{drawn:.9e}"),
        }
    });
    Some(match number.list {
        true => format!("[{}]", literals.collect::<Vec<_>>().join(", ")),
        false => literals.next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str) -> Machine {
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../python/linkwright/machines"
        );
        let text = std::fs::read_to_string(format!("{folder}/{name}.toml")).unwrap();
        Machine::parse(&text, name).unwrap()
    }

    fn values(machine: &Machine) -> Vec<(String, &'static str, Vec<f64>)> {
        let numbers = |text: &str| -> Vec<f64> {
            let bare = text.trim_matches(['[', ']']).split(", ");
            bare.filter_map(|one| one.parse().ok()).collect()
        };
        let rows = machine.numbers().into_iter();
        rows.map(|row| (row.key, row.unit, numbers(&row.value)))
            .collect()
    }

    #[test]
    fn rates_and_times_of_the_fabric_change_and_nothing_else() {
        for name in ["dgx1-p100", "wormhole-n150", "torus-2d", "loggp"] {
            let machine = machine(name);
            let varied = machine.varied(0.2, &mut Random::new(1)).unwrap();
            let mut changed = 0;
            for ((key, unit, before), (_, _, after)) in
                values(&machine).into_iter().zip(values(&varied))
            {
                for (before, after) in before.into_iter().zip(after) {
                    let moves =
                        key.starts_with("fabric.") && !["count", "B", "ratio"].contains(&unit);
                    assert!(moves || before == after, "{key}: {before} {after}");
                    // A whole number of cycles may be half a cycle off its draw.
                    let room = 0.2 * before + if unit == "cycle" { 0.5 } else { 1e-9 };
                    assert!((after - before).abs() <= room, "{key}: {before} {after}");
                    changed += usize::from(before != after);
                }
            }
            assert!(changed > 1, "{name}");
        }
    }

    #[test]
    fn the_same_stream_gives_the_same_machine_and_goes_on_to_another() {
        let machine = machine("dgx1-p100");
        let mut random = Random::new(7);
        let two = [(); 2].map(|()| values(&machine.varied(0.2, &mut random).unwrap()));
        let again = values(&machine.varied(0.2, &mut Random::new(7)).unwrap());
        assert_eq!(two[0], again);
        assert_ne!(two[0], two[1]);
        let same = machine.varied(0.0, &mut Random::new(7)).unwrap();
        assert_eq!(values(&same), values(&machine));
    }
}
