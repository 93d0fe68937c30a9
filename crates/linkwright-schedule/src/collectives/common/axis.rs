//! Places of ranks along one axis of a torus.

use crate::builder::Shape;

/// An axis of the torus: ranks `stride` apart are neighbours.
pub struct Axis {
    /// Which side of the grid it is.
    pub number: u8,
    pub side: u32,
    pub stride: u32,
}

/// The axes of the grid of `shape`, the first of neighbouring ranks; without a grid the ranks are one ring.
pub fn axes(shape: &Shape) -> Vec<Axis> {
    let line = [shape.ranks];
    let sides: &[u32] = if shape.grid.is_empty() {
        &line
    } else {
        &shape.grid
    };
    let mut stride = 1;
    let axis = |(number, &side): (u8, &u32)| {
        let axis = Axis {
            number,
            side,
            stride,
        };
        stride *= side;
        axis
    };
    (0..).zip(sides).map(axis).collect()
}

impl Axis {
    /// The place of `rank` along this axis.
    pub fn at(&self, rank: u32) -> u32 {
        rank / self.stride % self.side
    }

    /// `rank` with another place along this axis.
    pub fn moved(&self, rank: u32, place: u32) -> u32 {
        rank - self.at(rank) * self.stride + place % self.side * self.stride
    }
}

/// Places ahead along each axis.
pub type Shift = Vec<u32>;

/// All shifts of the torus but that by nothing.
pub fn shifts(axes: &[Axis]) -> impl Iterator<Item = Shift> + '_ {
    let places: u32 = axes.iter().map(|axis| axis.side).product();
    (1..places).map(|number| axes.iter().map(|axis| axis.at(number)).collect())
}

/// Places that lie between along one axis, the shorter way.
pub fn length(axis: &Axis, shift: u32) -> u32 {
    shift.min(axis.side - shift)
}

/// Places that lie between along all axes.
pub fn distance(axes: &[Axis], shift: &Shift) -> u32 {
    let pairs = axes.iter().zip(shift);
    pairs.map(|(axis, &s)| length(axis, s)).sum()
}

/// The rank that many places ahead of `rank`.
pub fn shifted(axes: &[Axis], rank: u32, shift: &Shift) -> u32 {
    let pairs = axes.iter().zip(shift);
    pairs.fold(rank, |rank, (axis, &s)| axis.moved(rank, axis.at(rank) + s))
}
