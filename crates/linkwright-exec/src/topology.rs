//! The processors of this machine, in an order in which neighbours are close.
//!
//! The kernel describes every processor under `/sys/devices/system/cpu`: its core, package, NUMA
//! node and caches with the processors that share each. Ranks are placed in *topology order*:
//!
//! ```text
//!   package 0                          package 1
//!     last-level cache 0   cache 1       ...
//!       core 0  core 1       core 2
//!        t0      t0           t0         first hardware threads of all cores first,
//!        t1      t1           t1         then the second ones
//! ```
//!
//! so consecutive ranks share the nearest cache, and no two ranks share a core before every core
//! has one. Only processors that this process may use count. What the kernel hides (in a container
//! without `/sys`) is replaced by the simplest assumption: one package, one core per processor.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A cache and the processors that share it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cache {
    /// 1, 2, 3.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`, as the kernel names it.
    pub kind: String,
    /// Capacity in bytes.
    pub bytes: u64,
    /// Operating-system numbers of the processors behind it.
    pub shared_by: Vec<u32>,
}

/// One hardware thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// The operating system's number.
    pub id: u32,
    /// Socket.
    pub package: u32,
    /// NUMA node.
    pub node: u32,
    /// Lowest-numbered processor that shares the last-level cache.
    pub cache_group: u32,
    /// Core within the package.
    pub core: u32,
    /// Position among the hardware threads of the core.
    pub thread: u32,
    /// Nearest first.
    pub caches: Vec<Cache>,
}

/// The processors this process may use, in topology order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Usable processors.
    pub cpus: Vec<Cpu>,
}

impl Topology {
    /// Of the machine this runs on, limited to the processors that affinity allows.
    pub fn discover() -> Topology {
        let allowed = allowed_cpus();
        Topology::read(Path::new("/sys/devices/system"), &allowed)
    }

    /// From a directory laid out as `/sys/devices/system`.
    pub fn read(root: &Path, allowed: &[u32]) -> Topology {
        let nodes = numa_nodes(&root.join("node"));
        let mut cpus: Vec<Cpu> = allowed
            .iter()
            .map(|&id| read_cpu(&root.join(format!("cpu/cpu{id}")), id, &nodes))
            .collect();
        number_threads(&mut cpus);
        cpus.sort_by_key(|cpu| {
            let place = (cpu.package, cpu.node, cpu.cache_group, cpu.core);
            (cpu.thread, place, cpu.id)
        });
        Topology { cpus }
    }

    /// How many physical cores there are among the usable processors.
    pub fn cores(&self) -> usize {
        self.cpus.iter().filter(|cpu| cpu.thread == 0).count()
    }

    /// Bytes of the largest cache that the first processor sees.
    pub fn last_level_bytes(&self) -> Option<u64> {
        let caches = &self.cpus.first()?.caches;
        caches.iter().map(|cache| cache.bytes).max()
    }
}

/// How many threads can truly run at once: affinity and the container's processor quota.
pub fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Processors that this process may run on.
pub fn allowed_cpus() -> Vec<u32> {
    // SAFETY: an all-zero set is a valid empty set, and the call writes at most its size.
    let set = unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, std::mem::size_of_val(&set), &mut set) != 0 {
            // More processors than the set can name: count on the plain numbering.
            return (0..parallelism() as u32).collect();
        }
        set
    };
    (0..libc::CPU_SETSIZE as u32)
        // SAFETY: the index is below the size of the set.
        .filter(|&id| unsafe { libc::CPU_ISSET(id as usize, &set) })
        .collect()
}

/// The calling thread could not be tied to a processor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot pin to processor {cpu}: {reason}; ranks run unpinned, so times scatter more; allow sched_setaffinity to cure it")]
pub struct CannotPin {
    /// The processor asked for.
    pub cpu: u32,
    /// The operating system's words.
    pub reason: String,
}

/// Ties the calling thread to one processor.
pub fn pin_to(cpu: u32) -> Result<(), CannotPin> {
    let failed = |reason: String| CannotPin { cpu, reason };
    if cpu >= libc::CPU_SETSIZE as u32 {
        return Err(failed("number beyond the affinity set".to_owned()));
    }
    // SAFETY: an all-zero set is valid and the index is below its size.
    let status = unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set)
    };
    match status {
        0 => Ok(()),
        _ => Err(failed(std::io::Error::last_os_error().to_string())),
    }
}

fn read_cpu(directory: &Path, id: u32, nodes: &[(u32, BTreeSet<u32>)]) -> Cpu {
    let caches = read_caches(&directory.join("cache"));
    let last = caches.iter().max_by_key(|cache| cache.level);
    let topology = directory.join("topology");
    let node = nodes.iter().find(|(_, cpus)| cpus.contains(&id));
    Cpu {
        id,
        package: number(&topology.join("physical_package_id")).unwrap_or(0),
        node: node.map_or(0, |&(node, _)| node),
        cache_group: last
            .and_then(|cache| cache.shared_by.first().copied())
            .unwrap_or(0),
        core: number(&topology.join("core_id")).unwrap_or(id),
        thread: 0,
        caches,
    }
}

