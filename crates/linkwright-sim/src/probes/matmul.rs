//! Matrix products, by the model that the machine file names; see [`super::compute`].

use super::compute::{self, Compute, Product};
use super::ModelProbe;
use linkwright_core::probes::MATMUL;

/// Registry entry.
pub static PROBE: ModelProbe = ModelProbe {
    about: &MATMUL,
    check: |machine| Compute::read(machine, &MATMUL).map(|_| ()),
    answer: |machine, asked| {
        let n = asked.number("n");
        compute::answer(machine, asked, |precision| Product::matmul(n, precision))
    },
};
