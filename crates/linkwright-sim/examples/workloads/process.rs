//! Figures of this process from the operating system.

/// Processor time of this process in seconds.
pub fn cpu_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` outlives the call, which only writes to it.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "every process has a clock");
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Memory of this process in bytes: at present and at its peak.
pub fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = |key: &str| {
        let line = status.lines().find(|line| line.starts_with(key))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let bytes = |key| kib(key).unwrap_or(0) * 1024;
    (bytes("VmRSS:"), bytes("VmHWM:"))
}
