//! Edges of a machine file, each of which may stand for many links.
//!
//! ```text
//!   hub - GPU 0                  one link
//!   hub - GPU 0..3               one node to several: a link to each
//!   chip 0..14 = chip 1..15      pairwise, the first to the first, ...: here a chain
//!   GPU 0..3 x GPU 0..3          every node of one side to every node of the other: here a full mesh
//!   GPU 0..63 / 8 - switch 0..7  dealt out in blocks: eight GPUs to each switch
//! ```
//!
//! A side is a node, a run of names that end in numbers (both ends included) or `*`, all ranks. Several
//! nodes on both sides of ` - ` could mean pairs or all, so that is refused.

use super::topology::Topology;

type Side = Vec<u32>;

/// How the nodes of two sides are joined.
#[derive(Clone, Copy)]
enum Join {
    /// A side of one node, or blocks.
    Line,
    Pairwise,
    All,
}

/// How each is written, in the order in which they are looked for.
const JOINS: [(&str, Join); 3] = [
    (" - ", Join::Line),
    (" = ", Join::Pairwise),
    (" x ", Join::All),
];

/// The nodes on both sides of an edge, several times where it joins pairs or blocks.
pub(super) fn sides(topology: &Topology, edge: &str) -> Result<Vec<(Side, Side)>, String> {
    let (a, b, join) = (JOINS.iter())
        .find_map(|&(sign, join)| {
            edge.split_once(sign)
                .map(|(a, b)| (a.trim(), b.trim(), join))
        })
        .ok_or("an edge is two nodes, `A - B`")?;
    let blocks = |text: &str| {
        let (nodes, size) = text.rsplit_once(" / ")?;
        Some((nodes.trim().to_string(), size.trim().parse::<usize>().ok()?))
    };
    let (dealt, size, others) = match (blocks(a), blocks(b)) {
        (None, None) => return joined(side(topology, a)?, side(topology, b)?, join, (a, b)),
        _ if !matches!(join, Join::Line) => {
            return Err(
                "blocks are dealt out with ` - `, as in `GPU 0..63 / 8 - switch 0..7`".into(),
            )
        }
        (Some((nodes, size)), None) => (nodes, size, b),
        (None, Some((nodes, size))) => (nodes, size, a),
        _ => return Err("both sides are dealt out in blocks; write ` / ` on one of them".into()),
    };
    let (nodes, others) = (side(topology, &dealt)?, side(topology, others)?);
    if size == 0 || nodes.len() != size * others.len() {
        let (count, wanted) = (nodes.len(), others.len());
        return Err(format!(
            "{count} nodes in blocks of {size} do not fit {wanted} nodes on the other side; give one for each block"
        ));
    }
    let pairs = nodes.chunks(size).zip(others);
    Ok(pairs
        .map(|(block, other)| (block.to_vec(), vec![other]))
        .collect())
}

/// The sides without blocks, written as `a` and `b`.
fn joined(
    left: Side,
    right: Side,
    join: Join,
    (a, b): (&str, &str),
) -> Result<Vec<(Side, Side)>, String> {
    let (n, m) = (left.len(), right.len());
    match join {
        Join::Line if n > 1 && m > 1 => Err(format!(
            "{n} nodes and {m} nodes could be joined in pairs or each with each; \
             write `{a} = {b}` for pairs or `{a} x {b}` for each with each"
        )),
        Join::Line | Join::All => Ok(vec![(left, right)]),
        Join::Pairwise if n != m => Err(format!(
            "pairs need as many nodes on either side, not {n} and {m}; write `{a} x {b}` for each with each"
        )),
        Join::Pairwise if left == right => Err(format!(
            "this pairs every node with itself; write `{a} x {b}` for each with each"
        )),
        Join::Pairwise => Ok(left
            .into_iter()
            .zip(right)
            .map(|(one, other)| (vec![one], vec![other]))
            .collect()),
    }
}

/// The nodes that one side of an edge names.
fn side(topology: &Topology, text: &str) -> Result<Side, String> {
    if text == "*" {
        return Ok((0..topology.ranks).collect());
    }
    let one = |name: &String| {
        let cure = || {
            format!(
                "no node `{name}`; endpoints and `switches` are nodes, such as {}",
                some(topology)
            )
        };
        topology.find(name).ok_or_else(cure)
    };
    if !text.contains("..") {
        return Ok(vec![one(&text.to_string())?]);
    }
    let names = run_of_names(text).ok_or_else(|| {
        format!("`{text}` is not a run of names; write `GPU 0..3`, both ends included")
    })?;
    names.iter().map(one).collect()
}

