//! What is seen of a cluster while it is watched, and how it is read from what kubectl writes of it.
//!
//! Pure: bytes come in pieces of any size, and what they say does not depend on where they are cut.

use std::mem;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::objects::{Endpoints, Fields, Node, ObjectError, Pod};

/// Where a cluster keeps the leases of its nodes.
pub(crate) const NODE_LEASES: &str = "kube-node-lease";
/// The longest line that is read. The API takes no object of this size.
const LONGEST_LINE_BYTES: usize = 8 << 20;

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Pods of the namespace.
    Pods,
    /// The cluster's nodes.
    Nodes,
    /// What each node renews to show that it is there.
    Leases,
    /// The pods that the namespace's services lead to.
    EndpointSlices,
    /// Which volume is attached to which node.
    VolumeAttachments,
    /// Which volume is bound to which claim of the namespace.
    Claims,
}

impl Kind {
    /// All of them.
    pub const ALL: &'static [Kind] =
        &[Kind::Pods, Kind::Nodes, Kind::Leases, Kind::EndpointSlices, Kind::VolumeAttachments, Kind::Claims];

    /// What kubectl calls it.
    #[must_use]
    pub fn resource(self) -> &'static str {
        match self {
            Kind::Pods => "pods",
            Kind::Nodes => "nodes",
            Kind::Leases => "leases",
            Kind::EndpointSlices => "endpointslices",
            Kind::VolumeAttachments => "volumeattachments",
            Kind::Claims => "persistentvolumeclaims",
        }
    }

    /// The namespace that it is in, where that is not the pods'.
    #[must_use]
    pub fn namespace(self) -> Option<&'static str> {
        (self == Kind::Leases).then_some(NODE_LEASES)
    }
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It is there: new, or already when the watch began.
    Added,
    /// It is another.
    Modified,
    /// It is gone.
    Deleted,
}

/// Something seen, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sighting {
    /// When it was read, by this machine's clock.
    pub unix_s: f64,
    #[serde(flatten)]
    pub what: Seen,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "seen", rename_all = "kebab-case")]
pub enum Seen {
    Pod {
        /// What happened to it.
        change: Change,
        /// As it is, or was at last.
        pod: Pod,
    },
    Node {
        /// What happened to it.
        change: Change,
        /// As it is, or was at last.
        node: Node,
    },
    /// A node's lease.
    Lease {
        node: String,
        /// When it was renewed last, by the node's clock.
        renewed_unix_s: f64,
        /// How long the node is taken for alive after that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lasts_s: Option<f64>,
    },
    /// A part of the pods that a service leads to.
    Endpoints {
        /// What happened to it.
        change: Change,
        /// As it is, or was at last.
        endpoints: Endpoints,
    },
    /// Whether a volume is attached to a node.
    Attachment {
        volume: String,
        node: String,
        /// Whether it is.
        is_attached: bool,
    },
    /// A claim of a volume.
    Claim {
        claim: String,
        /// The volume that is bound to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        volume: Option<String>,
    },
    /// Nothing, for a while or of one object: what happened meanwhile is seen late or never.
    Gap {
        /// What was not seen.
        kind: Kind,
        /// Why not.
        why: String,
    },
}

/// Why a line says nothing.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It is no event.
    #[error("a line is no event: {0}")]
    NotAnEvent(#[from] serde_json::Error),
    /// What happened is not known.
    #[error("a line has an event of type `{0}`")]
    UnknownEvent(String),
    /// The cluster says that it does not go on.
    #[error("the cluster ended the watch: {0}")]
    Refused(String),
    /// The object cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// It is longer than is read.
    #[error("a line has more than {LONGEST_LINE_BYTES} bytes")]
    TooLong,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    change: String,
    object: Value,
}

