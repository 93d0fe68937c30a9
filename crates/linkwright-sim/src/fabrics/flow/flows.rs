//! Maximum flows of a graph, by blocking flows along shortest ways (Dinitz 1970).
//!
//! ```text
//!   edge 2 i      a -> b, with what is left of its capacity        pushing along one
//!   edge 2 i + 1  b -> a, with what is left of its capacity        gives to the other
//! ```
//!
//! Each phase numbers the nodes by their distance from the source and pushes along ways on which the distance grows. A
//! node keeps the edge that it tried last, so a phase costs the edges once and the length of each way that it fills.

const NONE: u32 = u32::MAX;

/// Two nodes, and what flows there and back.
pub(super) struct Pair {
    ends: (u32, u32),
    rates: (u64, u64),
}

impl Pair {
    pub fn new(ends: (u32, u32), rates: (u64, u64)) -> Self {
        Pair { ends, rates }
    }
}

/// A graph with a source and a sink of its own, each with an edge for every endpoint.
pub(super) struct Flows {
    /// Node to which each edge leads.
    heads: Vec<u32>,
    capacity: Vec<u64>,
    /// Edges by the node that they leave, and where those of each node begin.
    leaving: Vec<u32>,
    begins: Vec<u32>,
    endpoints: u32,
}

/// A flow that is growing.
struct Growing<'a> {
    graph: &'a Flows,
    left: Vec<u64>,
    /// Links from the source.
    depth: Vec<u32>,
    /// The next edge of each node to try, among `leaving`.
    next: Vec<u32>,
}

impl Flows {
    /// The graph of `nodes` nodes, the first of which are the `endpoints`.
    pub fn new(nodes: u32, endpoints: u32, mut pairs: Vec<Pair>) -> Self {
        for endpoint in 0..endpoints {
            pairs.push(Pair::new((nodes, endpoint), (0, 0)));
            pairs.push(Pair::new((endpoint, nodes + 1), (0, 0)));
        }
        let heads: Vec<u32> = pairs.iter().flat_map(|p| [p.ends.1, p.ends.0]).collect();
        let mut begins = vec![0u32; nodes as usize + 3];
        (heads.iter()).for_each(|&head| begins[head as usize + 1] += 1); // as many leave as arrive
        (1..begins.len()).for_each(|node| begins[node] += begins[node - 1]);
        let mut filled = begins.clone();
        let mut leaving = vec![0; heads.len()];
        for edge in 0..heads.len() {
            let place = &mut filled[heads[edge ^ 1] as usize];
            leaving[*place as usize] = edge as u32;
            *place += 1;
        }
        Flows {
            heads,
            capacity: pairs.iter().flat_map(|p| [p.rates.0, p.rates.1]).collect(),
            leaving,
            begins,
            endpoints,
        }
    }

    /// The most that flows from `sources` to `sinks`, which are endpoints with what each sends or receives at most; and
    /// by node, whether it lies on the near side of the narrowest cut.
    pub fn most(&self, sources: &[(u32, u64)], sinks: &[(u32, u64)]) -> (u64, Vec<bool>) {
        let mut left = self.capacity.clone();
        let own = left.len() - 4 * self.endpoints as usize;
        (sources.iter()).for_each(|&(node, most)| left[own + 4 * node as usize] = most);
        (sinks.iter()).for_each(|&(node, most)| left[own + 4 * node as usize + 2] = most);
        let nodes = self.begins.len() - 1;
        let mut growing = Growing {
            graph: self,
            left,
            depth: vec![NONE; nodes],
            next: vec![0; nodes],
        };
        let mut most = 0;
        while growing.number() {
            most += growing.fill();
        }
        // Nothing is left on the way out of what the last numbering reached.
        (
            most,
            growing.depth.iter().map(|&depth| depth != NONE).collect(),
        )
    }
}

