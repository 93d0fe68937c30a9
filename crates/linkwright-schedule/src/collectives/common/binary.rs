//! Two binary trees over places in a line, such that almost everyone is a leaf of one and inside the other.
//!
//! ```text
//!   first tree of 8       0          the parent of a place has its lowest set bit cleared and the one
//!                         |          above it set, or only cleared where that is beyond the last place
//!                         4
//!                      /     \       odd places are leaves
//!                     2       6
//!                    / \     / \
//!                   1   3   5   7
//!
//!   second tree           even n: the mirror image, place v where n-1-v was
//!                         odd n: moved by one, place v where v-1 was
//! ```
//!
//! Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan"
//! (Parallel Computing 2009); the construction by lowest set bit is that of NCCL 2.4.

/// The parent of each place of the first tree over `n` places; the root, 0, has none.
fn parents(n: u32) -> Vec<Option<u32>> {
    let parent = |v: u32| {
        let bit = 1 << v.trailing_zeros();
        let up = (v ^ bit) | (bit << 1);
        if up < n {
            up
        } else {
            v ^ bit
        }
    };
    (0..n).map(|v| (v > 0).then(|| parent(v))).collect()
}

/// Where place `v` of `n` stands in tree `which`, and back: the mirror is its own inverse.
fn moved(n: u32, which: usize, v: u32, back: bool) -> u32 {
    match (which, n % 2, back) {
        (0, _, _) => v,
        (_, 0, _) => n - 1 - v,
        (_, _, false) => (v + n - 1) % n,
        (_, _, true) => (v + 1) % n,
    }
}

/// Places of tree `which` (0 or 1) with their parents, (place, parent), parents first; the root is its own.
pub fn tree(n: u32, which: usize) -> Vec<(u32, u32)> {
    let parents = parents(n);
    let mut depths = vec![0; n as usize];
    let mut order: Vec<u32> = (0..n).collect();
    for &v in &order {
        let ancestors = std::iter::successors(Some(v), |&v| parents[v as usize]);
        depths[v as usize] = ancestors.count();
    }
    order.sort_by_key(|&v| depths[v as usize]);
    let place = |v| moved(n, which, v, true);
    let pair = |&v: &u32| (place(v), place(parents[v as usize].unwrap_or(v)));
    order.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_places() {
        let first = [
            (0, 0),
            (4, 0),
            (2, 4),
            (6, 4),
            (1, 2),
            (3, 2),
            (5, 6),
            (7, 6),
        ];
        assert_eq!(tree(8, 0), first);
        let mirrored = first.map(|(v, parent)| (7 - v, 7 - parent));
        assert_eq!(tree(8, 1), mirrored);
    }

    #[test]
    fn five_places() {
        // 4 would hang from 8, so it hangs from 0; 3 from 2, 1 from 2, 2 from 4.
        assert_eq!(tree(5, 0), [(0, 0), (4, 0), (2, 4), (1, 2), (3, 2)]);
        assert_eq!(tree(5, 1), [(1, 1), (0, 1), (3, 0), (2, 3), (4, 3)]);
    }

    #[test]
    fn hardly_anyone_is_inside_both() {
        for n in 1..200 {
            let trees = [tree(n, 0), tree(n, 1)];
            for tree in &trees {
                assert_eq!(tree.len() as u32, n);
                for (index, (_, parent)) in tree.iter().enumerate() {
                    assert!(tree[..index.max(1)]
                        .iter()
                        .any(|(place, _)| place == parent));
                }
                for place in 0..n {
                    let children = tree.iter().filter(|(v, up)| *up == place && v != up);
                    assert!(children.count() <= 2);
                }
            }
            let inside =
                |which: usize, v: u32| trees[which].iter().any(|&(w, up)| up == v && w != v);
            let both = (0..n).filter(|&v| inside(0, v) && inside(1, v)).count();
            assert!(both <= 1, "{n} {both}");
        }
    }
}