/// Reads one line of a watch; none where it says nothing that is kept.
///
/// # Errors
/// When it is no event, or its object cannot be read.
pub fn read_line(kind: Kind, line: &[u8]) -> Result<Option<Seen>, LineError> {
    let event: Event = serde_json::from_slice(line)?;
    let change = match event.change.as_str() {
        "ADDED" => Change::Added,
        "MODIFIED" => Change::Modified,
        "DELETED" => Change::Deleted,
        "BOOKMARK" => return Ok(None),
        "ERROR" => {
            let message = event.object.get("message").and_then(Value::as_str).unwrap_or("without a reason");
            return Err(LineError::Refused(message.to_owned()));
        }
        _ => return Err(LineError::UnknownEvent(event.change)),
    };
    Ok(seen(kind, change, &event.object)?)
}

fn seen(kind: Kind, change: Change, object: &Value) -> Result<Option<Seen>, ObjectError> {
    Ok(match kind {
        Kind::Pods => Some(Seen::Pod { change, pod: Pod::read(object)? }),
        Kind::Nodes => Some(Seen::Node { change, node: Node::read(object)? }),
        Kind::EndpointSlices => Some(Seen::Endpoints { change, endpoints: Endpoints::read(object)? }),
        Kind::VolumeAttachments => attachment(change, object)?,
        Kind::Leases | Kind::Claims if change == Change::Deleted => None,
        Kind::Leases => lease(object)?,
        Kind::Claims => Some(claim(object)?),
    })
}

/// None of a lease that was never renewed.
fn lease(object: &Value) -> Result<Option<Seen>, ObjectError> {
    let fields = Fields::of("Lease", object)?;
    let node = fields.needed("/metadata/name")?;
    let lasts_s = fields.at("/spec/leaseDurationSeconds").and_then(Value::as_f64);
    let renewed = fields.time("/spec/renewTime")?;
    Ok(renewed.map(|renewed_unix_s| Seen::Lease { node, renewed_unix_s, lasts_s }))
}

/// None of a volume that has no name of its own.
fn attachment(change: Change, object: &Value) -> Result<Option<Seen>, ObjectError> {
    let fields = Fields::of("VolumeAttachment", object)?;
    let node = fields.needed("/spec/nodeName")?;
    let is_attached = change != Change::Deleted && fields.is_set("/status/attached");
    let volume = fields.owned("/spec/source/persistentVolumeName");
    Ok(volume.map(|volume| Seen::Attachment { volume, node, is_attached }))
}

fn claim(object: &Value) -> Result<Seen, ObjectError> {
    let fields = Fields::of("PersistentVolumeClaim", object)?;
    Ok(Seen::Claim { claim: fields.needed("/metadata/name")?, volume: fields.owned("/spec/volumeName") })
}

/// What one kubectl writes of its watch, line by line.
#[derive(Debug)]
pub struct Stream {
    kind: Kind,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    is_too_long: bool,
}

impl Stream {
    /// Nothing so far.
    #[must_use]
    pub fn of(kind: Kind) -> Stream {
        Stream { kind, line: Vec::new(), is_too_long: false }
    }

    /// Takes more bytes; gives what they say with those before them. What cannot be read is a gap.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Seen> {
        let mut seen = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_whole) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            self.is_too_long |= self.line.len() + text.len() > LONGEST_LINE_BYTES;
            if self.is_too_long {
                self.line.clear();
            } else {
                self.line.extend_from_slice(text);
            }
            if is_whole {
                seen.extend(self.take_line());
            }
        }
        seen
    }

    /// What the last line says where only its end is missing. One that was cut says nothing, and the end of the stream is a
    /// gap whatever it was.
    pub fn end(&mut self) -> Option<Seen> {
        self.take_line().filter(|seen| !matches!(seen, Seen::Gap { .. }))
    }

    fn take_line(&mut self) -> Option<Seen> {
        let line = mem::take(&mut self.line);
        let read = if mem::take(&mut self.is_too_long) {
            Err(LineError::TooLong)
        } else if line.trim_ascii().is_empty() {
            Ok(None)
        } else {
            read_line(self.kind, &line)
        };
        read.unwrap_or_else(|error| Some(Seen::Gap { kind: self.kind, why: error.to_string() }))
    }
}
