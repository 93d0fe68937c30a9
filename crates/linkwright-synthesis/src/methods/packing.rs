//! Trees over all endpoints that together load no link more than necessary; see [`crate::links::packing`].

use crate::links::propose::propose as search;
use crate::links::search::Kind;
use crate::method::Method;

/// The method.
pub static METHOD: Method = Method {
    key: "packing",
    weight: 1,
    serves: |problem| Kind::Packing.serves(problem.collective),
    summary: "trees over all endpoints that together load no link more than necessary",
    description: "Packs trees for the links of a `flow` fabric and pipelines pieces of the vector down them, or up, \
                  combined on the way. For large vectors, where only the busiest link counts.",
    source: "Wang and others, Blink: Fast and generic collectives for distributed ML, MLSys 2020",
    propose: |problem, judge| search(METHOD.key, Kind::Packing, problem, judge),
};
