//! The hierarchy, `[[level]]`, outermost first; and how near two ranks are: the innermost level that both lie in.
//!
//! ```text
//! [[level]] name = "package" count = 2        rank  0 1 2 3 | 4 5 6 7
//! [[level]] name = "core"    count = 4        0 and 3 share a package, 0 and 4 nothing but the machine
//! ```
//!
//! The counts multiply to the ranks, which are numbered level by level, so the ranks of one instance
//! follow each other.

use super::ranks::read_size;
use super::section::Section;
use crate::error::MachineError;

/// One level of the hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Name, such as `chip`.
    pub name: String,
    /// How many of these are in one of the level outside it.
    pub count: usize,
}

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

    /// By level, the number of the instance that holds endpoint `a`.
    pub fn instances(&self, a: usize) -> impl Iterator<Item = usize> + '_ {
        self.sizes.iter().map(move |&size| a / size.max(1))
    }
}

/// Read `[[level]]`, whose counts multiply to the ranks of `[endpoints]`.
pub(super) fn read(
    endpoints: &Section<'_>,
    sections: Vec<Section<'_>>,
    ranks: usize,
    open: bool,
) -> Result<Vec<Level>, MachineError> {
    let mut levels: Vec<Level> = Vec::with_capacity(sections.len());
    let mut free = None;
    for mut s in sections {
        let name = s.text("name")?;
        if levels.iter().any(|l| l.name == name) {
            let problem = format!("two levels are named \"{name}\"; rename one");
            return Err(s.inconsistent("name", problem));
        }
        let count = if s.is_any("count") {
            if !open || free.is_some() {
                let problem = "\"any\" may stand at one level, of a machine whose \
                               [endpoints] are \"any\" too; write a number";
                return Err(s.inconsistent("count", problem));
            }
            free = Some(levels.len());
            1
        } else {
            read_size(&mut s, "count")?
        };
        s.text("source")?;
        s.finish()?;
        levels.push(Level { name, count });
    }
    let product = levels
        .iter()
        .try_fold(1usize, |a, l| a.checked_mul(l.count));
    let product = product.unwrap_or(usize::MAX);
    match free {
        Some(level) if ranks % product == 0 => levels[level].count = ranks / product,
        _ if open && ranks == 0 || product == ranks => {}
        _ => {
            let problem = format!(
                "{ranks} ranks, but the counts of [[level]] multiply to {product}; correct one side"
            );
            return Err(endpoints.inconsistent("", problem));
        }
    }
    Ok(levels)
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
