//! How busy the machine's processors are over a while, whoever keeps them busy.

/// The machine's ticks so far, for [`busy_since`].
#[must_use]
pub fn busy_ticks() -> Option<(u64, u64)> {
    lab::accounting::machine_busy_and_total_ticks().ok()
}

/// The busy share of the machine's processors since then.
#[must_use]
pub fn busy_since(earlier: Option<(u64, u64)>) -> Option<f64> {
    let (busy_then, total_then) = earlier?;
    let (busy, total) = busy_ticks()?;
    let total = total.saturating_sub(total_then);
    (total > 0).then(|| busy.saturating_sub(busy_then) as f64 / total as f64)
}