/// Most names of a run, as many as a machine has endpoints.
const LONGEST_RUN: u32 = 1 << 24;

/// `GPU 0..3` as its four names, and `node 08..11` as `node 08`, `node 09`, ...; `None` where `text` is not a run, or
/// one that no machine has.
pub(super) fn run_of_names(text: &str) -> Option<Vec<String>> {
    let (head, last) = text.split_once("..")?;
    let digits = head.len() - head.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (prefix, first) = head.split_at(head.len() - digits);
    let width = match first.len() > 1 && first.starts_with('0') {
        true if last.len() != first.len() => return None,
        true => first.len(),
        false if last.len() > 1 && last.starts_with('0') => return None,
        false => 0,
    };
    let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
    let fits = first <= last && last - first < LONGEST_RUN;
    let name = |i: u32| format!("{prefix}{i:0width$}");
    fits.then(|| (first..=last).map(name).collect())
}

/// The last names, as examples for a message.
pub(super) fn some(topology: &Topology) -> String {
    let names: Vec<&str> = topology
        .names
        .iter()
        .rev()
        .take(3)
        .map(String::as_str)
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology() -> Topology {
        let names = ["GPU 0", "GPU 1", "GPU 2", "GPU 3", "switch 0", "switch 1"];
        Topology::new(names.map(String::from).to_vec(), 4, 4)
    }

    fn error(edge: &str) -> String {
        sides(&topology(), edge).unwrap_err()
    }

    #[test]
    fn a_side_in_blocks_is_dealt_out_to_the_other() {
        let found = sides(&topology(), "GPU 0..3 / 2 - switch 0..1").unwrap();
        assert_eq!(found, [(vec![0, 1], vec![4]), (vec![2, 3], vec![5])]);
        let turned = sides(&topology(), "switch 0..1 - * / 2").unwrap();
        assert_eq!(turned, found);
        let whole = sides(&topology(), "switch 0 - GPU 2..3").unwrap();
        assert_eq!(whole, [(vec![4], vec![2, 3])]);
    }

    #[test]
    fn pairs_and_each_with_each_have_signs_of_their_own() {
        let chain = sides(&topology(), "GPU 0..2 = GPU 1..3").unwrap();
        let links = [(0, 1), (1, 2), (2, 3)].map(|(a, b)| (vec![a], vec![b]));
        assert_eq!(chain, links);
        let mesh = sides(&topology(), "GPU 0..2 x GPU 1..3").unwrap();
        assert_eq!(mesh, [(vec![0, 1, 2], vec![1, 2, 3])]);
        let fewer = sides(&topology(), "* x switch 0..1").unwrap();
        assert_eq!(fewer, [(vec![0, 1, 2, 3], vec![4, 5])]);
    }

    #[test]
    fn several_nodes_on_both_sides_need_a_sign() {
        assert_eq!(
            error("GPU 0..2 - GPU 1..3"),
            "3 nodes and 3 nodes could be joined in pairs or each with each; write `GPU 0..2 = GPU 1..3` for \
             pairs or `GPU 0..2 x GPU 1..3` for each with each"
        );
        assert!(error("* - switch 0..1").contains("write `* = switch 0..1` for pairs"));
        assert!(error("* = switch 0..1").contains("not 4 and 2; write `* x switch 0..1`"));
        assert!(error("* = GPU 0..3").contains("every node with itself"));
        assert!(error("* / 2 x switch 0..1").contains("blocks are dealt out with ` - `"));
    }

    #[test]
    fn numbers_with_leading_zeros_keep_their_width() {
        let names = |text: &str| run_of_names(text).map(|names| names.join(" "));
        assert_eq!(names("n08..11").as_deref(), Some("n08 n09 n10 n11"),);
        assert_eq!(names("n9..11").as_deref(), Some("n9 n10 n11"));
        assert_eq!(names("n0..1").as_deref(), Some("n0 n1"));
        // n1 to n9, or n001 to n009?
        assert_eq!([names("n001..9"), names("n1..09")], [None, None]);
    }

    #[test]
    fn blocks_that_do_not_come_out_even_name_their_cure() {
        assert!(error("GPU 0..3 / 3 - switch 0..1").contains("4 nodes in blocks of 3"));
        assert!(error("* / 4 - switch 0..1").contains("one for each block"));
        assert!(error("* / 2 - switch 0..1 / 2").contains("on one of them"));
        assert!(error("GPU 3..0 - switch 0").contains("not a run of names"));
        assert!(error("GPU 0..4000000000 - switch 0").contains("not a run of names"));
    }
}
