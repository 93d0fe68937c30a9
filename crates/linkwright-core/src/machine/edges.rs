//! Edges of a machine file, each of which may describe many links.
//!
//! ```text
//!   hub - GPU 0                  one link
//!   hub - GPU 0..3               one node to each of several
//!   chip 0..14 = chip 1..15      pairwise, the first to the first, ...: here a chain
//!   GPU 0..3 x GPU 0..3          every node of one side to every node of the other: here a full mesh
//!   GPU 0..63 / 8 - switch 0..7  dealt out in blocks: eight GPUs to each switch
//! ```
//!
//! A side is a node, a run of names that end in numbers (both ends included), or `*` for all ranks. With several
//! nodes on both sides, ` - ` could mean pairs or all with all, so it is rejected.

/// How the nodes of two sides are joined.
#[derive(Clone, Copy)]
enum Join {
    /// A side of one node, or blocks.
    Line,
    Pairwise,
    All,
}

/// The sign of each, in the order in which they are tried.
const JOINS: [(&str, Join); 3] = [
    (" - ", Join::Line),
    (" = ", Join::Pairwise),
    (" x ", Join::All),
];

/// Means all ranks.
pub const ALL: &str = "*";

/// Nodes on both sides of links: every node of one side is joined to every node of the other.
pub type Sides<N> = (Vec<N>, Vec<N>);

/// Split an edge into its sides as written, its sign, and how the sides are joined.
fn split(edge: &str) -> Result<(&str, &str, &'static str, Join), String> {
    (JOINS.iter())
        .find_map(|&(sign, join)| {
            let (a, b) = edge.split_once(sign)?;
            Some((a.trim(), b.trim(), sign, join))
        })
        .ok_or_else(|| "an edge is two nodes, `A - B`".to_string())
}

/// The nodes on both sides of an edge: one entry, or one for each pair or block. `nodes` resolves a name, a run or
/// `*`.
pub fn sides<N: Clone + PartialEq>(
    edge: &str,
    nodes: impl Fn(&str) -> Result<Vec<N>, String>,
) -> Result<Vec<Sides<N>>, String> {
    let (a, b, _, join) = split(edge)?;
    let blocks = |text: &str| {
        let (nodes, size) = text.rsplit_once(" / ")?;
        Some((nodes.trim().to_string(), size.trim().parse::<usize>().ok()?))
    };
    let (dealt, size, others) = match (blocks(a), blocks(b)) {
        (None, None) => return joined(nodes(a)?, nodes(b)?, join, (a, b)),
        _ if !matches!(join, Join::Line) => {
            return Err(
                "blocks are dealt out with ` - `, as in `GPU 0..63 / 8 - switch 0..7`".into(),
            )
        }
        (Some((nodes, size)), None) => (nodes, size, b),
        (None, Some((nodes, size))) => (nodes, size, a),
        _ => return Err("both sides are dealt out in blocks; write ` / ` on one of them".into()),
    };
    let (dealt, others) = (nodes(&dealt)?, nodes(others)?);
    if size == 0 || dealt.len() != size * others.len() {
        let (count, wanted) = (dealt.len(), others.len());
        return Err(format!(
            "{count} nodes in blocks of {size} do not fit {wanted} nodes on the other side; give one for each block"
        ));
    }
    let pairs = dealt.chunks(size).zip(others);
    Ok(pairs
        .map(|(block, other)| (block.to_vec(), vec![other]))
        .collect())
}

/// Join two sides without blocks, written as `a` and `b`.
fn joined<N: PartialEq>(
    left: Vec<N>,
    right: Vec<N>,
    join: Join,
    (a, b): (&str, &str),
) -> Result<Vec<Sides<N>>, String> {
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

/// Maximum names of a run, which is the maximum number of endpoints of a machine.
const LONGEST_RUN: u32 = 1 << 24;

/// The names of a side: a run, or a single name.
pub fn names(side: &str) -> Result<Vec<String>, String> {
    if !side.contains("..") {
        return Ok(vec![side.to_string()]);
    }
    run_of_names(side).ok_or_else(|| {
        format!(
            "`{side}` is not a run of names; write `GPU 0..3`, both ends included, or `node 08..11`, as many digits on \
             both sides"
        )
    })
}

/// Expand `GPU 0..3` to four names, and `node 08..11` to `node 08`, `node 09`, ...; `None` if `text` is not a run, or
/// is longer than any machine.
pub fn run_of_names(text: &str) -> Option<Vec<String>> {
    let (head, last) = text.split_once("..")?;
    let (prefix, first) = numbered(head);
    let width = match is_padded(first) {
        true if last.len() != first.len() => return None,
        true => first.len(),
        false if is_padded(last) => return None,
        false => 0,
    };
    let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
    let fits = first <= last && last - first < LONGEST_RUN;
    let name = |i: u32| format!("{prefix}{i:0width$}");
    fits.then(|| (first..=last).map(name).collect())
}

/// Split a name into its stem and the digits at its end.
fn numbered(name: &str) -> (&str, &str) {
    name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit()).len())
}

fn is_padded(number: &str) -> bool {
    number.len() > 1 && number.starts_with('0')
}

/// Maximum digits of a number in a run.
const MOST_DIGITS: usize = 9;

