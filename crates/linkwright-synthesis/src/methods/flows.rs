//! Messages divide over paths, relayed by endpoints, so that no link is busier than necessary; see
//! [`crate::links::flows`].

use crate::links::propose::propose as search;
use crate::links::search::Kind;
use crate::method::Method;

/// The method.
pub static METHOD: Method = Method {
    key: "flows",
    weight: 2,
    serves: |problem| Kind::Paths.serves(problem.collective),
    summary: "messages divide over paths, relayed by endpoints, so that no link is busier than necessary",
    description: "Routes what each pair of ranks has for each other over the links of a `flow` fabric, in slices, and \
                  routes it again until the busiest link is no less busy. For all-to-all, gather and scatter where not \
                  every pair has a link.",
    source: "Basu and others, Efficient all-to-all collective communication schedules for direct-connect topologies, \
             HPDC 2024",
    propose: |problem, judge| search(METHOD.key, Kind::Paths, problem, judge),
};
