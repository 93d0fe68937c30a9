//! Every algorithm of the registry verifies; each kind of mistake is named.

use super::verify;
use crate::builder::Shape;
use crate::collectives::REGISTRY;
use crate::error::ScheduleError;

#[test]
fn small() {
    for algorithm in REGISTRY {
        for p in (1..=33).chain([64]) {
            for elements in [0, 1, 17, 1000] {
                match (algorithm.build)(&Shape::new(p, elements)) {
                    Ok(schedule) => match verify(&schedule) {
                        Ok(report) => {
                            if report.long_searches > 0 && elements == 1 {
                                println!("{} p={p}: {report:?}", algorithm.key());
                            }
                        }
                        Err(error) => panic!("{} p={p} n={elements}: {error}", algorithm.key()),
                    },
                    Err(ScheduleError::Waived { .. }) => {}
                    Err(error) => panic!("{} p={p}: {error}", algorithm.key()),
                }
            }
        }
    }
}
