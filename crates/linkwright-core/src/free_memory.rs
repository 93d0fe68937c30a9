//! How much memory this process may still take.
//!
//! Three limits, of which the least counts:
//!
//! | limit | read from | what remains |
//! |---|---|---|
//! | the machine's | `/proc/meminfo` | `MemAvailable`: what the kernel gives without swapping |
//! | the control group's, and those above it | `memory.max` (v2), `memory.limit_in_bytes` (v1) | limit - usage + file pages that can go |
//! | the process's | `RLIMIT_AS` (`ulimit -v`) | limit - mapped so far |
//!
//! In a container the first describes the host, and a process that relies on it is killed. A limit that the
//! system does not report does not count.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that can be allocated and used; `None` where nothing is known.
pub fn available_memory() -> Option<u64> {
    let left = [of_machine("MemAvailable:"), left_to_process()];
    left.into_iter().flatten().min()
}

/// Bytes that this process could have if the others took none: what it may do must not depend on them.
pub fn most_memory() -> Option<u64> {
    let most = [of_machine("MemTotal:"), left_to_process()];
    most.into_iter().flatten().min()
}

fn left_to_process() -> Option<u64> {
    let left = [of_groups(Path::new("/")), of_process()];
    left.into_iter().flatten().min()
}

fn of_machine(what: &str) -> Option<u64> {
    field(&fs::read_to_string("/proc/meminfo").ok()?, what).map(|kib| kib << 10)
}

/// The number behind a word at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The least of the control groups that this process is in; `root` is where `/proc` and `/sys` are.
fn of_groups(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    text.lines().filter_map(|line| of_group(root, line)).min()
}

/// Of a line `hierarchy:controllers:path` of `/proc/self/cgroup`.
fn of_group(root: &Path, line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (mount, files) = match controllers.split(',').any(|name| name == "memory") {
        true => ("sys/fs/cgroup/memory", &V1),
        false if number == "0" && controllers.is_empty() => ("sys/fs/cgroup", &V2),
        false => return None,
    };
    let mount = root.join(mount);
    let mut folder: PathBuf = mount.join(path.trim_start_matches('/'));
    let mut least = None;
    // Inside a container the path may be that of the host: what exists on the way up counts.
    while folder.starts_with(&mount) {
        least = least.into_iter().chain(left_in(&folder, files)).min();
        if !folder.pop() {
            break;
        }
    }
    least
}

/// Names in the two versions of control groups.
struct Files {
    limit: &'static str,
    usage: &'static str,
    reclaimable: &'static str,
}

const V1: Files = Files {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file ",
};
const V2: Files = Files {
    limit: "memory.max",
    usage: "memory.current",
    reclaimable: "inactive_file ",
};

/// Bytes left in one group; `None` where it has no limit.
fn left_in(folder: &Path, files: &Files) -> Option<u64> {
    let number = |name| -> Option<u64> {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        text.trim().parse().ok() // `max` is none
    };
    let limit = number(files.limit)?;
    let statistics = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let reclaimable = field(&statistics, files.reclaimable).unwrap_or(0);
    let used = number(files.usage)?.saturating_sub(reclaimable);
    Some(limit.saturating_sub(used))
}

fn of_process() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let soft = field(&limits, "Max address space")?; // `unlimited` is none
    let mapped = field(&fs::read_to_string("/proc/self/status").ok()?, "VmSize:")? << 10;
    Some(soft.saturating_sub(mapped))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the files that a kernel would show; removed at the end.
    struct Shown(PathBuf);

    impl Shown {
        fn new(name: &str, files: &[(&str, &str)]) -> Shown {
            let root =
                std::env::temp_dir().join(format!("linkwright-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Shown(root)
        }
    }

    impl Drop for Shown {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_least_group_on_the_way_up_counts() {
        let shown = Shown::new(
            "v2",
            &[
                ("proc/self/cgroup", "0::/job/step\n"),
                ("sys/fs/cgroup/job/memory.max", "3000\n"),
                ("sys/fs/cgroup/job/memory.current", "1500\n"),
                (
                    "sys/fs/cgroup/job/memory.stat",
                    "anon 9\ninactive_file 500\n",
                ),
                ("sys/fs/cgroup/job/step/memory.max", "max\n"),
                ("sys/fs/cgroup/job/step/memory.current", "1200\n"),
            ],
        );
        assert_eq!(of_groups(&shown.0), Some(2000));
    }

    #[test]
    fn a_container_that_sees_the_host_s_path_has_its_own_limit_at_the_mount() {
        let shown = Shown::new(
            "v1",
            &[
                (
                    "proc/self/cgroup",
                    "9:cpuset:/\n4:memory:/docker/abc\n0::/\n",
                ),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n"),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n"),
            ],
        );
        assert_eq!(of_groups(&shown.0), Some(0));
    }

    #[test]
    fn without_a_limit_nothing_is_known() {
        let shown = Shown::new("none", &[("proc/self/cgroup", "0::/\n")]);
        assert_eq!(of_groups(&shown.0), None);
        assert_eq!(
            field("MemFree: 1 kB\nMemAvailable:   77 kB\n", "MemAvailable:"),
            Some(77)
        );
    }
}
