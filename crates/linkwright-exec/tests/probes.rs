//! Every measured probe answers its defaults on this machine, or says why not.

use linkwright_core::probes::{find, Assignment};
use linkwright_exec::probes::{run, Setting, PROBES};
use linkwright_exec::sampling::Sampling;
use linkwright_exec::topology::allowed_cpus;
use linkwright_exec::ExecError;
use std::time::Duration;

fn setting<'a>() -> Setting<'a> {
    Setting {
        sampling: Sampling::of(7, 2, Duration::from_millis(100)),
        most_bytes: Some(64 << 20),
        ..Setting::of(allowed_cpus())
    }
}

#[test]
fn defaults_are_answered_or_waived_with_a_reason() {
    for probe in PROBES {
        assert!(std::ptr::eq(find(probe.about.key).unwrap(), probe.about));
        let asked = Assignment::parse(probe.about, &[]).unwrap();
        match run(&asked, &setting()) {
            Ok(answer) => {
                let samples = &answer.samples.values_ns;
                let dropped = answer.samples.drops.total() > 0;
                assert!(dropped || !samples.is_empty(), "{}", probe.about.key);
                assert!(samples.iter().all(|&ns| ns > 0.0), "{}", probe.about.key);
                for (metric, values) in &answer.columns {
                    let each = [1, samples.len()].contains(&values.len());
                    assert!(each, "{} {metric}", probe.about.key);
                }
            }
            Err(ExecError::Waived { reason, .. }) => assert!(!reason.is_empty()),
            Err(error) => panic!("{}: {error}", probe.about.key),
        }
    }
}

#[test]
fn a_working_set_beyond_the_share_of_memory_is_waived_with_both_sizes() {
    let probe = find("memory_latency").unwrap();
    let asked = Assignment::parse(probe, &[("working_set", "128M")]).unwrap();
    let error = run(&asked, &setting()).unwrap_err().to_string();
    assert!(error.contains("needs 128 MiB"), "{error}");
    assert!(error.contains("is 64 MiB"), "{error}");
}

#[test]
fn a_wish_to_stop_ends_a_probe() {
    let probe = find("memory_latency").unwrap();
    let asked = Assignment::parse(probe, &[]).unwrap();
    let endless = Setting {
        sampling: Sampling {
            samples: usize::MAX,
            time_budget: Duration::from_secs(600),
            ..Sampling::default()
        },
        cancelled: Some(&|| true),
        ..setting()
    };
    // What was sampled until then may be given back; that it ends is what counts.
    let _ = run(&asked, &endless);
}
