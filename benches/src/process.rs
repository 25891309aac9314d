//! What this process has used so far.

/// Processor seconds, in steps of 10 ms (proc(5), fields 14 and 15).
pub fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = |field: usize| {
        after_name
            .split_whitespace()
            .nth(field)
            .and_then(|v| v.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) / 100.0
}

/// The most memory that was resident at once, in bytes.
pub fn peak_bytes() -> u64 {
    status_bytes("VmHWM:")
}

/// Memory that is resident now, in bytes.
pub fn resident_bytes() -> u64 {
    status_bytes("VmRSS:")
}

fn status_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|kb| kb.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}
