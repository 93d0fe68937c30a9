//! Names of the links: every segment of every ring, every port, the command network.

use super::config::RingConfig;
use super::rings::Rings;

/// Rings by segment, ports, the command network.
pub(super) fn names(config: &RingConfig, rings: &Rings) -> Vec<String> {
    let elements = &config.elements;
    let mut names = Vec::new();
    for ring in 0..rings.len() {
        for (segment, a) in elements.iter().enumerate() {
            let b = &elements[(segment + 1) % elements.len()];
            names.push(match rings.is_clockwise(ring) {
                true => format!("ring {ring} {a} to {b}"),
                false => format!("ring {ring} {b} to {a}"),
            });
        }
    }
    for element in elements {
        names.push(format!("{element} out"));
        names.push(format!("{element} in"));
    }
    names.push("command network".to_string());
    names
}
