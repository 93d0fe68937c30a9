//! Each link takes, whenever it is free, a chunk that its target lacks; see [`crate::links::matching`].

use crate::links::propose::propose as search;
use crate::links::search::Kind;
use crate::method::Method;

/// The method.
pub static METHOD: Method = Method {
    key: "matching",
    weight: 1,
    serves: |problem| Kind::Matching.serves(problem.collective),
    summary: "each link takes, whenever it is free, a chunk that its target lacks",
    description: "Greedy matching on the time-expanded network of a `flow` fabric, for blocks cut into more and more \
                  slices and with other seeds; backwards for reductions. For graphs that fit no algorithm, at sizes \
                  where starts and bytes both count.",
    source: "Won and others, TACOS: Topology-aware collective algorithm synthesizer for distributed machine learning, \
             MICRO 2024",
    propose: |problem, judge| search(METHOD.key, Kind::Matching, problem, judge),
};