/// Gives each processor its position among those of the same core.
fn number_threads(cpus: &mut [Cpu]) {
    cpus.sort_by_key(|cpu| (cpu.package, cpu.core, cpu.id));
    for i in 1..cpus.len() {
        let same = (cpus[i].package, cpus[i].core) == (cpus[i - 1].package, cpus[i - 1].core);
        cpus[i].thread = if same { cpus[i - 1].thread + 1 } else { 0 };
    }
}

fn read_caches(directory: &Path) -> Vec<Cache> {
    let text = |path: &Path| fs::read_to_string(path).map(|text| text.trim().to_owned());
    let mut caches: Vec<Cache> = (0..)
        .map(|index| directory.join(format!("index{index}")))
        .take_while(|entry| entry.is_dir())
        .filter_map(|entry| {
            Some(Cache {
                level: number(&entry.join("level"))?,
                kind: text(&entry.join("type")).ok()?,
                bytes: size(&text(&entry.join("size")).ok()?)?,
                shared_by: list(&text(&entry.join("shared_cpu_list")).ok()?),
            })
        })
        .collect();
    caches.sort();
    caches
}

fn numa_nodes(directory: &Path) -> Vec<(u32, BTreeSet<u32>)> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut nodes: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let node = name.strip_prefix("node")?.parse().ok()?;
            let cpus = fs::read_to_string(entry.path().join("cpulist")).ok()?;
            Some((node, list(cpus.trim()).into_iter().collect()))
        })
        .collect();
    nodes.sort();
    nodes
}

fn number(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// `32K`, `1024K`, `32M`: the kernel's cache sizes.
fn size(text: &str) -> Option<u64> {
    let scaled = |suffix, factor: u64| {
        let digits = text.strip_suffix(suffix)?;
        digits.parse::<u64>().ok().map(|n| n * factor)
    };
    scaled('K', 1 << 10)
        .or_else(|| scaled('M', 1 << 20))
        .or_else(|| text.parse().ok())
}

/// `0-3,8,10-11`: the kernel's lists of processors. Parts that do not parse are skipped.
fn list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packages of two cores with two hardware threads, numbered as Linux usually does.
    fn machine(root: &Path) {
        for id in 0..8u32 {
            let (core, package) = (id % 4 % 2, id % 4 / 2);
            let write = |name: &str, text: String| {
                let path = root.join(format!("cpu/cpu{id}")).join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text + "\n").unwrap();
            };
            write("topology/core_id", core.to_string());
            write("topology/physical_package_id", package.to_string());
            write("cache/index0/level", "3".to_owned());
            write("cache/index0/type", "Unified".to_owned());
            write("cache/index0/size", "32M".to_owned());
            let first = package * 2;
            let group = format!("{first}-{},{}-{}", first + 1, first + 4, first + 5);
            write("cache/index0/shared_cpu_list", group);
        }
        for node in 0..2 {
            let path = root.join(format!("node/node{node}"));
            fs::create_dir_all(&path).unwrap();
            let (low, high) = (node * 2, node * 2 + 4);
            fs::write(
                path.join("cpulist"),
                format!("{low}-{},{high}-{}\n", low + 1, high + 1),
            )
            .unwrap();
        }
    }

    #[test]
    fn cores_come_before_their_second_threads() {
        let root = std::env::temp_dir().join(format!("linkwright-topology-{}", std::process::id()));
        machine(&root);
        let all: Vec<u32> = (0..8).collect();
        let topology = Topology::read(&root, &all);
        let ids: Vec<u32> = topology.cpus.iter().map(|cpu| cpu.id).collect();
        assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(topology.cores(), 4);
        assert_eq!(topology.cpus[2].package, 1);
        assert_eq!(topology.cpus[2].node, 1);
        assert_eq!(topology.cpus[2].cache_group, 2);
        assert_eq!(topology.last_level_bytes(), Some(32 << 20));

        let few = Topology::read(&root, &[2, 6, 7]);
        let ids: Vec<u32> = few.cpus.iter().map(|cpu| cpu.id).collect();
        assert_eq!(
            ids,
            [2, 7, 6],
            "core 3's only usable thread precedes core 2's second"
        );
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_machine_without_sys_has_one_core_per_processor() {
        let topology = Topology::read(Path::new("/nowhere"), &[0, 3]);
        assert_eq!(topology.cpus.len(), 2);
        assert_eq!(topology.cores(), 2);
        assert_eq!(topology.last_level_bytes(), None);
    }

    #[test]
    fn this_machine_has_a_processor_we_may_use() {
        let topology = Topology::discover();
        assert!(!topology.cpus.is_empty());
        assert!(topology.cores() >= 1);
    }

    #[test]
    fn pinning_works_or_says_why_not() {
        let handle = std::thread::spawn(|| {
            let cpu = allowed_cpus()[0];
            if pin_to(cpu).is_ok() {
                assert_eq!(allowed_cpus(), [cpu]);
            }
            let error = pin_to(1_000_000).unwrap_err().to_string();
            assert!(error.contains("processor 1000000"), "{error}");
        });
        handle.join().unwrap();
    }

    #[test]
    fn kernel_lists_and_sizes() {
        assert_eq!(list("0-2,7"), [0, 1, 2, 7]);
        assert_eq!(list(""), [0u32; 0]);
        assert_eq!(size("48K"), Some(49_152));
        assert_eq!(size("big"), None);
    }
}
