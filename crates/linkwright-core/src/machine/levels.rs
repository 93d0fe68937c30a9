//! How near two ranks are: the innermost `[[level]]` that both lie in.
//!
//! ```text
//! [[level]] name = "package" count = 2        rank  0 1 2 3 | 4 5 6 7
//! [[level]] name = "core"    count = 4        0 and 3 share a package, 0 and 4 nothing but the machine
//! ```
//!
//! Ranks are numbered level by level, so the ranks of one instance follow each other.

use super::endpoints::Level;

/// Sizes of the groups of ranks of a machine, outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nearness {
    /// Ranks in one instance of each level.
    sizes: Vec<usize>,
}

impl Nearness {
    pub(super) fn of(levels: &[Level]) -> Self {
        let inside = |i: usize| levels[i + 1..].iter().map(|l| l.count).product();
        Nearness {
            sizes: (0..levels.len()).map(inside).collect(),
        }
    }

    /// Index of the innermost level whose instance holds both; `None`: nothing but the whole machine.
    #[inline]
    pub fn shared(&self, a: usize, b: usize) -> Option<usize> {
        let same = |&size: &usize| a / size.max(1) == b / size.max(1);
        self.sizes.iter().rposition(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_shared_level_counts() {
        let level = |name: &str, count| Level {
            name: name.to_string(),
            count,
        };
        let near = Nearness::of(&[level("host", 2), level("package", 2), level("core", 4)]);
        assert_eq!(near.shared(0, 0), Some(2));
        assert_eq!(near.shared(0, 3), Some(1));
        assert_eq!(near.shared(0, 4), Some(0));
        assert_eq!(near.shared(7, 8), None);
        assert_eq!(Nearness::default().shared(0, 1), None);
    }
}
