//! What programs on a node see of its clock: the probe, and a program in C.
//!
//! Owns the looks. What they must show is judged by whoever looks.

use std::path::Path;

use clock::Reading;

use crate::node::{Node, NodeError};
use crate::node_clock::{PROBE_FILE, machine_ns};
use crate::protocol::CLOCK;

/// A program in C that shows the time, from another hand than ours.
const C_PROGRAM: &str = "/bin/date";

/// A clock as seen from inside its node at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockLook {
    /// By the probe, which uses no library.
    pub probe: Result<Reading, String>,
    /// By a program in C, between two looks of the lab at the machine's clock.
    pub c_program: Result<Reading, String>,
}

impl ClockLook {
    /// Looks at it from inside a node, by two programs that have nothing in common.
    ///
    /// # Errors
    /// When the node is off, or does not answer.
    pub fn from_inside(node: &Node) -> Result<ClockLook, NodeError> {
        let probe = output(node, &Path::new(CLOCK).join(PROBE_FILE), &[])?;
        let probe = probe.and_then(|text| {
            Reading::narrowest(&text).ok_or_else(|| format!("the probe said `{}`", text.trim()))
        });
        let before_ns = machine_ns();
        let shown = output(node, Path::new(C_PROGRAM), &["+%s%N".to_owned()])?;
        let after_ns = machine_ns();
        let c_program = shown.and_then(|text| {
            let shown_ns = text.trim().parse().map_err(|_| format!("`date +%s%N` said `{}`", text.trim()))?;
            Ok(Reading { before_ns, shown_ns, after_ns })
        });
        Ok(ClockLook { probe, c_program })
    }
}

/// What a program printed that ran in the node, or why it told nothing.
fn output(node: &Node, program: &Path, arguments: &[String]) -> Result<Result<String, String>, NodeError> {
    let finished = match node.run_briefly(program, arguments) {
        Ok(finished) => finished,
        Err(NodeError::Spawn { why, .. }) => return Ok(Err(why)),
        Err(error) => return Err(error),
    };
    let told = format!("{} ended with {:?}, {:?}", program.display(), finished.code, finished.signal);
    Ok(if finished.code == Some(0) { Ok(finished.stdout) } else { Err(told) })
}
