//! The first process of a lab that a chore makes: it enters the lab, reads what it is for, and hands on to that.
//!
//! Owns the dispatch. The supervisor's subcommand is one for all labs, so that the first line of its input says which this is.

use lab::supervisor;

use crate::bench::fabric;
use crate::trial::kubernetes;

/// Its whole life.
///
/// # Errors
/// When nothing can be read, or what is done in the lab fails.
pub fn main() -> anyhow::Result<()> {
    // With one thread, which is all it may have here.
    let entered = supervisor::enter();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    match serde_json::from_str::<kubernetes::Order>(&line) {
        Ok(order) => kubernetes::inside(&order, entered?),
        Err(_) => fabric::measure_inside(entered, &line),
    }
}
