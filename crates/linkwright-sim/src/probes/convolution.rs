//! Layers of networks, by the model that the machine file names; see [`super::compute`].

use super::compute::{self, Compute, Product};
use super::ModelProbe;
use linkwright_core::probes::{layer_of, CONVOLUTION};

/// Registry entry.
pub static PROBE: ModelProbe = ModelProbe {
    about: &CONVOLUTION,
    check: |machine| Compute::read(machine, &CONVOLUTION).map(|_| ()),
    answer: |machine, asked| {
        let layer = layer_of(asked.word("layer")).expect("the axis names layers only");
        let batch = asked.number("batch");
        compute::answer(machine, asked, |precision| {
            Product::convolution(layer, batch, precision)
        })
    },
};
