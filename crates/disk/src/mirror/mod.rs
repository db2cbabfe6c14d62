//! Mirrored volumes: components on several hosts with the same content, of which one serves and tells the others.
//!
//! ```text
//!  node --FUSE--> Mirror ------------ its own component, a Volume
//!                   |  every change, in one order, encoded (operation)
//!                   v
//!                 peers: what is under way to each component, what each lacks (dirt)
//!                   |  frames out, answers in: whoever calls carries them
//!                   v
//!                 Volume of the other component, where they are carried out in the same order
//! ```
//!
//! Every component is a [`Volume`](crate::Volume) with logs of its own of what is not durable, so the power-off of its
//! host takes from it what was not synced there. Objects have the same numbers everywhere.
//!
//! # What is acknowledged when
//!
//! * A change that need not be durable is acknowledged when the serving component has it, unless more is under way than
//!   the buffer holds: then it waits.
//! * A sync, under `Sync`, when every live component has made durable what it covers; under `Semi` when every live
//!   component has received all that was before it; under `Async` when the serving component is done.
//! * A component that gives no sign for the timeout while something is under way to it, or whose connection breaks, is
//!   no longer live. Nothing waits for it, and what changes is marked in its [`Dirt`].
//!
//! # How a component catches up
//!
//! It is sent what is marked, as it is at that moment, in one order with what goes on changing. A change is sent as such
//! when everything it touches is known to the component, and marked otherwise; so nothing is ever said about an object
//! that is not as it is where it is said. When nothing is marked any more, a last message makes all of it durable, and with
//! its answer the component is live. Until then it is of no use without the others: it has some of the new and some of the
//! old.
//!
//! # A node on a host without a component
//!
//! It mounts a [`Remote`]: every operation is a request to the host of the component that serves, which carries it out as if
//! it came from its own kernel, once. So each read that the node's kernel has not kept, each write and each sync costs a round
//! trip between the two hosts.
//!
//! # When the disk of the one that serves refuses
//!
//! Service moves to a live component, while programs have files open: changes wait until that component has carried out
//! everything that was told to it, under every policy, and the operation that was refused is done there. Nothing that a
//! program was told is lost, so nothing else about the node changes but the way to its data. Where no component is live,
//! the refusal is the program's. What has lost its last name and is still open is not on the others: it is refused with
//! `ESTALE`.
//!
//! # Who wins
//!
//! What two components that were parted have both changed, and what a power-off took back on either, is marked as well:
//! the one that serves wins.

mod changes;
mod differences;
mod extents;
mod handing_over;
mod image;
mod incoming;
mod operation;
mod peers;
mod remote;
mod request;
mod serving;
mod sync_times;

pub use crate::dirt::Dirt;
pub use differences::Differences;
pub use extents::ExtentLog;
pub use handing_over::Mover;
pub use incoming::{Answer, Incoming, IncomingError, read_frame};
pub use peers::{Acknowledge, Occurrence, PeerState, Policy, Reason, Standing};
pub use remote::{Carrier, Remote, Work};
pub use request::answer;
pub use serving::{Frame, Mirror, Next};
pub use sync_times::SyncTime;
