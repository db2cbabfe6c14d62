//! `consistency` of a load: by how many of the nodes that hold a row its reads and its writes must be answered, and whose clock
//! orders its writes.
//!
//! Owns reading the key, what the engine has to say to it, and writing it.

use capabilities::Capabilities;

use crate::decode::Decoder;
use crate::language::{CONSISTENCY, CONSISTENCY_LEVELS, TIMESTAMPS};
use crate::rejection::{Findings, Spanned};
use crate::resolved::{Consistency, ConsistencyLevel, Timestamps};
use crate::tree::{Node, Value};
use crate::wording::either;

/// A level that writes do not have.
const SERIAL: &str = "serial";
const COORDINATOR: &str = "coordinator";

/// Reads the key: a level for both, or a map.
pub(crate) fn decode(node: &Node, decoder: &mut Decoder) -> Option<Spanned<Consistency>> {
    let at = node.head;
    let level = |node: &Node, decoder: &mut Decoder| decoder.word(node, "consistency", CONSISTENCY_LEVELS);
    if !matches!(node.value, Value::Map(_)) {
        let written = level(node, decoder)?;
        let both = of_writes(&written, decoder)?;
        return Some(Spanned {
            value: Consistency { reads: Some(both), writes: Some(both), ..Consistency::default() },
            at: written.at,
        });
    }
    let record = decoder.record(node, &CONSISTENCY)?;
    let reads = record.get("reads").map(|node| level(node, decoder));
    let writes = record.get("writes").map(|node| level(node, decoder));
    let reads = match reads {
        Some(written) => Some(named(written?.value)?),
        None => None,
    };
    let writes = match writes {
        Some(written) => Some(of_writes(&written?, decoder)?),
        None => None,
    };
    let timestamps = match record.get("timestamps") {
        Some(node) if decoder.word(node, "clock for timestamps", TIMESTAMPS)?.value == COORDINATOR => {
            Timestamps::Coordinator
        }
        _ => Timestamps::Client,
    };
    Some(Spanned { value: Consistency { reads, writes, timestamps }, at })
}

/// The level, unless writes do not have it.
fn of_writes(written: &Spanned<&'static str>, decoder: &mut Decoder) -> Option<ConsistencyLevel> {
    if written.value != SERIAL {
        return named(written.value);
    }
    decoder.findings.add(
        "serial-writes",
        written.at,
        "`serial` is a consistency of reads, not of writes",
        "of reads only",
        "write `consistency: { reads: serial, writes: quorum }`",
    );
    None
}

fn named(word: &str) -> Option<ConsistencyLevel> {
    use ConsistencyLevel::{All, LocalOne, LocalQuorum, One, Quorum, Serial};
    [One, LocalOne, Quorum, LocalQuorum, All, Serial].into_iter().find(|level| level.name() == word)
}

/// Refuses it on an engine whose clients have no such choice.
pub(crate) fn check(given: Option<&Spanned<Consistency>>, engine: &Capabilities, findings: &mut Findings) {
    let Some(given) = given.filter(|_| !engine.protocol.has_consistency_levels()) else { return };
    let able = capabilities::engines().iter().filter(|engine| engine.protocol.has_consistency_levels());
    let able: Vec<&str> = able.map(|engine| engine.name).collect();
    let help = match able.as_slice() {
        [] => "take `consistency` out".to_owned(),
        able => format!("take `consistency` out, or use the engine {}", either(able)),
    };
    findings.add(
        "no-consistency-levels",
        given.at,
        format!("clients of the engine `{}` cannot choose a consistency level", engine.name),
        "not a choice here",
        help,
    );
}

/// As it stands in a scenario; nothing where nothing was said.
pub(crate) fn written(consistency: Consistency) -> Option<String> {
    let part =
        |key: &str, level: Option<ConsistencyLevel>| level.map(|level| format!("{key}: {}", level.name()));
    let timestamps =
        (consistency.timestamps == Timestamps::Coordinator).then(|| format!("timestamps: {COORDINATOR}"));
    let parts = [part("reads", consistency.reads), part("writes", consistency.writes), timestamps];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("consistency: {{ {} }}", parts.join(", ")))
}
