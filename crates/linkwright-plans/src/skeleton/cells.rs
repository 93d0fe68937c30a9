//! Number the chunks of all GPUs.

use serde::{Deserialize, Serialize};

/// Memory of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub(crate) enum Space {
    #[serde(rename = "i")]
    Input,
    #[serde(rename = "o")]
    Output,
    #[serde(rename = "s")]
    Scratch,
}

impl Space {
    pub const ALL: [Space; 3] = [Space::Input, Space::Output, Space::Scratch];

    /// Its letter in the formats.
    pub fn word(self) -> &'static str {
        ["i", "o", "s"][self as usize]
    }
}

/// The first of some chunks of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub space: Space,
    pub at: u32,
}

/// Numbers for the chunks of all GPUs, or for equal parts of them.
pub(crate) struct Cells {
    gpus: u32,
    /// Cells of each space of a GPU.
    lengths: [u32; 3],
    /// Cells of a chunk.
    fine: u32,
}

impl Cells {
    /// Cells of `gpus` GPUs: `lengths` in each space of a GPU, `fine` to a chunk.
    pub fn new(gpus: u32, lengths: [u32; 3], fine: u32) -> Self {
        Cells {
            gpus,
            lengths,
            fine,
        }
    }

    fn of_gpu(&self) -> u32 {
        self.lengths.iter().sum()
    }

    pub fn count(&self) -> usize {
        (self.gpus * self.of_gpu()) as usize
    }

    /// The cell of a place, which must exist and be canonical.
    pub fn of(&self, gpu: u32, place: Place) -> u32 {
        let before: u32 = self.lengths[..place.space as usize].iter().sum();
        gpu * self.of_gpu() + before + place.at
    }

    /// The name of a cell: `o[3] of gpu 1`.
    pub fn name(&self, cell: u32) -> String {
        let (gpu, mut at) = (cell / self.of_gpu(), cell % self.of_gpu());
        for space in Space::ALL {
            match at.checked_sub(self.lengths[space as usize]) {
                Some(beyond) => at = beyond,
                None => return format!("{}[{}] of gpu {gpu}", space.word(), at / self.fine),
            }
        }
        unreachable!("a cell is in one of the spaces")
    }
}
