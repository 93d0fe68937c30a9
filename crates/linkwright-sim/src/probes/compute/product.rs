//! What is computed: a matrix product, or a convolution, which is one with a window.
//!
//! ```text
//!   output[pixel, out] = sum over taps and in:  input[window of pixel, tap, in] x weight[tap, in, out]
//!
//!   convolution   pixels = batch x O^2, O = ceil(input / stride), taps = filter^2
//!   matrix product n x n  pixels = in = out = n, one tap
//! ```
//!
//! Groups are products side by side that share no channel. A flop is an addition or a multiplication; those
//! on padding are not counted.

use linkwright_core::probes::Layer;

/// Width of the operands; sums are always 32 bits wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 16-bit operands.
    Half,
    /// 32-bit operands.
    Single,
}

impl Precision {
    /// Bytes of one operand.
    pub fn bytes(self) -> f64 {
        match self {
            Precision::Half => 2.0,
            Precision::Single => 4.0,
        }
    }
}

/// A product, however it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// Positions of the output, all images together.
    pub pixels: u64,
    /// Positions on a side of one output image.
    pub side: u64,
    /// Positions of the input, all images together.
    pub input_pixels: u64,
    /// Pixels on a side of the window.
    pub filter: u64,
    /// Pixels from one window to the next.
    pub stride: u64,
    /// Input channels of one group.
    pub inner: u64,
    /// Output channels of one group.
    pub outer: u64,
    /// Groups of channels.
    pub groups: u64,
    /// Width of the operands.
    pub precision: Precision,
}

impl Product {
    /// The product of two `n` x `n` matrices.
    pub fn matmul(n: u64, precision: Precision) -> Product {
        Product {
            pixels: n,
            side: n,
            input_pixels: n,
            filter: 1,
            stride: 1,
            inner: n,
            outer: n,
            groups: 1,
            precision,
        }
    }

    /// A layer for a batch of images.
    pub fn convolution(layer: &Layer, batch: u64, precision: Precision) -> Product {
        let side = layer.output();
        Product {
            pixels: batch * side * side,
            side,
            input_pixels: batch * layer.input * layer.input,
            filter: layer.filter,
            stride: layer.stride,
            inner: layer.in_channels / layer.groups,
            outer: layer.out_channels / layer.groups,
            groups: layer.groups,
            precision,
        }
    }

    /// The same with the window as further input channels.
    pub fn spread(&self) -> Product {
        Product {
            input_pixels: self.pixels,
            filter: 1,
            stride: 1,
            inner: self.taps() * self.inner,
            ..*self
        }
    }

    /// Positions of the window.
    pub fn taps(&self) -> u64 {
        self.filter * self.filter
    }

    /// Additions and multiplications, as benchmarks count them.
    pub fn flops(&self) -> f64 {
        2.0 * self.pixels as f64
            * self.taps() as f64
            * self.inner as f64
            * self.outer as f64
            * self.groups as f64
    }

    /// Bytes of input, weights and output, each once.
    pub fn bytes(&self) -> f64 {
        let input = self.input_pixels as f64 * (self.inner * self.groups) as f64;
        let output = self.pixels as f64 * (self.outer * self.groups) as f64;
        let weights = (self.taps() * self.inner) as f64 * (self.outer * self.groups) as f64;
        (input + output + weights) * self.precision.bytes()
    }
}