impl Growing<'_> {
    fn source(&self) -> u32 {
        self.graph.begins.len() as u32 - 3
    }

    /// Number the nodes by their distance from the source over what is left; whether the sink is reached.
    fn number(&mut self) -> bool {
        let (source, sink) = (self.source(), self.source() + 1);
        self.depth.fill(NONE);
        self.depth[source as usize] = 0;
        let begins = &self.graph.begins;
        self.next.copy_from_slice(&begins[..begins.len() - 1]);
        let mut waiting = vec![source];
        let mut at = 0;
        while at < waiting.len() && self.depth[sink as usize] == NONE {
            let node = waiting[at] as usize;
            at += 1;
            let (first, end) = (self.graph.begins[node], self.graph.begins[node + 1]);
            for &edge in &self.graph.leaving[first as usize..end as usize] {
                let head = self.graph.heads[edge as usize];
                if self.left[edge as usize] > 0 && self.depth[head as usize] == NONE {
                    self.depth[head as usize] = self.depth[node] + 1;
                    waiting.push(head);
                }
            }
        }
        self.depth[sink as usize] != NONE
    }

    /// Push along ways on which the distance grows until none is left; how much.
    fn fill(&mut self) -> u64 {
        let (source, sink) = (self.source(), self.source() + 1);
        let (mut way, mut node, mut pushed) = (Vec::<u32>::new(), source, 0);
        loop {
            if node == sink {
                let least = way.iter().map(|&edge| self.left[edge as usize]).min();
                let least = least.expect("a way has edges");
                for &edge in &way {
                    self.left[edge as usize] -= least;
                    self.left[edge as usize ^ 1] += least;
                }
                pushed += least;
                let full = way.iter().position(|&edge| self.left[edge as usize] == 0);
                way.truncate(full.expect("the narrowest edge is full"));
            } else if let Some(edge) = self.onward(node) {
                way.push(edge);
            } else {
                let Some(edge) = way.pop() else { return pushed };
                // What led here leads nowhere.
                self.next[self.graph.heads[edge as usize ^ 1] as usize] += 1;
            }
            node = way
                .last()
                .map_or(source, |&edge| self.graph.heads[edge as usize]);
        }
    }

    /// The next edge from `node` that leads on.
    fn onward(&mut self, node: u32) -> Option<u32> {
        let (depth, end) = (
            self.depth[node as usize],
            self.graph.begins[node as usize + 1],
        );
        let next = &mut self.next[node as usize];
        while *next < end {
            let edge = self.graph.leaving[*next as usize];
            let head = self.graph.heads[edge as usize] as usize;
            if self.left[edge as usize] > 0 && self.depth[head] == depth + 1 {
                return Some(edge);
            }
            *next += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flows by one way at a time, as Ford and Fulkerson did: from node 0 to the last.
    fn one_at_a_time(nodes: usize, pairs: &[(usize, usize, u64, u64)]) -> (u64, Vec<bool>) {
        let mut left = vec![vec![0u64; nodes]; nodes];
        for &(a, b, there, back) in pairs {
            left[a][b] += there;
            left[b][a] += back;
        }
        let mut most = 0;
        loop {
            let mut from = vec![None; nodes];
            from[0] = Some(0);
            let mut waiting = vec![0];
            while let Some(node) = waiting.pop() {
                for next in 0..nodes {
                    if left[node][next] > 0 && from[next].is_none() {
                        from[next] = Some(node);
                        waiting.push(next);
                    }
                }
            }
            if from[nodes - 1].is_none() {
                return (most, from.iter().map(Option::is_some).collect());
            }
            let mut node = nodes - 1;
            while node != 0 {
                let before = from[node].unwrap();
                left[before][node] -= 1;
                left[node][before] += 1;
                node = before;
            }
            most += 1;
        }
    }

    /// The most, and the near side of the narrowest cut, which is the same for every flow that is as large.
    #[test]
    fn flows_and_cuts_of_random_graphs() {
        let mut state = 7u64;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let nodes = 2 + draw(8) as usize;
            let node = |drawn: u64| drawn as usize % nodes;
            let pairs: Vec<_> = (0..draw(24))
                .map(|_| (node(draw(99)), node(draw(99)), draw(6), draw(3)))
                .filter(|(a, b, ..)| a != b)
                .collect();
            let expected = one_at_a_time(nodes, &pairs);
            let ends = |&(a, b, there, back): &(usize, usize, u64, u64)| {
                Pair::new((a as u32, b as u32), (there, back))
            };
            let graph = Flows::new(nodes as u32, nodes as u32, pairs.iter().map(ends).collect());
            let free = u64::MAX / 1024;
            let (most, near) = graph.most(&[(0, free)], &[(nodes as u32 - 1, free)]);
            assert_eq!((most, near[..nodes].to_vec()), expected);
        }
    }
}