/// Write names as runs: `GPU 0..2` for three consecutive names, `node 08..11` for names with leading zeros.
pub fn runs(names: &[String]) -> Vec<String> {
    let mut found: Vec<(&str, &str, Option<&str>)> = Vec::new(); // prefix, first, last number
    for name in names {
        let (prefix, number) = numbered(name);
        if (1..=MOST_DIGITS).contains(&number.len()) {
            if let Some((known, first, last)) = found.last_mut() {
                let end = last.unwrap_or(first);
                if *known == prefix && !first.is_empty() && follows(end, number) {
                    *last = Some(number);
                    continue;
                }
            }
            found.push((prefix, number, None));
        } else {
            found.push((name, "", None));
        }
    }
    let text = |(prefix, first, last): (&str, &str, Option<&str>)| match last {
        Some(last) => format!("{prefix}{first}..{last}"),
        None => format!("{prefix}{first}"),
    };
    found.into_iter().map(text).collect()
}

/// Whether a number follows another in a run; with leading zeros, both need the same number of digits.
fn follows(one: &str, other: &str) -> bool {
    let value = |digits: &str| digits.parse::<u32>().expect("at most nine digits");
    let padded = is_padded(one) || is_padded(other);
    value(other) == value(one) + 1 && (!padded || one.len() == other.len())
}

/// Rename both sides of an edge; a block size such as ` / 8` is kept.
pub(super) fn renamed(edge: &str, rename: impl Fn(&str) -> String) -> Result<String, String> {
    let (left, right, sign, _) = split(edge)?;
    let side = |side: &str| match side.split_once(" / ") {
        Some((name, size)) => format!("{} / {size}", rename(name.trim())),
        None => rename(side),
    };
    Ok(format!("{}{sign}{}", side(left), side(right)))
}

/// Every pair that an edge joins, each once; `ranks` are the names that `*` means.
pub fn pairs(edge: &str, ranks: &[String]) -> Result<Vec<(String, String)>, String> {
    let nodes = |side: &str| match side {
        ALL => Ok(ranks.to_vec()),
        side => names(side),
    };
    let mut found = Vec::new();
    for (left, right) in sides(edge, nodes)? {
        // The order of ends matters only where a node is on both sides.
        let both = left.iter().any(|end| right.contains(end));
        let mut seen = std::collections::HashSet::new();
        for a in &left {
            for b in right.iter().filter(|b| a != *b) {
                if !both || (!seen.contains(&(b, a)) && seen.insert((a, b))) {
                    found.push((a.clone(), b.clone()));
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_string()).collect()
    }

    fn joined(edge: &str, ranks: &[&str]) -> Vec<(String, String)> {
        pairs(edge, &texts(ranks)).unwrap()
    }

    fn named(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(a, b): &(&str, &str)| ((*a).to_string(), (*b).to_string());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn an_edge_is_the_pairs_that_it_joins() {
        let ranks = ["a 0", "a 1", "a 2", "a 3"];
        let blocks = [
            ("a 0", "leaf 0"),
            ("a 1", "leaf 0"),
            ("a 2", "leaf 1"),
            ("a 3", "leaf 1"),
        ];
        assert_eq!(joined("* / 2 - leaf 0..1", &ranks), named(&blocks));
        assert_eq!(joined("leaf 0..1 - * / 2", &ranks), named(&blocks));
        let mesh = [("a 0", "a 1"), ("a 0", "a 2"), ("a 1", "a 2")];
        assert_eq!(joined("a 0..2 x a 0..2", &[]), named(&mesh));
        assert_eq!(
            joined("a 0..1 = a 2..3", &[]),
            named(&[("a 0", "a 2"), ("a 1", "a 3")])
        );
    }

    #[test]
    fn runs_of_names_with_leading_zeros_keep_them() {
        let padded = texts(&["n008", "n009", "n010", "n011"]);
        assert_eq!(runs(&padded), ["n008..011"]);
        assert_eq!(names("n008..011").unwrap(), padded);
        // Ten follows nine, but not in a run whose names have one width; nor does 1 follow 00.
        assert_eq!(runs(&texts(&["n9", "n10"])), ["n9..10"]);
        for apart in [
            ["n09", "n010"],
            ["n00", "n1"],
            ["n0000000001", "n0000000002"],
        ] {
            assert_eq!(runs(&texts(&apart)), apart);
        }
        assert_eq!(
            runs(&texts(&["a 0", "a 1", "b", "a 2", "a 3"])),
            ["a 0..1", "b", "a 2..3"]
        );
        for run in ["n001..9", "n1..09"] {
            assert!(names(run)
                .unwrap_err()
                .contains("as many digits on both sides"));
        }
    }

    #[test]
    fn names_change_and_blocks_stay() {
        let rename = |name: &str| format!("node 3 {name}");
        let found = renamed("GPU 0..63 / 8 - leaf 0..7", rename).unwrap();
        assert_eq!(found, "node 3 GPU 0..63 / 8 - node 3 leaf 0..7");
        assert!(renamed("GPU 0", rename).unwrap_err().contains("two nodes"));
    }

    proptest! {
        #[test]
        fn runs_name_what_they_are_made_of(
            found in prop::collection::vec(
                prop::sample::select(vec!["n0", "n1", "n9", "n10", "n00", "n01", "n09", "n010", "n999", "b", "b1 2"]),
                0..8,
            )
        ) {
            let found = texts(&found);
            let again: Vec<String> = runs(&found).iter().flat_map(|run| names(run).unwrap()).collect();
            prop_assert_eq!(again, found);
        }
    }
}
