//! The catalogue of probes: questions about a machine that a schedule cannot ask.
//!
//! A schedule says which bytes go between ranks. How long a load takes, how fast one core reads its own
//! memory, what a system call costs: each such question is a *probe*, described once here and answered
//! twice: by measuring (`linkwright-exec/src/probes`) and from the parameters of a described machine
//! (`linkwright-sim/src/probes`), with the same axes and metrics:
//!
//! ```text
//!   Description: axes ---------> Assignment: one value for each axis
//!                metrics            |                        |
//!                            exec: samples in ns      sim: one time in ps      + bytes, columns
//!                                   '----------- metrics -----------'
//! ```
//!
//! An answer is always the *time of one operation* (a load, a pass over a block, a round trip); a rate
//! follows from it and from the bytes of one operation, *counted* (what the program asked for) or *moved*
//! (including what travels besides: a line fetched because it is written). A metric that does not follow
//! from a time is a column of its own.
//!
//! A probe that only Python can measure, because it uses a Python library, is described here too if it
//! has a model; otherwise it may be described in Python.

mod catalogue;
mod convolution;
mod description;
mod value;

pub use catalogue::*;
pub use convolution::{layer_of, Layer, CONVOLUTION, LAYERS};
pub use description::{Axis, AxisKind, Better, Derived, Description, Metric, ProbeError};
pub use value::Assignment;

/// The probe of this name.
pub fn find(key: &str) -> Result<&'static Description, ProbeError> {
    let found = CATALOGUE.iter().find(|probe| probe.key == key);
    found
        .copied()
        .ok_or_else(|| ProbeError::unknown("probe", key, CATALOGUE.iter().map(|probe| probe.key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_probe_describes_itself() {
        let keys: BTreeSet<_> = CATALOGUE.iter().map(|probe| probe.key).collect();
        assert_eq!(keys.len(), CATALOGUE.len());
        for probe in CATALOGUE {
            assert!(std::ptr::eq(find(probe.key).unwrap(), *probe));
            for text in [
                probe.summary,
                probe.description,
                probe.source,
                probe.waived,
                probe.table,
            ] {
                assert!(!text.is_empty(), "{}", probe.key);
            }
            assert!(!probe.metrics.is_empty(), "{}", probe.key);
            let axes: BTreeSet<_> = probe.axes.iter().map(|axis| axis.key).collect();
            assert_eq!(axes.len(), probe.axes.len(), "{}", probe.key);
            if let Some(size) = probe.size_axis {
                assert_eq!(probe.axis(size).unwrap().kind, AxisKind::Bytes);
            }
            // The defaults alone are an assignment.
            Assignment::parse(probe, &[]).unwrap();
        }
    }
}
