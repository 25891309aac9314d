//! Sizes and times as people write them: `20 GiB`, `512 MB`, `30 s`, `1.5 min`.

use std::time::Duration;

/// Bytes from a number, alone or with a unit.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || {
        "a size is a number of bytes, or a number and one of B, kB, KiB, MB, MiB, GB, GiB, TB, TiB"
            .to_string()
    };
    let (number, unit) = split(text);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "kib" => 1 << 10,
        "mb" => 1_000_000,
        "mib" => 1 << 20,
        "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        "tb" => 1_000_000_000_000,
        "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    // Whole numbers stay exact; a float has 53 bits.
    if let Ok(whole) = number.parse::<u64>() {
        return whole
            .checked_mul(factor)
            .ok_or_else(|| "that is more than there can be".to_string());
    }
    let number = decimal(number).ok_or_else(wrong)?;
    Ok((number * factor as f64) as u64)
}

/// A time from seconds, alone or with a unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "a time is a number of seconds, or a number and one of ms, s, min".to_string();
    let (number, unit) = split(text);
    let seconds = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "min" => 60.0,
        _ => return Err(wrong()),
    };
    let number = decimal(number).ok_or_else(wrong)?;
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err("it must be more than nothing, and finite".to_string()),
    }
}

/// A number of plain digits: neither signs nor exponents.
fn decimal(number: &str) -> Option<f64> {
    number
        .parse::<f64>()
        .ok()
        .filter(|_| number.starts_with(|c: char| c.is_ascii_digit()))
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}
