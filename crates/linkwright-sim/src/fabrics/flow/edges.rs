//! The edges of a machine file as nodes of the graph; [`linkwright_core::machine::edges`] has the spellings.

use super::topology::Topology;
use linkwright_core::machine::edges::{self, run_of_names, Sides, ALL};

/// The nodes on both sides of an edge, several times where it joins pairs or blocks.
pub(super) fn sides(topology: &Topology, edge: &str) -> Result<Vec<Sides<u32>>, String> {
    edges::sides(edge, |text| side(topology, text))
}

/// The nodes that one side of an edge names.
fn side(topology: &Topology, text: &str) -> Result<Vec<u32>, String> {
    if text == ALL {
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
